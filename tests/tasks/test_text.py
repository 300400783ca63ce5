"""Text against the files that it is cut from."""

import hashlib
import math
import sysconfig
from collections import Counter
from pathlib import Path

import pytest
import torch

from grape_bench.errors import Unsupported
from grape_bench.tasks import Batch
from grape_bench.tasks.text import Text


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def python() -> Text:
    return Text()


@pytest.fixture(scope="module")
def sources() -> tuple[bytes, bytes]:
    """Training and test text, put together anew: of the library's modules by name, each tenth is for tests."""
    folder = Path(sysconfig.get_path("stdlib"))
    names = sorted(one.name for one in folder.iterdir() if one.suffix == ".py" and one.name[0] != "_")
    whole = [(folder / name).read_bytes() for name in names if name != "sitecustomize.py"]
    train = [content for index, content in enumerate(whole) if index % 10 != 0]
    return b"".join(train), b"".join(whole[::10])


@pytest.fixture
def letters(tmp_path: Path) -> Text:
    """A text of 1000 bytes whose last 100 are of other letters."""
    path = tmp_path / "letters.txt"
    path.write_bytes(bytes(97 + index % 20 for index in range(900)) + b"XYZ0123456" * 10)
    return Text(file=str(path))


def windows(batch: Batch) -> list[bytes]:
    """Each sequence with its last label behind it."""
    pairs = zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True)
    return [bytes([*tokens, labels[-1]]) for tokens, labels in pairs]


def test_each_label_is_the_byte_after_its_token(python: Text) -> None:
    for batch in (python.batch(20, 100, generator()), python.held_out(20, 100, generator())):
        assert torch.equal(batch.labels[:, :-1], batch.tokens[:, 1:])
        assert batch.labels.shape == batch.tokens.shape == (20, 100)


def test_a_reader_who_has_the_text_knows_every_label(python: Text, sources: tuple[bytes, bytes]) -> None:
    """It looks the tokens up and reads on; the ring is the text put behind itself."""
    batches = python.batch(40, 100, generator()), python.held_out(40, 100, generator())
    for batch, text in zip(batches, sources, strict=True):
        ring = text + text[:200]
        for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
            found = [place for place in _places(ring, bytes(tokens)) if ring[place + 100] == labels[-1]]
            assert found
            assert list(ring[found[0] + 1 : found[0] + 101]) == labels


def _places(text: bytes, part: bytes) -> list[int]:
    found, place = [], text.find(part)
    while place >= 0:
        found.append(place)
        place = text.find(part, place + 1)
    return found


def test_tests_are_cut_from_files_that_no_training_sees(python: Text, sources: tuple[bytes, bytes]) -> None:
    train, test = sources
    alone = [one for one in windows(python.held_out(200, 64, generator())) if one not in train]
    assert len(alone) > 180  # a few lines, such as a licence, stand in several files
    assert all(one in test + test[:64] for one in alone)


def test_tests_ask_for_the_same_bytes_at_every_length_and_seed(python: Text) -> None:
    short, long = python.held_out(30, 64, generator(1)), python.held_out(30, 256, generator(2))
    assert torch.equal(short.labels[:, -32:], long.labels[:, -32:])
    assert torch.equal(short.tokens, long.tokens[:, -64:])


