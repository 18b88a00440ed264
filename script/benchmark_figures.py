"""Write the tables of benchmarks/README.md and the charts from the figures that benchmarks recorded.

``benchmarks/figures`` has what ``benchmarks/record.py`` wrote, as ``SUITE-ISA.json``: suites are eager, compiled,
larger, loops, first-call and trainings.  Each of its folders has the same of another CPU.  With ``--check``, only say
whether tables and charts are up to date.
"""

from __future__ import annotations

import json
import sys
import textwrap
from html import escape
from math import ceil, exp, floor, log, log2
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))
from code_lines import count_lines  # noqa: E402

FIGURES, PAGE, IMAGES = ROOT / "benchmarks" / "figures", ROOT / "benchmarks" / "README.md", ROOT / "docs" / "images"
SUITES = {  # what each chart and table compares with
    "eager": ("torch", "PyTorch eager ÷ ours"),
    "compiled": ("jax", "jax.jit ÷ ours"),
    "larger": ("jax", "jax.jit ÷ ours"),
    "loops": ("jax", "jax's scan, jitted ÷ ours"),
}
ISAS = {"avx512": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sse4": "SSE4", "sse2": "SSE2", "neon": "NEON"}
COLOURS = dict(zip(ISAS, ("#3b82c4", "#d9772b", "#3fa34d", "#8a63b8", "#7d6a55", "#c85fa3"), strict=True))
LEFT, WIDTH, RIGHT, BAR, GAP = 270, 420, 70, 7, 9  # in pixels
NAMES = {"eager": "op by op", "compiled": "small programs", "larger": "larger programs", "loops": "loops"}
STYLE = "text{font:12px system-ui,sans-serif;fill:#1b1b1b}.faint{fill:#667}"


def read_suite(suite: str, folder: Path = FIGURES) -> dict[str, dict[str, Any]]:
    """Return the recorded figures of a suite, by instruction set."""
    files = {isa: folder / f"{suite}-{isa}.json" for isa in ISAS}
    return {isa: json.loads(file.read_text("utf-8")) for isa, file in files.items() if file.exists()}


def collect_ratios(suite: str, folder: Path = FIGURES) -> dict[str, dict[str, float]]:
    """Return for each program, by its title, the peer's time over ours, by instruction set."""
    rows: dict[str, dict[str, float]] = {}
    peer, _ = SUITES[suite]
    for isa, its in read_suite(suite, folder).items():
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


def format_ratios(suite: str, head: str) -> str:
    """Return the table of a suite: a row for each program, a column for each instruction set, and the means."""
    rows = collect_ratios(suite)
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


def format_trainings() -> str:
    """Return the table of the nine trainings: results, ratios by instruction set, and lines of code."""
    found, libraries = read_suite("trainings"), ("ours", "torch", "jax", "keras")
    rows = []
    for name, row in next(iter(found.values()))["found"].items():
        cells = [f"{fmean(its):.3g} ± {pstdev(its):.2g}" for its in row["results"].values()]
        for peer in row["ratios"]:
            cells += [format_number(its["found"][name]["ratios"][peer]) for its in found.values()]
        cells += [str(count_lines(PAGE.parent / f"trainings_{library}.py", name)) for library in libraries]
        rows.append([row["title"], *cells])
    head = ["", "result", "torch's", "jax's", *(f"{p} ÷ ours, {ISAS[i]}" for p in ("torch", "jax") for i in found)]
    return format_table([*head, "lines", "torch's", "jax's", "Keras's"], rows)


def list_other_cpus() -> list[Path]:
    """Return the folders with figures of other CPUs."""
    return sorted(path for path in FIGURES.iterdir() if path.is_dir())


def read_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what is recorded in a folder, by the names of the files."""
    return {file.name: json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))}


def describe_machine(files: list[dict[str, Any]]) -> str:
    """Return the CPU, revision and date of recorded figures."""
    facts = [[its[key] for its in files] for key in ("cpu", "revision", "date")]
    cpu, revision, day = (" and ".join(dict.fromkeys(texts)) for texts in facts)
    return f"{cpu}; revision {revision}, {day}"


def name_cpu(folder: Path) -> str:
    """Return the CPU that the figures of a folder are of."""
    return " and ".join(dict.fromkeys(its["cpu"] for its in read_files(folder).values()))


def format_cpus() -> str:
    """Return a section for each other CPU: its means beside those of the page's own, a chart, and what it is."""
    return "\n".join(map(format_cpu, list_other_cpus()))


def format_cpu(folder: Path) -> str:
    """Return the section of another CPU; means are over the programs that were measured on both."""
    files = read_files(folder)
    lines = []
    for suite, (_, head) in SUITES.items():
        here, there = collect_ratios(suite), collect_ratios(suite, folder)
        for isa in read_suite(suite, folder):
            both = [title for title, row in there.items() if isa in row and isa in here.get(title, {})]
            if both:
                means = [f"{compute_mean([rows[title][isa] for title in both]):.2f}" for rows in (here, there)]
                lines.append([f"{suite}, {head}, {ISAS[isa]}: {len(both)} programs", *means])
    its = next(iter(files.values()))
    table = format_table(["geometric mean", name_cpu(FIGURES), name_cpu(folder)], lines)
    chart = f"![Time of the others ÷ ours: {its['cpu']}](../docs/images/benchmarks-{folder.name}.svg)"
    note = f"{its['note']}\n\n" if its.get("note") else ""
    return f"### {its['cpu']}\n\n{note}{table}\n{chart}\n\n{format_runs(folder)}"


def format_runs(folder: Path) -> str:
    """Return what the recorded files of a folder were measured on and with."""
    files = read_files(folder)
    rows = []
    for name, its in files.items():
        versions = ", ".join(f"{name} {v}" for name, v in its["versions"].items() if name != "pullback")
        facts = [ISAS[its["isa"]], its["revision"], its["date"], str(its["rounds"])]
        rows.append([f"`{name}`", *facts, versions])
    return format_table(["figures", "instruction set", "revision", "date", "rounds", "versions"], rows)


def draw_charts() -> dict[Path, str]:
    """Return the chart of the README, one for each table, and one for each other CPU, by where they are written."""
    charts = {IMAGES / "benchmarks.svg": draw_summary()}
    for suite, (_, head) in SUITES.items():
        charts[IMAGES / f"benchmarks-{suite}.svg"] = draw_chart(
            {f"{NAMES[suite]}: {head}": collect_ratios(suite)}, describe_machine([*read_suite(suite).values()])
        )
    for folder in list_other_cpus():
        groups = {f"{NAMES[suite]}: {head}": collect_ratios(suite, folder) for suite, (_, head) in SUITES.items()}
        charts[IMAGES / f"benchmarks-{folder.name}.svg"] = draw_chart(
            {head: rows for head, rows in groups.items() if rows}, describe_machine([*read_files(folder).values()])
        )
    return charts


class Axis:
    """A logarithmic axis of ratios, from a power of two to one, with 1 on it."""

    def __init__(self, ratios: list[float], left: int = LEFT) -> None:
        self.first, self.last, self.left = min(-1, floor(log2(min(ratios)))), ceil(log2(max(ratios))), left

    def locate(self, ratio: float) -> float:
        """Return the pixel of a ratio."""
        return self.left + WIDTH * (log2(ratio) - self.first) / (self.last - self.first)

    def draw(self, height: float, top: float = 2) -> str:
        """Return lines at the powers of two, with numbers above; the one at 1 is marked."""
        parts = []
        for power in range(self.first, self.last + 1):
            x, colour = self.locate(2.0**power), "#c800a0" if power == 0 else "rgba(128,128,128,.3)"
            parts.append(f'<path d="M{x:.1f} {top + 22}V{height}" stroke="{colour}"/>')
            parts.append(f'<text class="faint" x="{x:.1f}" y="{top + 14}" text-anchor="middle">{2.0**power:g}</text>')
        return "".join(parts)


def write_text(x: float, y: float, text: str, style: str = "", anchor: str = "start", kind: str = "plain") -> str:
    """Return a line of text."""
    look = f'class="{kind}" style="{style}" text-anchor="{anchor}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {look}>{escape(text)}</text>'


def draw_chart(groups: dict[str, dict[str, dict[str, float]]], machine: str) -> str:
    """Return a chart: for each program a bar from 1 to its ratio, for each instruction set; the machine below."""
    axis = Axis([ratio for rows in groups.values() for row in rows.values() for ratio in row.values()])
    parts: list[str] = []
    y = 30
    for heading, rows in groups.items():
        parts.append(write_text(8, y + 14, heading, "font-weight:600"))
        y += 26
        for title, ratios in rows.items():
            parts.append(write_text(LEFT - 8, y + BAR + 3, title, anchor="end"))
            for isa, ratio in ratios.items():
                left, right = sorted([axis.locate(1.0), axis.locate(ratio)])
                size = f'width="{max(right - left, 1):.1f}" height="{BAR}"'
                parts.append(f'<rect x="{left:.1f}" y="{y}" {size} fill="{COLOURS[isa]}"/>')
                parts.append(write_text(right + 5, y + BAR, format_number(ratio), "font-size:9px", kind="faint"))
                y += BAR + 1
            y += GAP
        y += 6
    shown = [isa for isa in ISAS if any(isa in row for rows in groups.values() for row in rows.values())]
    return frame_chart(axis.draw(y) + "".join(parts), y, shown, ["Right of 1 pullback is faster.", machine])


def draw_summary() -> str:
    """Return the chart of the README, narrow enough for a phone: a dot for each program of each suite, and the mean."""
    suites = {suite: collect_ratios(suite) for suite in SUITES}
    left, mean_at = 16, 16 + WIDTH + 30
    axis = Axis([ratio for rows in suites.values() for row in rows.values() for ratio in row.values()], left)
    parts: list[str] = []
    y = 58
    for suite, rows in suites.items():
        peer = SUITES[suite][1].removesuffix(" ÷ ours")
        about = f"{NAMES[suite]}: {peer}, {len(rows)} programs"
        parts.append(write_text(left, y + 8, about, "font-weight:600;stroke:#fff;stroke-width:5;paint-order:stroke"))
        y += 18
        for isa in read_suite(suite):
            ratios = [row[isa] for row in rows.values() if isa in row]
            mean = compute_mean(ratios)
            fill = f'fill="{COLOURS[isa]}" fill-opacity=".45"'
            parts += [f'<circle cx="{axis.locate(ratio):.1f}" cy="{y + 8}" r="4" {fill}/>' for ratio in ratios]
            parts.append(f'<rect x="{axis.locate(mean) - 2:.1f}" y="{y}" width="4" height="16" fill="{COLOURS[isa]}"/>')
            parts.append(write_text(mean_at, y + 12, f"{mean:.1f}", "font-weight:600"))
            y += 20
        y += 8
    parts.append(write_text(mean_at, 44, "mean"))
    shown = [isa for isa in ISAS if any(isa in read_suite(suite) for suite in SUITES)]
    machine = describe_machine([its for suite in SUITES for its in read_suite(suite).values()])
    about = "A dot is a program: the other library's time ÷ ours; right of 1 pullback is faster."
    return frame_chart(axis.draw(y - 4, 30) + "".join(parts), y - 4, shown, [about, machine], mean_at + 34)


def frame_chart(content: str, y: float, isas: list[str], about: list[str], width: int = LEFT + WIDTH + RIGHT) -> str:
    """Return a picture with a legend above its content, of the height y, and lines of words below."""
    legend = "".join(
        f'<rect x="{8 + 90 * i}" y="6" width="10" height="10" fill="{COLOURS[isa]}"/>'
        + write_text(22 + 90 * i, 15, ISAS[isa])
        for i, isa in enumerate(isas)
    )
    words = ""
    for line in [line for text in about for line in textwrap.wrap(text, width // 6)]:
        y += 16
        words += write_text(8, y + 4, line, "font-size:11px", kind="faint")
    size = f'width="{width}" height="{y + 12}" viewBox="0 0 {width} {y + 12}"'
    label = "time of PyTorch and jax.jit divided by that of pullback; above 1 pullback is faster"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}"><style>{STYLE}</style>'
    back = (
        '<rect width="100%" height="100%" fill="#fff"/>'  # a page need not be as dark or light as its reader's system
    )
    return f"{head}{back}{content}{legend}{words}</svg>\n"


def write_page() -> str:
    """Return benchmarks/README.md with the tables between its markers."""
    tables = {
        **{
            suite: f"![{head}](../docs/images/benchmarks-{suite}.svg)\n\n{format_ratios(suite, head)}"
            for suite, (_, head) in SUITES.items()
        },
        "first calls": format_first_calls(),
        "trainings": format_trainings(),
        "cpus": format_cpus(),
        "runs": f"CPU: {name_cpu(FIGURES)}\n\n{format_runs(FIGURES)}",
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
