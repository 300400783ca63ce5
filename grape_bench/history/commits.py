"""The commits of the checkout in the working directory, which records name."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from grape_bench.errors import UserError
from grape_bench.record import Record

CONFIGURATION = Path("asv.conf.json")
BESIDE = Path("grape_bench/asv_benchmarks/suites")  # the suites whose names asv discovers
_PATIENCE_S = 60  # a checkout on a slow disk has many files to look at
_TOP = f"the top folder of a checkout, where {CONFIGURATION} is"


class Checkout:
    """The git repository whose top folder is the working directory.

    Raises:
        UserError: it is none, or a shallow clone, which knows too few commits to order them.
    """

    def __init__(self) -> None:
        if not CONFIGURATION.is_file() or not Path(".git").exists():
            raise UserError(f"history needs {_TOP}; {Path.cwd().name} is none")
        if _git("rev-parse", "--is-shallow-repository") == "true":
            raise UserError("this is a shallow clone, without the commits that a history needs: git fetch --unshallow")

    def require_clean(self) -> None:
        """Names and parameters of benchmarks are taken from the working tree, and must be those of a commit.

        Raises:
            UserError: there are changes outside results/ and reports/, untracked files included.
        """
        changes = _git("status", "--porcelain", "--", ".", ":!results", ":!reports").splitlines()
        if changes:
            more = f" and {len(changes) - 1} more" if changes[1:] else ""
            raise UserError(f"the working tree has changes ({changes[0].strip()}{more}); commit or remove them first")

    def order(self) -> tuple[str, ...]:
        """The commits that lead to HEAD, oldest first, along first parents as asv goes."""
        return tuple(_git("rev-list", "--first-parent", "--reverse", "HEAD").split())

    def refusal(self, commit: str | None, dirty: bool | None) -> str:
        """Why records that say so belong to no commit here; empty where they do."""
        if commit is None:
            return "they name no commit, having been measured outside a checkout"
        if dirty:
            return f"they were measured on changes beside commit {commit[:10]}"
        if not _known(commit):
            return f"commit {commit[:10]} is not known here"
        return ""


def split(records: Iterable[Record], checkout: Checkout) -> tuple[dict[str, list[Record]], tuple[str, ...]]:
    """Records by the commit that they name, and a sentence for each group that names none of this checkout."""
    groups: dict[tuple[str | None, bool | None], list[Record]] = {}
    for record in records:
        groups.setdefault((record.environment.commit, record.environment.dirty), []).append(record)
    kept, refused = dict[str, list[Record]](), list[str]()
    for (commit, dirty), group in groups.items():
        why = checkout.refusal(commit, dirty)
        if why:
            refused.append(f"{len(group)} records of {group[0].suite} are left out: {why}")
        elif commit is not None:
            kept.setdefault(commit, []).extend(group)
    return kept, tuple(refused)


def _known(commit: str) -> bool:
    done = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True, check=False)
    return done.returncode == 0


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=True, timeout=_PATIENCE_S)
    except FileNotFoundError:
        raise UserError("history needs git, which is not installed") from None
    except subprocess.CalledProcessError as error:
        raise UserError(f"git {words[0]} failed: {error.stderr.strip()}") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"git {words[0]} did not answer within {_PATIENCE_S} s") from None
    return done.stdout.strip()
