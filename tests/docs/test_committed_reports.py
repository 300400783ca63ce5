"""The committed reports come of the committed records, to the byte: `grape-bench report && grape-bench leaderboard`."""

import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
MEASURED = {Path("backends.md")}  # by the contract of backends, which docs/backends.md tells how to run


def files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_reports_come_of_records_alone(tmp_path: Path) -> None:
    for command in ("report", "leaderboard"):
        words = [sys.executable, "-m", "grape_bench", command, "--reports", str(tmp_path)]
        subprocess.run(words, cwd=HOME, check=True, capture_output=True)
    written, committed = files(tmp_path), files(HOME / "reports")
    assert written.keys() == committed.keys() - MEASURED
    assert [str(path) for path in written if written[path] != committed[path]] == []
