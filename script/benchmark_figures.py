"""Write the tables of benchmarks/README.md and the charts from the figures that benchmarks recorded.

``benchmarks/figures`` has what ``--json`` writes, as ``SUITE-ISA.json``: suites are eager, compiled, larger, loops and
first-call.  ``figures/earlier`` has ratios of an earlier revision on another CPU, as its page of benchmarks had them.
With ``--check``, only say whether tables and charts are up to date.
"""

from __future__ import annotations

import json
import sys
from html import escape
from math import exp, log, log2
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIGURES, PAGE, IMAGES = ROOT / "benchmarks" / "figures", ROOT / "benchmarks" / "README.md", ROOT / "docs" / "images"
SUITES = {  # what each chart and table compares with
    "eager": ("torch", "PyTorch eager ÷ ours"),
    "compiled": ("jax", "jax.jit ÷ ours"),
    "larger": ("jax", "jax.jit ÷ ours"),
    "loops": ("jax", "jax's scan, jitted ÷ ours"),
}
ISAS = {"avx512": "AVX-512", "avx2": "AVX2"}
COLOURS = {"avx512": "#3b82c4", "avx2": "#d9772b"}
LEAST, MOST = 0.5, 64  # the ends of the axis
LEFT, WIDTH, BAR, GAP = 270, 430, 7, 9  # in pixels
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1b1b1b}.faint{fill:#667}"
    "@media(prefers-color-scheme:dark){text{fill:#e8e8e8}.faint{fill:#99a}}"
)


def read_suite(suite: str) -> dict[str, dict[str, Any]]:
    """Return the recorded figures of a suite, by instruction set."""
    files = {isa: FIGURES / f"{suite}-{isa}.json" for isa in ISAS}
    return {isa: json.loads(file.read_text("utf-8")) for isa, file in files.items() if file.exists()}


def collect_ratios(suite: str, peer: str) -> dict[str, dict[str, float]]:
    """Return for each program, by its title, the peer's time over ours, by instruction set."""
    rows: dict[str, dict[str, float]] = {}
    for isa, its in read_suite(suite).items():
        for row in its["found"].values():
            if peer in row["ratios"]:
                rows.setdefault(row["title"], {})[isa] = row["ratios"][peer]
    return rows


def compute_mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


def format_number(x: float) -> str:
    """Return a figure with two or three digits."""
    return f"{x:.2f}" if x < 2 else f"{x:.1f}" if x < 10 else f"{x:,.0f}"


def format_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def format_ratios(suite: str, peer: str, head: str) -> str:
    """Return the table of a suite: a row for each program, a column for each instruction set, and the means."""
    rows = collect_ratios(suite, peer)
    isas = [isa for isa in ISAS if any(isa in row for row in rows.values())]
    lines = [[title, *(format_number(row[i]) if i in row else "–" for i in isas)] for title, row in rows.items()]
    means = [compute_mean([row[isa] for row in rows.values() if isa in row]) for isa in isas]
    lines.append(["**geometric mean**", *(f"**{mean:.2f}**" for mean in means)])
    for line in lines[:-1]:
        line += format_limits(suite, line[0], isas)
    lines[-1] += [""] * (len(lines[0]) - len(lines[-1])) if len(lines) > 1 else []
    more = [f"{ISAS[isa]}: ours / limit, µs" for isa in isas] if len(lines[0]) > 1 + len(isas) else []
    return format_table([head, *(ISAS[isa] for isa in isas), *more], lines)


def format_limits(suite: str, title: str, isas: list[str]) -> list[str]:
    """Return for each instruction set our time and the least that the machine needs; nothing where it is not known."""
    cells = []
    for isa in isas:
        row = next((r for r in read_suite(suite)[isa]["found"].values() if r["title"] == title), {})
        if row.get("limit") is not None and row.get("us") is not None:
            cells.append(f"{format_number(row['us'])} / {format_number(row['limit'])}")
    return cells if len(cells) == len(isas) else []


def format_first_calls() -> str:
    """Return the table of first calls: ours over jax.jit's, cold and with object code on disk."""
    cells: dict[str, dict[str, str]] = {}
    isas = list(read_suite("first-call"))
    for isa, its in read_suite("first-call").items():
        for row in its["found"].values():
            seconds = row["seconds"]
            if {"jax", "cold", "warm"} <= seconds.keys():
                ratios = [seconds[name] / seconds["jax"] for name in ("cold", "warm")]
                cells.setdefault(row["title"], {})[isa] = " / ".join(f"{x:.2f}" for x in ratios)
    rows = [[title, *(found.get(isa, "–") for isa in isas)] for title, found in cells.items()]
    return format_table(["ours ÷ jax.jit: cold / from disk", *(ISAS[isa] for isa in isas)], rows)


def read_earlier() -> dict[str, Any]:
    """Return the figures of an earlier revision on another CPU."""
    its: dict[str, Any] = json.loads((FIGURES / "earlier" / "intel.json").read_text("utf-8"))
    return its


def collect_earlier(suite: str) -> dict[str, dict[str, float]]:
    """Return for each program jax.jit's time over ours on the other CPU, by instruction set."""
    return {title: row["ratios"] for title, row in read_earlier()["suites"][suite].items()}