def test_trainings_draw_their_windows(python: Text) -> None:
    one, same, other = (python.batch(8, 64, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.tokens, same.tokens)
    assert not torch.equal(one.tokens, other.tokens)


def test_labels_are_grouped_by_position_and_the_last_ones_are_the_headline(python: Text) -> None:
    names = [group.name for group in python.groups]
    groups = [names[index] for index in python.held_out(2, 300, generator()).groups.tolist()]
    assert groups[-32:] == ["end"] * 32
    for position, name in enumerate(groups[:-32]):
        low, high = map(int, name.split("-"))
        assert low <= position <= high
    assert list(dict.fromkeys(groups)) == ["0-31", "32-63", "64-127", "128-255", "256-511", "end"]


def test_blind_is_a_byte_unigram_of_the_training_text(python: Text, sources: tuple[bytes, bytes]) -> None:
    train, test = (Counter(one) for one in sources)
    size, total = sum(train.values()) + 256, sum(test.values())
    loss = -sum(count * math.log((train[byte] + 1) / size) for byte, count in test.items()) / total
    group = python.groups[0]
    assert group.blind_nats == pytest.approx(loss, rel=1e-9)
    assert group.blind == pytest.approx(test[train.most_common(1)[0][0]] / total)
    assert (group.chance, -math.log(group.chance)) == (1 / 256, pytest.approx(5.545, abs=1e-3))


def test_a_reader_of_the_bag_of_bytes_gains_a_tenth_of_a_nat_on_it(python: Text, sources: tuple[bytes, bytes]) -> None:
    """It mixes the bytes before with the unigram, at the best of several weights."""
    batch, counts = python.held_out(300, 128, generator()), Counter(sources[0])
    unigram = torch.tensor([counts[byte] + 1 for byte in range(256)], dtype=torch.float64)
    unigram /= unigram.sum()
    asked = batch.labels[:, -1:]
    bag = torch.zeros(300, 256, dtype=torch.float64).scatter_add_(1, batch.tokens, torch.ones(300, 128).double())

    def loss(weight: float) -> torch.Tensor:
        return -((bag + weight * unigram) / (128 + weight)).gather(1, asked).log()

    alone = loss(1e12)
    best = min((loss(weight) for weight in (16.0, 32.0, 64.0, 128.0, 256.0)), key=lambda one: one.mean().item())
    gain = alone - best  # byte by byte, so that which bytes are asked for does not scatter it
    assert gain.mean().item() == pytest.approx(0.1, abs=4 * gain.std().item() / math.sqrt(300))
    noise = 4 * alone.std().item() / math.sqrt(300)
    assert alone.mean().item() == pytest.approx(python.groups[0].blind_nats, abs=noise)


def test_the_last_tenth_of_a_file_is_for_tests(letters: Text) -> None:
    train, test = letters.batch(50, 40, generator()), letters.held_out(20, 40, generator())
    assert set(train.tokens.flatten().tolist()) == set(range(ord("a"), ord("a") + 20))
    assert set(test.tokens.flatten().tolist()) == set(b"XYZ0123456")


def test_the_digest_is_that_of_both_parts(letters: Text, tmp_path: Path, python: Text) -> None:
    content = (tmp_path / "letters.txt").read_bytes()
    assert letters.digest == hashlib.sha256((900).to_bytes(8, "big") + content).hexdigest()[:16]
    (tmp_path / "letters.txt").write_bytes(content[:-1] + b"!")
    assert Text(file=str(tmp_path / "letters.txt")).digest not in (letters.digest, python.digest)


def test_windows_go_round_where_the_text_ends(letters: Text) -> None:
    """The first test window ends at the first byte of the text, and all before it stands at the end."""
    (first, *_) = windows(letters.held_out(4, 40, generator()))
    assert first == (b"XYZ0123456" * 4) + b"X"


@pytest.mark.parametrize("length", [32, 100, 5000])
def test_lengths_beyond_the_text_or_within_its_headline_are_unsupported(letters: Text, length: int) -> None:
    with pytest.raises(Unsupported, match=f"fewer than 100 tokens, got {length}"):
        letters.held_out(2, length, generator())


def test_a_text_that_cannot_be_read_or_cut_is_unsupported(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"too few")
    with pytest.raises(Unsupported, match="No such file"):
        Text(file=str(tmp_path / "none"))
    with pytest.raises(Unsupported, match="7 bytes are too few"):
        Text(file=str(tmp_path / "short"))


def test_a_python_without_its_sources_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(Unsupported, match="give another text as file="):
        Text()
