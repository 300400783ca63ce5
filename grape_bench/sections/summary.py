"""What was measured, on what, and how much of it is there."""

from collections import Counter

from grape_bench.environment import Environment
from grape_bench.sections.wording import amount_of
from grape_bench.table import Facts, Prose, Section, Tally
from grape_bench.view import View


def summary(view: View) -> Section:
    """Hardware and counts."""
    found = Counter(one.standing for one in view.outcomes())
    unlearned = sum(trial.unlearned for course in view.courses for trial in course.trials)
    tally = Tally(
        (
            ("ok", "ok", found["ok"]),
            ("skipped", "skipped", found["skipped"]),
            ("failed", "failed", found["failed"]),
            ("missing", "missing", found["missing"]),
            ("unlearned", "did not learn", unlearned),
        )
    )
    asked = Facts((("suite", _asked(view)), *(("machine", hardware(one)) for one in view.environments)))
    nothing = (
        () if view.environments else (Prose("Nothing has been measured yet: there are no records of this suite."),)
    )
    return Section("summary", "Summary", (asked, tally, *nothing))


def _asked(view: View) -> str:
    seeds = f", {amount_of(len(view.suite.seeds), 'seed')}" if view.courses else ""
    cells = sum(len(bench.outcomes) for bench in view.benches[:1]) + len(view.trainings)
    baseline = f", baseline {view.suite.baseline}" if view.suite.baseline else ""
    return (
        f"{view.suite.name}: {amount_of(len(view.encodings), 'encoding')}{seeds}, {amount_of(cells, 'cell')}{baseline}"
    )


def hardware(one: Environment) -> str:
    """A machine and the versions on it, on one line."""
    device = one.device if one.device != "cpu" else f"{one.cpu}, {amount_of(one.cores, 'core')}"
    commit = f", commit {one.commit[:10]}" if one.commit else ""
    dirty = " (dirty)" if one.dirty else ""
    cuda = f", CUDA {one.cuda}" if one.cuda else ""
    return f"{one.machine}: {device}, torch {one.torch}{cuda}, grape-bench {one.package}{commit}{dirty}"
