"""Figures as SVG: readable on light and dark, told apart without colour, the same bytes each time."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from grape_bench.interval import Interval
from grape_bench.legend import apart
from grape_bench.palette import INK, PALETTE, style
from grape_bench.plots import inline, printed, standalone
from grape_bench.table import Curve, Dot, Figure, Panel

NAN = float("nan")


def _figure(name="one", panels=1, label="rope", share=True):
    curves = (
        Curve(label, 0, (64.0, 128.0), (0.9, 0.7), (0.8, NAN), (1.0, NAN)),
        Curve("none", 1, (64.0, 128.0), (0.3, 0.3), doubtful=True),
    )
    panel = Panel("float32", curves, (("blind ceiling", 1 / 3), ("chance", 0.1)) if share else (), ("trained", 64))
    return Figure(name, f"Caption of {name}", "length, tokens", "accuracy", (panel,) * panels, share=share)


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour):
    """Relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("paper", ["#ffffff", "#16181d"])
@pytest.mark.parametrize("colour", PALETTE)
def test_line_colours_have_contrast_in_light_and_dark(colour, paper):
    assert _contrast(colour, paper) >= 3


def test_thirty_encodings_look_different():
    looks = [style(slot) for slot in range(30)]
    assert len({(look.colour, look.dashes) for look in looks}) == 30
    assert len({(look.colour, look.marker) for look in looks}) == 30


@pytest.mark.parametrize("panels", [1, 2, 3])
@pytest.mark.parametrize("share", [True, False])
def test_a_drawing_is_well_formed_and_says_what_it_shows(panels, share):
    root = ET.fromstring(inline(_figure(panels=panels, share=share)))
    assert root.tag == "svg"
    assert root.get("role") == "img"
    title = root.find("title")
    assert title.text == "Caption of one"
    assert root.get("aria-labelledby") == title.get("id")
    texts = ["".join(element.itertext()) for element in root.iter("text")]
    assert {"rope", "none", "length, tokens", "accuracy", "64", "128", "trained"} <= set(texts)
    assert ("blind ceiling .333" in texts) == share


def test_ink_takes_the_colour_of_the_text_around():
    text = inline(_figure())
    assert INK not in text
    assert "currentColor" in text
    assert "#000000" not in text
    assert "<style" not in text  # it would style the whole page
    assert "background" not in text


def test_a_file_follows_the_readers_scheme():
    text = standalone(_figure())
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in text
    assert re.search(r'width="[\d.]+pt"', text)


def test_two_drawings_share_no_id_and_point_at_their_own():
    for name, other in (("one", "two"), ("two", "one")):
        root = ET.fromstring(inline(_figure(name)))
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        assert all(one.startswith(f"{name}-") for one in ids)
        text = inline(_figure(name))
        pointed = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
        assert {first or second for first, second in pointed} <= set(ids)
        assert f'"{other}-' not in text


def test_drawings_reproduce_byte_for_byte():
    assert standalone(_figure()) == standalone(_figure())


def test_nothing_is_loaded_from_elsewhere():
    assert not re.search(r'(?:href|src)="(?!#)', inline(_figure()))
    assert "http" not in inline(_figure()).replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("label", ["<script>alert(1)</script>", "a$b$ & 'c' \"d\"", "x" * 300])
def test_any_name_is_shown_as_text(label):
    root = ET.fromstring(inline(_figure(label=label)))
    assert not list(root.iter("script"))
    texts = ["".join(element.itertext()) for element in root.iter("text")]
    assert any(text == label or (text.endswith("…") and label.startswith(text[:-1])) for text in texts)


def _front(share=True):
    low, high = Interval(0.1, 0.2, 0.3, 5), Interval(0.6, 0.7, 0.8, 5)
    dots = (
        Dot("rope", 0, Interval.exact(1.0), low),
        Dot("alibi", 1, Interval(1.1, 1.2, 1.3, 5), high),
        Dot("t5", 2, Interval(2.0, 2.5, 3.0, 5), Interval(NAN, 0.5, NAN), beaten=True),
    )
    return Figure("front", "Scores and costs", "cost", "score", (Panel("time", dots=dots),), share=share)


@pytest.mark.parametrize("share", [True, False])
def test_dots_are_named_and_the_beaten_ones_are_rings(share):
    root = ET.fromstring(inline(_front(share)))
    texts = ["".join(element.itertext()) for element in root.iter("text")]
    assert {"rope", "alibi", "t5", "time", "cost", "score"} <= set(texts)
    rings = [one.get("style") for one in root.iter("use") if "fill-opacity: 0" in (one.get("style") or "")]
    assert len(rings) == 1
    assert PALETTE[2] in rings[0]


@pytest.mark.parametrize("form", ["pdf", "png"])
@pytest.mark.parametrize("figure", [_figure(), _front()], ids=["curves", "dots"])
def test_papers_get_the_same_bytes_without_a_date(form, figure):
    content = printed(figure, form)
    assert content == printed(figure, form)
    assert content.startswith({"pdf": b"%PDF", "png": b"\x89PNG"}[form])
    assert not re.search(rb"CreationDate|Producer|Software|atplotlib", content)


def test_a_figure_without_lines_can_be_drawn():
    empty = Figure("one", "Nothing", "length, tokens", "ms", (Panel("", ()),))
    assert ET.fromstring(inline(empty)).tag == "svg"


@pytest.mark.parametrize("wanted", [[], [0.5], [0.5, 0.5, 0.5], [0.0, 0.01, 0.99, 1.0], [0.1] * 20, [0.2, 0.9, 0.91]])
def test_names_move_apart_and_keep_their_order(wanted):
    places = apart(wanted, 0.05)
    assert len(places) == len(wanted)
    assert all(high - low >= 0.05 - 1e-9 for low, high in pairwise(places))
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)


def test_names_that_have_room_stay():
    assert apart([0.1, 0.5, 0.9], 0.05) == pytest.approx([0.1, 0.5, 0.9])
    assert apart([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
