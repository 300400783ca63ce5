"""The two things that can be said to a user: the input is wrong, and this cell cannot be done."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """The input is wrong; the message says where, what was given and what is allowed. Exit code 2."""


class Unsupported(ValueError):  # noqa: N818 - a skip is no error
    """A cell that cannot be done, through nobody's fault: it becomes a skip with this sentence."""


def allowed(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known name, then all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{hint} Allowed: {', '.join(names)}."
