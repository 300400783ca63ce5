"""The codes of `check --model`."""

from grape_bench.finding import Rule

DOUBLED = Rule(
    "GB201",
    "warning",
    "two position signals are stacked: one on the embeddings, one in attention",
    "Drop the one on the embeddings.",
    "Where tokens carry an absolute position and attention has a rotation or a bias as well, the relative law is "
    "gone, and early training is disturbed. It is recognised so: with one token repeated, what enters the first "
    "attention differs from position to position; and with its input made the same at all positions, the scores "
    "of an attention still differ from key to key. The module that is named is the one whose output, made the "
    "same at all positions, takes the signal away from the embeddings.",
)
SHIFT = Rule(
    "GB202",
    "error",
    "an absolute index reaches a model whose positions are relative",
    "Let attention see differences of positions alone.",
    "A model whose positions enter as a rotation or a bias gives the same outputs when all positions move "
    "together. Where the model takes positions, they are shifted; where it takes a mask, the window is moved to "
    "the right behind padding. Models that put positions on the embeddings are absolute by design: that is told, "
    "and is no fault.",
)
MASK = Rule(
    "GB203",
    "error",
    "later tokens reach earlier outputs, or the mask leaves no finite number",
    "Keep the order: score, scale, bias, mask, softmax; mask with -inf or a boolean, and let padding see itself.",
    "A causal model's outputs depend on no later token. They do where the mask comes before the scale or the "
    "bias, where a bias is added after the softmax, or where a masked score is finite and not small enough; two "
    "masks of the smallest number of a half type add up to -inf, and a row of these to NaN. Later tokens are "
    "changed, and earlier outputs compared. A model is held to be causal if it says so or if its attention masks "
    "later keys.",
)
PADDING = Rule(
    "GB204",
    "error",
    "the content of padding reaches real tokens",
    "Mask padded keys in every attention, after the bias.",
    "What stands in padded places must not matter. It does where an attention ignores the mask, or adds to the "
    "weights after it. Padding is filled with other tokens, and the outputs of real tokens are compared.",
)
EXPANDED = Rule(
    "GB205",
    "warning",
    "a bias is copied for each member of the batch",
    "Keep the bias as (1, H, T, S) and let addition broadcast it; expand() makes no copy, repeat() does.",
    "A bias of positions is the same for all sequences. As (B, H, T, S) it takes B times its memory, which is the "
    "peak of long contexts. Every tensor of that shape is looked at while a batch runs, whose members differ in "
    "tokens and padding: one whose batch rows are equal, and that is more than a mask, is a copied bias. A view "
    "takes no memory.",
)
DECODE = Rule(
    "GB206",
    "error",
    "decoding behind a cache differs from the full pass",
    "Give new tokens the positions that follow what is cached, and compute nothing from the new tokens alone.",
    "Tokens that are decoded one at a time must give what they give in the full pass. They do not where their "
    "positions start at 0 again, where keys are rotated twice, or where a table depends on the length so far. "
    "Where the model takes positions, it is also tried with the right ones handed in, to tell the first cause "
    "from the others.",
)
TABLE = Rule(
    "GB207",
    "error",
    "positions, frequencies or a table of them were computed in half precision",
    "Compute positions, frequencies and angles in float32, and round the finished cosine, sine or bias alone.",
    "bfloat16 has 769 distinct integers below 4096, so neighbours collide from 256 on; float16 does so from 2048 "
    "on. It is recognised by integer positions that become half numbers, by angles in half precision, by "
    "frequencies that are exact in half precision though no powers of two, and by neighbouring rows of a table of "
    "cosines that are equal. A table that was computed wide and rounded last is right.",
)
RULES = (DOUBLED, SHIFT, MASK, PADDING, EXPANDED, DECODE, TABLE)
