"""Parity with other implementations. None of them is the truth: each comparison has its own plain loop in float64."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from tabulate import tabulate
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))  # the modules that its tests share
collect_ignore_glob = [] if find_spec("transformers") else ["test_*.py"]  # `tox -e peers` has what they need
OURS_ATOL = 1e-10  # of this package against the loop, both in float64


class Meeting(NamedTuple):
    """One comparison that was made: the largest difference of a peer from us, and why where it is wrong."""

    encoding: str
    peer: str
    difference: float
    fault: str = ""


_MEETINGS = pytest.StashKey[list[Meeting]]()


class Meet:
    """Hold ours and theirs against the same loop, and keep the difference for the table at the end."""

    def __init__(self, kept: list[Meeting]):
        self._kept = kept

    @torch.no_grad()
    def agrees(self, encoding: str, peer: str, theirs: Tensor, ours: Tensor, loop: Tensor, atol: float = 1e-5) -> None:
        """Both are the loop's numbers; a peer works in float32.

        Args:
            atol: of the peer.
        """
        self._keep(Meeting(encoding, peer, _largest(theirs, ours)))
        torch.testing.assert_close(ours, loop, rtol=0, atol=OURS_ATOL)
        torch.testing.assert_close(theirs.double(), loop, rtol=0, atol=atol)

    @torch.no_grad()
    def is_wrong(
        self, encoding: str, peer: str, theirs: Tensor, ours: Tensor, loop: Tensor, *, by: float, fault: str
    ) -> None:
        """Ours are the loop's numbers, and theirs are so far away: the day a peer is repaired, this fails."""
        self._keep(Meeting(encoding, peer, _largest(theirs, ours), fault))
        torch.testing.assert_close(ours, loop, rtol=0, atol=OURS_ATOL)
        assert _largest(theirs, ours) == pytest.approx(by, rel=0.02)

    def _keep(self, meeting: Meeting) -> None:
        self._kept.append(meeting)


def _largest(one: Tensor, other: Tensor) -> float:
    gap = torch.where(one == other, 0.0, (one.double() - other.double()).abs())  # -inf in both is no difference
    return gap.max().item()


@pytest.fixture
def meet(request: pytest.FixtureRequest) -> Meet:
    return Meet(request.config.stash.setdefault(_MEETINGS, []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    largest: dict[tuple[str, str, str], float] = {}
    for one in config.stash.get(_MEETINGS, []):
        key = (one.encoding, one.peer, one.fault)
        largest[key] = max(one.difference, largest.get(key, 0.0))
    if largest:
        rows = [[encoding, peer, f"{far:.1e}", fault] for (encoding, peer, fault), far in sorted(largest.items())]
        terminalreporter.section("largest differences from each peer")
        terminalreporter.write_line(tabulate(rows, ["encoding", "peer", "largest", "where the peer is wrong"]))
        peers = {row[1].split()[0] for row in rows}
        terminalreporter.write_line(f"{len(rows)} comparisons with {len(peers)} packages: {', '.join(sorted(peers))}")
