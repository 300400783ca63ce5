"""Layers: a schedule that says which layers an encoding acts on."""

from grape_bench.encodings import Encoding, Site
from grape_bench.encodings._wrapper import Wrapper
from grape_bench.errors import Unsupported


class Layers(Wrapper):
    """Leave every n-th layer without the wrapped encoding; the causal mask is all that it knows of position there.

    With n = 4 the layers 3, 7, 11, ... have none, counted from 0: `layers(rope, skip_every=4)` is SmolLM3's schedule,
    and `layers(rope + window(tokens=128), skip_every=4)` turns within a window and looks afar without positions.

    Vectors are added to the tokens (sinusoidal, learned) before the first layer, so what acts there goes by layer 0. A
    learned table that other models share over their layers is one for each layer here.

    Args:
        site: its `layer` is the one that this instance is for.
        inner: what acts on the other layers.
        skip_every: n, layers.
        invert: act on every n-th layer alone.

    Raises:
        Unsupported: n below 2.

    Source: Yang et al. 2025, arXiv:2501.18795 (RNoPE with windows); SmolLM3's published configuration.
    """

    group = "that of the wrapped encoding"
    representation = "trivial on some layers"
    variants = ("invert=True",)

    def __init__(self, site: Site, inner: Encoding, *, skip_every: int = 4, invert: bool = False):
        super().__init__()
        if skip_every < 2:
            raise Unsupported(f"layers: skip_every must be at least 2 layers, got {skip_every}")
        self.acts = ((site.layer + 1) % skip_every == 0) == invert
        self.wrap(inner if self.acts else _nothing())
        self.shared = False  # one instance would not know which layer calls it


def _nothing() -> Encoding:
    none = Encoding()
    none.laws = ("relative", "reflection")
    return none


PLUGIN = Layers
