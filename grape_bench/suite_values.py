"""The values of a suite: expressions, names and lists that are checked when they are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from grape_bench.errors import UserError
from grape_bench.expression import Expression
from grape_bench.registry import Registry

T = TypeVar("T")


class Plugins(dict[str, Registry]):
    """The registries by kind, each read when it is first asked for."""

    def __missing__(self, kind: str) -> Registry:
        self[kind] = Registry(kind)
        return self[kind]


def plugins(info: ValidationInfo) -> Plugins:
    """Those of the validation's context, or fresh ones."""
    return info.context if isinstance(info.context, Plugins) else Plugins()


def wrong(sentence: str, *at: str | int) -> PydanticCustomError:
    """A finding about the value under validation, or about what stands `at` a path below it."""
    return PydanticCustomError("suite", "{sentence}", {"sentence": sentence, "at": at})


@contextmanager
def as_finding(*at: int) -> Iterator[None]:
    """What a user's mistake says, as a finding about the value under validation."""
    try:
        yield
    except UserError as error:
        raise wrong(str(error), *at) from None


def _encoding(text: str, info: ValidationInfo) -> str:
    with as_finding():
        try:
            return str(Expression.parse(text, plugins(info)["encodings"]))
        except UserError as error:
            cut = text.count("(") > text.count(")") or text.count("(") < text.count(")")
            hint = '; inside [...] an expression with a comma needs quotes: "rope(a=1, b=2)"' if cut else ""
            raise UserError(f"{error}{hint}") from None


def _task(text: str, info: ValidationInfo) -> str:
    with as_finding():
        expression = Expression.parse(text, plugins(info)["tasks"])
    if len(expression.parts) > 1:
        raise wrong(f"{text!r} is a sum; a task is one name with its options")
    return str(expression)


def _backend(name: str, info: ValidationInfo) -> str:
    with as_finding():
        return plugins(info)["backends"][name].name


def _distinct(items: tuple[T, ...]) -> tuple[T, ...]:
    first: dict[T, int] = {}
    for index, item in enumerate(items):
        if first.setdefault(item, index) < index:
            raise wrong(f"{item} is listed twice; item [{first[item]}] is the same", index)
    return items


EncodingText = Annotated[str, AfterValidator(_encoding)]
TaskText = Annotated[str, AfterValidator(_task)]
BackendName = Annotated[str, AfterValidator(_backend)]
Axis = Annotated[tuple[T, ...], Field(min_length=1), AfterValidator(_distinct)]
Name = Annotated[str, Field(pattern=r"^\w[\w.-]*$", max_length=40)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Rate = Annotated[float, Field(gt=0, le=10)]
