"""A suite seen with its records: what the sections of a report ask."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from grape_bench.bench import Bench
from grape_bench.cell import AccuracyCell, Cell, CostCell
from grape_bench.environment import Environment
from grape_bench.outcome import Machine, Outcome, machines, of_one_text, outcomes
from grape_bench.record import Record
from grape_bench.registry import Plugin
from grape_bench.suite import Suite
from grape_bench.trial import Course, courses


@dataclass(frozen=True)
class View:
    """All that a report knows.

    Args:
        metrics: the plug-ins of metrics, for their units.
        machines: where its records come from, the newest first; benches: their cost side, at least one where the
            suite asks for cost; courses: the accuracy side, over all machines.
        trainings: outcomes of the accuracy cells; other_texts: what is left out of them, being of other texts.
    """

    suite: Suite
    metrics: Mapping[str, Plugin]
    machines: tuple[Machine, ...]
    benches: tuple[Bench, ...]
    courses: tuple[Course, ...]
    trainings: tuple[Outcome, ...]
    other_texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, suite: Suite, cells: Iterable[Cell], records: Iterable[Record], metrics: Mapping[str, Plugin]) -> Self:
        asked, found = tuple(cells), tuple(records)
        cost = tuple(one for one in asked if isinstance(one, CostCell))
        measured = machines(one for one in found if one.cell.kind == "cost")
        trained, other_texts = of_one_text(found)
        trainings = tuple(outcomes((one for one in asked if isinstance(one, AccuracyCell)), trained).values())
        return cls(
            suite=suite,
            metrics=metrics,
            machines=machines(found),
            benches=tuple(Bench.of(cost, one, suite.baseline) for one in measured or (None,)) if cost else (),
            courses=courses(trainings, suite.learned),
            trainings=trainings,
            other_texts=other_texts,
        )

    @property
    def encodings(self) -> tuple[str, ...]:
        """All encodings in the order of the suite; an encoding's place here is its colour."""
        asked = [one.cell.encoding for one in self.outcomes()]
        return tuple(dict.fromkeys((*self.suite.encodings, *asked)))

    @property
    def environments(self) -> tuple[Environment, ...]:
        return tuple(one.environment for one in self.machines)

    def outcomes(self) -> tuple[Outcome, ...]:
        """Every cell, those of cost once for each machine."""
        return (*self.trainings, *(one for bench in self.benches for one in bench.outcomes))

    def where(self, bench: Bench) -> str:
        """The end of a phrase, which names the machine where there are several."""
        return f" on {bench.environment.machine}" if bench.environment and len(self.benches) > 1 else ""

    def unit(self, metric: str) -> str:
        return str(self.metrics[metric].facts.get("unit", "")) if metric in self.metrics else ""

    def name(self, metric: str) -> str:
        """A metric's name as words, without its unit: `forward_backward_ms` is forward backward."""
        bare = metric.removesuffix("_" + self.unit(metric).lower()).replace("_", " ")
        memory = metric in self.metrics and self.metrics[metric].facts.get("kind") == "memory"
        return f"{bare} memory" if memory else bare
