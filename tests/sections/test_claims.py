"""Which row of the article an encoding answers to."""

from grape_bench.sections.claims import claim


def test_claims_follow_the_encoding_and_no_wrapped_or_doubled_one():
    assert claim("t5(max_distance=32)", ("none", "t5(max_distance=32)")) == claim("t5", ())
    assert claim("t5(max_distance=32)", ("t5", "t5(max_distance=32)")) is None
    assert claim("randomized(rope(base=100))", ("randomized(rope(base=100))",)) is None
    assert claim("rope(base=100) + clamp(window=64)", ("rope(base=100) + clamp(window=64)",)).doubled == 0.672
