"""No position at all: the baseline that knows its tokens as a set (or, in a decoder, by the causal mask alone)."""

from grape_bench.encodings import Encoding, Site


class Nope(Encoding):
    """Do nothing.

    A bidirectional model without positions sees a bag of tokens, so it sits on a task's blind ceiling. A decoder
    is not blind: the causal mask lets it count.

    Source: Haviv et al. 2022, arXiv:2203.16634; Kazemnejad et al. 2023, arXiv:2305.19466.
    """

    group = "translations"
    representation = "trivial"
    laws = ("relative", "reflection")

    def __init__(self, site: Site):
        super().__init__()


PLUGIN = Nope