def format_cpus() -> str:
    """Return the geometric means on both CPUs, over the programs that were measured on both."""
    its = read_earlier()
    lines = []
    for suite, label in (("compiled", "small programs"), ("larger", "larger programs")):
        now, before = collect_ratios(suite, "jax"), collect_earlier(suite)
        both = [title for title in before if title in now]
        for isa, name in ISAS.items():
            means = [compute_mean([rows[title][isa] for title in both]) for rows in (now, before)]
            lines.append([f"{len(both)} {label}, {name}", *(f"{mean:.2f}" for mean in means)])
    table = format_table(
        ["jax.jit ÷ ours, geometric mean", "AMD Zen 4, this version", f"Intel, revision {its['revision']}"], lines
    )
    versions = ", ".join(f"{name} {v}" for name, v in its["versions"].items())
    about = f"{its['cpu']}; revision {its['revision']}; {versions}. {its['note']}"
    chart = f"![jax.jit ÷ revision {its['revision']} on an Intel CPU](../docs/images/benchmarks-intel.svg)"
    return f"{table}\n{chart}\n\n{about}\n"


def describe_runs() -> str:
    """Return what was measured with: versions, rounds and CPU of each recorded file."""
    lines = []
    for file in sorted(FIGURES.glob("*.json")):
        its = json.loads(file.read_text("utf-8"))
        versions = ", ".join(f"{name} {v}" for name, v in its["versions"].items())
        lines.append(f"- `{file.name}`: {its['rounds']} rounds, {its['cpu']}; {versions}")
    return "\n".join(lines) + "\n"


def draw_charts() -> dict[Path, str]:
    """Return the chart of the README, and one for each table, by where they are written."""
    both = {
        "eager, PyTorch's time ÷ ours": collect_ratios("eager", "torch"),
        "compiled, jax.jit's time ÷ ours": collect_ratios("larger", "jax"),
    }
    charts = {IMAGES / "benchmarks.svg": draw_chart(both)}
    heads = {"larger": "larger programs on an Intel CPU", "compiled": "small programs on an Intel CPU"}
    label = f"jax.jit ÷ revision {read_earlier()['revision']}"
    charts[IMAGES / "benchmarks-intel.svg"] = draw_chart(
        {f"{head}, {label}": collect_earlier(suite) for suite, head in heads.items()}
    )
    for suite, (peer, head) in SUITES.items():
        charts[IMAGES / f"benchmarks-{suite}.svg"] = draw_chart({head: collect_ratios(suite, peer)})
    return charts


def draw_chart(groups: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return a chart: for each program a bar for each instruction set, on a logarithmic axis."""
    scale = WIDTH / log2(MOST / LEAST)
    parts: list[str] = []
    y = 30
    for heading, rows in groups.items():
        parts.append(f'<text x="8" y="{y + 14}" style="font-weight:600">{escape(heading)}</text>')
        y += 26
        for title, ratios in rows.items():
            parts.append(f'<text x="{LEFT - 8}" y="{y + BAR + 3}" text-anchor="end">{escape(title)}</text>')
            for isa, ratio in ratios.items():
                length = scale * log2(min(max(ratio, LEAST), MOST) / LEAST)
                figure = f'<text class="faint" x="{LEFT + length + 5:.0f}" y="{y + BAR}" style="font-size:9px">'
                parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{COLOURS[isa]}"/>')
                parts.append(f"{figure}{format_number(ratio)}</text>")
                y += BAR + 1
            y += GAP
        y += 6
    grid = []
    for power in range(int(log2(LEAST)), int(log2(MOST)) + 1):
        x = LEFT + scale * (power - log2(LEAST))
        colour = "#c800a0" if power == 0 else "rgba(128,128,128,.3)"
        grid.append(f'<path d="M{x:.1f} 24V{y}" stroke="{colour}"/>')
        grid.append(f'<text class="faint" x="{x:.1f}" y="16" text-anchor="middle">{2.0**power:g}</text>')
    legend = "".join(
        f'<rect x="{8 + 90 * i}" y="6" width="10" height="10" fill="{COLOURS[isa]}"/>'
        f'<text x="{22 + 90 * i}" y="15">{name}</text>'
        for i, (isa, name) in enumerate(ISAS.items())
    )
    size = f'width="{LEFT + WIDTH + 40}" height="{y + 6}" viewBox="0 0 {LEFT + WIDTH + 40} {y + 6}"'
    label = "time of PyTorch and jax.jit divided by that of pullback; above 1 pullback is faster"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}"><style>{STYLE}</style>'
    return f"{head}{''.join(grid)}{legend}{''.join(parts)}</svg>\n"


def write_page() -> str:
    """Return benchmarks/README.md with the tables between its markers."""
    tables = {
        **{
            suite: f"![{head}](../docs/images/benchmarks-{suite}.svg)\n\n{format_ratios(suite, peer, head)}"
            for suite, (peer, head) in SUITES.items()
        },
        "first calls": format_first_calls(),
        "cpus": format_cpus(),
        "runs": describe_runs(),
    }
    text = PAGE.read_text("utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- {name}: written by script/benchmark_figures.py -->\n", "<!-- end -->"
        if begin in text:
            before, rest = text.split(begin, 1)
            text = f"{before}{begin}\n{table}\n{end}{rest.split(end, 1)[1]}"
    return text


if __name__ == "__main__":
    made = {PAGE: write_page(), **draw_charts()}
    for path, text in made.items():
        if "--check" not in sys.argv:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is not up to date: run python script/benchmark_figures.py")
