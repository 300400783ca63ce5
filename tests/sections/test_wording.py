"""How figures are written."""

from grape_bench.interval import Interval
from grape_bench.sections.wording import first_of, mean, quantity, share
from grape_bench.table import Entry


def test_numbers_are_written_with_three_digits():
    assert [share(one) for one in (0.9821, 1.0, 0.0)] == [".982", "1.000", ".000"]
    assert [quantity(one, "ms") for one in (0.012345, 1.2345, 12.345, 1234.5, 0)] == [
        "0.0123 ms",
        "1.23 ms",
        "12.3 ms",
        "1,230 ms",
        "0.00 ms",
    ]


def test_memory_is_written_in_hundredths_at_most():
    assert [quantity(one, "MiB") for one in (0.004, 0.006, 12.345, 1234.5)] == [
        "0.00 MiB",
        "0.01 MiB",
        "12.3 MiB",
        "1,230 MiB",
    ]


def test_a_mean_of_a_single_seed_has_no_half():
    assert mean(Interval(0.9, 0.95, 1.0, 5)) == ".950 ± .050"
    assert mean(Interval(float("nan"), 0.95, float("nan"))) == ".950"


def test_a_long_table_says_how_many_rows_it_leaves_out():
    rows = [(Entry(str(number)),) for number in range(202)]
    assert first_of(rows[:200]) == (tuple(rows[:200]), "")
    assert first_of(rows[:201]) == (tuple(rows[:200]), "1 further row left out.")
    assert first_of(rows) == (tuple(rows[:200]), "2 further rows left out.")
