"""The contract of a metric: from a cost cell to the operation that is timed or whose memory is watched.

A file of this folder is a metric of its name, with its unit in the name; its last line is `PLUGIN = Class`.
"""

from collections.abc import Callable

from grape_bench.cell import CostCell

Operation = Callable[[], object]


class Metric:
    """What is measured, and how to run it once.

    Class attributes are declared facts, read without running the file:
        version: raised when a number it gives would change.
        kind: `time`, `memory`, `accuracy`, or `derived`, which is computed from `derived_from` when records are read.
        unit: of its numbers; better: `lower` or `higher`.
        scopes: where it can be measured; decodes: through a cache, which the gate then checks too; backward: with
            gradients, otherwise the gate compares none.
    """

    version = 1
    kind = "time"
    unit = "ms"
    better = "lower"
    scopes: tuple[str, ...] = ("attention", "model")
    decodes = False
    backward = True
    derived_from: str | None = None

    def prepare(self, cell: CostCell, device: str) -> Operation:
        """Build inputs and modules on the device, and return the operation.

        Raises:
            Unsupported: the cell cannot be done.
        """
        raise NotImplementedError
