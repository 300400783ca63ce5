"""Records and bundles that are broken or meant ill: a report or a sentence, within two seconds."""

import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grape_bench.bundle import bundle
from grape_bench.errors import UserError
from grape_bench.record import RunStart
from grape_bench.registry import Registry
from grape_bench.report import build
from grape_bench.store import Store
from grape_bench.suite import Suite, expand, load
from grape_bench.validate import validate

SUITE = """
title: Tiny
baseline: none
encodings: [none, rope]
seeds: [0]
cost:
  - {lengths: [64], heads: [2], head_dim: [16], metrics: [forward_ms, peak_mib]}
accuracy:
  - {task: registers, train_length: 64, test_lengths: [64, 128]}
claims:
  - {id: C1, says: RoPE is dearer, relation: above, metric: forward_ms, encodings: [rope], against: [none]}
  - {id: C2, says: RoPE learns more, relation: above, encodings: [rope], against: [none], at: 2x}
"""
VALUES = (
    None, True, -1, 0, 1, 2**31, 2**63, 2**200, 1e308, -1e308, 5e-324, -0.0, 1e-12, "", " ", "x" * 2000, "\0", "NaN",
    [], [[]], {}, {"a": 1}, [1, "1"], [None], [0.0], [1e308] * 3, [-1.0] * 40, "ok", "failed", "rope", "../../x",
    "a/b", "\u202e", "<script>x</script>", "$(touch owned)", "__import__('os').system('touch owned')", "| a | b |",
    "2030-01-01T00:00:00Z", "\U0001f600", ["1", 2], 10**18,
)  # fmt: skip
RAW = (
    b"NaN", b"Infinity", b"1e999", b"9" * 5000, b"[" * 9000, b'{"a":' * 500, b"\xff", b"\0", b"\r", b"\n", b"", b'"',
    b"\xef\xbb\xbf",
)  # fmt: skip


@pytest.fixture(scope="module")
def tiny(sandbox, make_record) -> tuple[Suite, list[bytes]]:
    """A suite, and whole records of it."""
    Path("suites").mkdir()
    Path("suites/tiny.yaml").write_text(SUITE, encoding="utf-8")
    suite = load(Path("suites/tiny.yaml"))
    start = RunStart(run="run-1", suite="tiny", at="2024-01-01T00:00:00.000Z")
    records = [make_record(cell, suite="tiny") for cell in expand(suite)]
    return suite, [one.model_dump_json(by_alias=True).encode() for one in (start, *records)]


def mutated(line: bytes, chance: random.Random) -> bytes:
    """A record's line with a wound in its text, or a wrong value in it."""
    if chance.random() < 0.2 or not _readable(line):
        start = chance.randint(0, len(line))
        return line[:start] + chance.choice(RAW) + line[start + chance.choice([0, 1, 5]) :]
    tree = node = json.loads(line)
    while True:
        key = chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if not isinstance(node[key], dict | list) or not node[key] or chance.random() < 0.15:
            break
        node = node[key]
    if isinstance(node, dict) and chance.random() < 0.15:
        del node[key]
    else:
        node[key] = chance.choice(VALUES)
    return json.dumps(tree).encode()


