"""Pieces of HTML: escaped text, tables, and the frame around an object's representation.

Colours are those of the page, more or less transparent, so that light and dark themes both work: a style sheet could
only query the browser's theme, not the notebook's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as escape_text

FAINT = "opacity:.65"
RULE = "1px solid rgba(128,128,128,.35)"
WHOLE = 20  # letters of a cell of a table that is not broken into lines
MONOSPACE = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.92em"


class Markup(str):
    """Text that is HTML already; any other text is escaped where it is used."""

    __slots__ = ()


def escape(text: object) -> Markup:
    """Return text as HTML that shows it.

    >>> escape("<b> & co")
    '&lt;b&gt; &amp; co'
    >>> escape(Markup("<b>bold</b>"))
    '<b>bold</b>'
    """
    return text if isinstance(text, Markup) else Markup(escape_text(str(text)))


def render_frame(title: object, facts: Iterable[object] = (), *parts: object) -> Markup:
    """Return a title, facts beside it, and parts below.

    >>> render_frame("Tensor", ["float32", "[3]"])[:44]
    '<div style="overflow-x:auto;max-width:100%">'
    """
    beside = " · ".join(escape(fact) for fact in facts)
    head = f'<b>{escape(title)}</b> <span style="{FAINT}">{beside}</span>'
    body = "".join(f'<div style="margin:.3em 0">{escape(part)}</div>' for part in parts if part)
    return Markup(f'<div style="overflow-x:auto;max-width:100%"><div>{head}</div>{body}</div>')


def render_text(text: object, label: str = "", wrap: bool = True) -> Markup:
    """Return text with its line breaks and spaces, under a heading that opens it if there is a label.

    Without ``wrap`` a line that is too long stays whole, as columns of numbers must.

    >>> render_text("a  b").endswith(">a  b</pre>")
    True
    """
    style = f"margin:0;background:none;white-space:{'pre-wrap' if wrap else 'pre'};line-height:1.4;{MONOSPACE}"
    block = f'<pre style="{style}">{escape(text)}</pre>'
    if not label:
        return Markup(block)
    return Markup(f'<details><summary style="cursor:pointer">{escape(label)}</summary>{block}</details>')


def render_table(header: Sequence[object], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> Markup:
    """Return a table; the columns named in ``right`` are set flush right, as numbers are.

    >>> render_table(["op", "bytes"], [["exp", 16]], right=[1]).count("<td")
    2
    """

    def line(cells: Sequence[object], tag: str, style: str) -> str:
        return "".join(
            f'<{tag} style="text-align:{"right" if i in right else "left"};padding:.1em .7em .1em 0;{style}'
            f'{";white-space:nowrap" * (tag == "td" and len(str(cell)) <= WHOLE)}">{escape(cell)}</{tag}>'
            for i, cell in enumerate(cells)
        )

    plain = "background:none;border:none"
    lines = "".join(f'<tr style="{plain}">{line(row, "td", "vertical-align:top")}</tr>' for row in rows)
    head = f'<tr style="{plain}">{line(header, "th", f"vertical-align:bottom;border-bottom:{RULE}")}</tr>'
    return Markup(
        f'<table style="border-collapse:collapse;{MONOSPACE}"><thead>{head}</thead><tbody>{lines}</tbody></table>'
    )
