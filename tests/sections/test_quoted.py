"""Which row of the article an encoding answers to."""

from grape_bench.sections.quoted import quoted


def test_figures_follow_the_encoding_and_no_wrapped_or_doubled_one():
    assert quoted("t5(max_distance=32)", ("none", "t5(max_distance=32)")) == quoted("t5", ())
    assert quoted("t5(max_distance=32)", ("t5", "t5(max_distance=32)")) is None
    assert quoted("randomized(rope(base=100))", ("randomized(rope(base=100))",)) is None
    assert quoted("rope(base=100) + clamp(window=64)", ("rope(base=100) + clamp(window=64)",)).doubled == 0.672