def _readable(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def wounded(lines: list[bytes], seed: int) -> bytes:
    chance = random.Random(seed)
    lines = list(lines)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        lines[at : at + 1] = chance.choice(
            [[mutated(lines[at], chance)]] * 6 + [[], [lines[at]] * 2, [chance.choice(lines)]]
        )
    data = b"\n".join(lines) + b"\n"
    return chance.choice([data] * 8 + [data.replace(b"\n", b"\r\n"), data[: len(data) // 2]])


def written(data: bytes) -> Path:
    path = Path("results/toy/tiny.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def told(suite: Suite) -> str:
    """The report in both forms, without its figures, which take seconds."""
    page = build(suite, expand(suite), Store(Path("results")).records("tiny"), Registry("metrics"))
    return "".join(str(Registry("renderers")[form].load()().render(page)) for form in ("markdown", "html"))


@settings(settings.get_profile("hostile"), max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_wounded_records_are_reported_or_refused(sandbox, tiny, seed: int) -> None:
    suite, lines = tiny
    path = written(wounded(lines, seed))
    try:
        page = sandbox.call(lambda: told(suite))
    except UserError as error:
        refusal = str(error)
        assert str(path) in refusal
    else:
        assert "<script>x" not in page
    assert not Path("owned").exists()


@settings(settings.get_profile("hostile"), max_examples=60)
@given(
    seed=st.integers(0, 2**32), words=st.sampled_from(["records --json", "records", "claims tiny", "compare rope none"])
)
def test_every_reader_answers_or_refuses(sandbox, tiny, seed: int, words: str) -> None:
    _, lines = tiny
    written(wounded(lines, seed))
    assert sandbox.command(*words.split())[0] in (0, 2, 3)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_plain_file_holds_no_records(sandbox, tiny, make: Callable[[str], None]) -> None:
    written(b"").unlink()
    make("results/toy/tiny.jsonl")
    try:
        for words in ("records tiny", "report tiny", "leaderboard"):
            assert sandbox.command(*words.split())[0] == 2
    finally:
        os.rename("results/toy/tiny.jsonl", f"results/{make.__name__.strip('<>')}")


def test_a_line_without_end_is_refused(sandbox, tiny) -> None:
    path = written(b"[" * 2**23)
    assert f"{path}:1: a line of more than 1024 KiB" in sandbox.command("records", "tiny")[2]


@pytest.fixture(scope="module")
def whole(tiny) -> bytes:
    """A bundle that is accepted."""
    _, lines = tiny
    text = b"\n".join(lines) + b"\n"
    written(text.replace(b"fabricated-cpu-2-cores", b"toy").replace(b'"dirty":true', b'"dirty":false'))
    bundle(Path("suites/tiny.yaml"), Store(Path("results")), Path("whole.zip"))
    return Path("whole.zip").read_bytes()


def repacked(data: bytes, seed: int) -> bytes:
    """A bundle with a wound: in its bytes, in the name of an entry, or in what an entry holds and its manifest says."""
    chance = random.Random(seed)
    if chance.random() < 0.3:
        at = chance.randrange(len(data))
        return data[:at] + chance.choice([b"", b"\0" * 9, bytes([chance.randrange(256)])]) + data[at + 1 :]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(list(files))
    match chance.randrange(4):
        case 0:
            files[chance.choice(["../../x", "/etc/x", "records/..", "x" * 60_000, "records/\u202e.jsonl"])] = b"x"
        case 1:
            files[name] = mutated(files[name], chance) if name.endswith("json") else chance.choice(RAW)
        case 2 if name.startswith("records"):
            files[name] = wounded(files[name].rstrip(b"\n").split(b"\n"), seed)
        case _:
            del files[name]
    return packed(_signed(files))


def _signed(files: dict[str, bytes]) -> dict[str, bytes]:
    """With the digests of what is in it, so that the wound is not found by them alone."""
    from grape_bench.bundle import MANIFEST, sha256

    try:
        manifest = json.loads(files[MANIFEST])
        manifest["files"] = {name: sha256(data) for name, data in files.items() if name != MANIFEST}
        return {**files, MANIFEST: json.dumps(manifest).encode()}
    except (KeyError, ValueError, TypeError):
        return files


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@settings(settings.get_profile("hostile"), max_examples=90)
@given(seed=st.integers(0, 2**32))
def test_a_wounded_bundle_is_refused_with_a_reason(sandbox, whole, seed: int) -> None:
    path = Path("wounded.zip")
    path.write_bytes(repacked(whole, seed))
    reasons = sandbox.call(lambda: validate(path))
    assert all(isinstance(one, str) and one for one in reasons)
    assert not Path("../../x").exists()


def test_a_whole_bundle_is_accepted(sandbox, whole) -> None:
    """Else the wounds above would be found by chance."""
    Path("whole.zip").write_bytes(whole)
    assert sandbox.call(lambda: validate(Path("whole.zip"))) == []


def test_a_bundle_that_unpacks_to_gigabytes_is_refused(sandbox, whole) -> None:
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["report.md"] = b"0" * (2**28 + 1)
    Path("bomb.zip").write_bytes(packed(files))
    assert "it holds more than 256 MiB" in sandbox.call(lambda: validate(Path("bomb.zip")))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_no_bundle(sandbox, make: Callable[[str], None]) -> None:
    name = f"place-{make.__name__.strip('<>')}.zip"
    make(name)
    assert sandbox.command("validate", name)[0] in (1, 2)
