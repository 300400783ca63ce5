"""A report as one page of HTML that needs nothing beside it."""

import base64
import hashlib
from pathlib import Path
from string import Template

from grape_bench.plots import inline
from grape_bench.renderers import Renderer
from grape_bench.renderers._grid import block, escape
from grape_bench.table import Facts, Figure, Heading, Links, Piece, Prose, Report, Section, Table, Tally, Tone

_SHOW: dict[Tone, str] = {
    "failed": "failed or refuted", "skipped": "skipped", "missing": "missing", "unlearned": "did not learn",
    "faster": "faster", "slower": "slower", "smaller": "smaller", "larger": "larger",
    "better": "better", "worse": "worse", "same": "same", "unclear": "unclear or undecided",
}  # fmt: skip


class Html(Renderer):
    """One HTML5 file with its style, figures and one script inside: no network.

    The script sorts, searches, filters and unfolds tables, all of which can be read without it. It is the only one that
    the page's policy lets run, by its hash.
    """

    suffix = ".html"

    def render(self, report: Report) -> str:
        page, style, script = map(_beside, ("_page.html", "_page.css", "_page.js"))
        return Template(page).substitute(
            policy=_policy(script),
            style=style,
            script=script,
            title=escape(report.title),
            about=f"<p>{escape(report.about)}</p>" if report.about.strip() else "",
            contents="\n".join(_link(section) for section in report.sections),
            tones="\n".join(f'<option value="{tone}">{_SHOW[tone]}</option>' for tone in _tones(report)),
            sections="\n".join(_section(section) for section in report.sections),
        )


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Nothing from anywhere, and no script but ours; figures carry their style in attributes."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _tones(report: Report) -> list[Tone]:
    """What rows of this report can be filtered by."""
    found = {entry.tone for table in report.tables() for row in table.rows for entry in row}
    return [tone for tone in _SHOW if tone in found]


def _link(section: Section) -> str:
    return f'<li><a href="#{section.id}">{escape(section.title)}</a></li>'


def _section(section: Section) -> str:
    inside = "\n".join(_piece(piece) for piece in section.pieces)
    title = f'<h2 id="{section.id}-title">{escape(section.title)}</h2>'
    return f'<section id="{section.id}" aria-labelledby="{section.id}-title">\n{title}\n{inside}\n</section>'


def _piece(piece: Piece) -> str:
    match piece:
        case Prose(text):
            return f"<p>{escape(text)}</p>"
        case Heading(text):
            return f"<h3>{escape(text)}</h3>"
        case Facts(items):
            pairs = (f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in items)
            return f'<dl class="facts">{"".join(pairs)}</dl>'
        case Links(items):
            each = (f'<li><a href="{escape(to)}">{escape(name)}</a>: {escape(what)}</li>' for name, to, what in items)
            return f"<ul>{''.join(each)}</ul>"
        case Tally(counts):
            each = (f'<li class="{tone}"><b>{count}</b> {escape(word)}</li>' for tone, word, count in counts)
            return f'<ul class="tally">{"".join(each)}</ul>'
        case Figure(id=anchor, caption=caption):
            drawing = f'<div class="scroll" tabindex="0" role="group" aria-label="Figure">{inline(piece)}</div>'
            return f'<figure id="{anchor}">\n{drawing}\n<figcaption>{escape(caption)}</figcaption>\n</figure>'
        case Table():
            return block(piece)


PLUGIN = Html
