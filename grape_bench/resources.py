"""What a training takes of a machine, and how many trainings share a device."""

from pydantic import Field

from grape_bench.cell import Frozen


class Resources(Frozen):
    """What a training takes of a machine. A cost block has its device to itself, whatever is written here."""

    gpus: float = Field(0.25, gt=0, le=1, description="share of a GPU")
    cpus: float = Field(1, gt=0, le=1024, description="CPU cores")
    ray: dict[str, float] = Field(
        {}, description="other resources that a Ray node must have, with how much a device takes of them"
    )


def slots(device: str, cores: float, resources: Resources) -> int:
    """Trainings that may share a device.

    Args:
        device: `cpu`, or the name of a GPU; cores: those that belong to it.
    """
    by_cores = cores / resources.cpus
    return max(1, int(by_cores if device == "cpu" else min(by_cores, 1 / resources.gpus)))
