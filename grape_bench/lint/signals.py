"""What encodings tell of position: too much, or nothing that a longer test will ask."""

from collections.abc import Iterable, Iterator

from grape_bench.lint import Fault, check
from grape_bench.lint.subject import Subject


@check(
    "GB101",
    "warning",
    "two position signals stacked",
    remedy="Drop the one on the embeddings, or list it as an encoding of its own.",
)
def stacked(subject: Subject) -> Iterator[Fault]:
    """An absolute encoding on the embeddings together with a rotation or a bias tells position twice, and the loss
    starts too high. It is found where one expression adds to the tokens and also rotates or biases. What only hides
    keys or scales scores tells no position, and is left alone."""
    for loc, seen in subject.members:
        absolute, relative = seen.by("embed"), seen.by("rotate", "bias")
        if absolute and relative:
            yield Fault(loc, f"{_and(absolute)} adds positions to the tokens, and {_and(relative)} tells them again")


@check(
    "GB102",
    "warning",
    "absolute positions alone, where extrapolation is asked",
    remedy="Add an encoding of relative distance to the entry, such as rope or alibi.",
)
def absolute_alone(subject: Subject) -> Iterator[Fault]:
    """An absolute index that training never showed makes a model collapse past the trained length. It is found where
    tests are longer than the training and all that tells position in that entry is added to the tokens. With a relative
    encoding in the entry the comparison is wanted."""
    for loc, grid, members in subject.stretched:
        telling = [seen for _, seen in members if seen.hooks]
        if telling and all(seen.alone("embed") for seen in telling):
            yield Fault(
                (*loc, "test_lengths"),
                f"{_and(seen.text for seen in telling)} tells absolute positions, and no training sequence has those "
                f"from {grid.train_length} to {max(grid.test_lengths) - 1}",
            )


@check(
    "GB103",
    "warning",
    "positions with parameters that training never reaches",
    remedy="Test up to the training length, or take a function of position such as sinusoidal.",
)
def untrained_positions(subject: Subject) -> Iterator[Fault]:
    """A table with a row for each position is at its random start where tests are longer than the training. It is found
    for encodings that declare such parameters, unless a wrapper tells them other positions."""
    for loc, seen, grid in subject.trained(stretched=True):
        for one in seen.parts:
            if one.fact("out_of_reach") == "untrained":
                rows = f"rows {grid.train_length} to {max(grid.test_lengths) - 1}"
                yield Fault(loc, f"{rows} of {one.name} stay as they started, since training ends before them")


@check(
    "GB104",
    "warning",
    "clamped distances, where extrapolation is asked",
    remedy="Take a cyclic or a continuous kernel, such as cyclic, fourier or log, or add a rotation.",
)
def clamped(subject: Subject) -> Iterator[Fault]:
    """Beyond a clamp all distances are one number, so a model cannot tell far tokens apart, and collapses past the
    trained length. It is found where tests are longer than the training, and all that tells position is clamped below
    the longest distance. A rotation or another bias beside it still tells far distances apart."""
    for loc, seen, grid in subject.trained(stretched=True):
        telling = [one for one in seen.parts if one.hooks]
        far = max((one.reach(grid.train_length) for one in telling), default=0)
        most = max(grid.test_lengths) - 1
        if seen.alone("bias") and all(one.fact("out_of_reach") == "clamped" for one in telling) and far < most:
            yield Fault(loc, f"to {seen.text} all distances from {far} to {most} tokens are one")


@check(
    "GB105",
    "warning",
    "a window shorter than the longest test",
    remedy="Make the window as long as the longest test, or leave its option out for the training length.",
)
def short_window(subject: Subject) -> Iterator[Fault]:
    """What a question asks for may lie out of the window. A mask is found where it is shorter than the longest test; of
    exactly the training length it is left alone, as the control that reads no further than it was trained to. A clamp
    is found where it is shorter than the training length, since it then makes distances one that training does show. A
    window in a wrapper may act on some layers alone, and is left alone too."""
    for loc, seen, grid in subject.trained():
        longest = max(grid.test_lengths)
        for one in seen.parts:
            far, mask = one.reach(grid.train_length), not one.fact("tells")
            needed = longest if mask else grid.train_length if one.fact("out_of_reach") == "clamped" else 0
            if 0 < far < needed and far != grid.train_length:
                yield Fault(loc, f"{one.part} reaches {far} tokens; training has {grid.train_length}, tests {longest}")


@check(
    "GB106",
    "note",
    "biases alone, where extrapolation is asked",
    remedy="Turn rotation on: add an encoding that rotates, such as rope or rope + alibi.",
)
def bias_alone(subject: Subject) -> Iterator[Fault]:
    """The article finds extrapolation by a bias alone mediocre, and better with a rotation. It is found where tests are
    longer than the training and an entry has biases, and nothing that rotates. It is a note, since ALiBi was made for
    this; with a rotation in the entry the comparison is wanted."""
    for loc, grid, members in subject.stretched:
        biased = [seen.text for _, seen in members if seen.alone("bias")]
        if biased and not any("rotate" in seen.hooks for _, seen in members):
            times = max(grid.test_lengths) / grid.train_length
            yield Fault(
                (*loc, "test_lengths"),
                f"tests go to {times:g} times the training length, and nothing rotates beside {_and(biased)}",
            )


def _and(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(names))
