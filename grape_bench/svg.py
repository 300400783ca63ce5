"""What becomes of matplotlib's SVG text: unique ids, ink, a title, and a style of its own for a file."""

import re
import xml.etree.ElementTree as ET

from grape_bench.palette import INK

_FONTS = "font-family:system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_FILE_CSS = (
    f"svg{{color:#1c1f24;background:#fff;{_FONTS}}}"
    "@media(prefers-color-scheme:dark){svg{color:#e4e6eb;background:#16181d}}"
)  # fmt: skip


def embed(drawing: str, name: str, title: str) -> str:
    """An `<svg>` for the inside of a page.

    Args:
        drawing: what matplotlib wrote.
        name: prefix of its ids, since a page has one space of ids for all its figures.
        title: read by those who do not see it.
    """
    root = _parse(drawing, name, title)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    return _text(root)


def file(drawing: str, name: str, title: str) -> str:
    """A whole SVG file, readable in light and dark."""
    root = _parse(drawing, name, title)
    style = ET.Element("style")
    style.text = _FILE_CSS
    root.insert(1, style)
    root.set("xmlns", "http://www.w3.org/2000/svg")
    return _text(root) + "\n"


def _parse(drawing: str, name: str, title: str) -> ET.Element:
    root = ET.fromstring(drawing)
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): _value(_local(key), value, name) for key, value in element.attrib.items()}
    heading = ET.Element("title", id=f"{name}-title")
    heading.text = title
    root.insert(0, heading)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title", "stroke-linejoin": "round"}
    return root


def _value(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value.removeprefix('#')}"
    value = value.replace(INK, "currentColor").replace("font-family: 'DejaVu Sans'; ", "")
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", value)


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _text(root: ET.Element) -> str:
    return ET.tostring(root, encoding="unicode")
