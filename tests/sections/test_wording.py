"""How figures are written."""

from grape_bench.sections.wording import quantity, share


def test_numbers_are_written_with_three_digits():
    assert [share(one) for one in (0.9821, 1.0, 0.0)] == [".982", "1.000", ".000"]
    assert [quantity(one, "ms") for one in (0.012345, 1.2345, 12.345, 1234.5, 0)] == [
        "0.0123 ms",
        "1.23 ms",
        "12.3 ms",
        "1,230 ms",
        "0.00 ms",
    ]
    assert quantity(0.005, "MiB") in ("0.00 MiB", "0.01 MiB")
