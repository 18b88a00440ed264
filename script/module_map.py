"""Write the maps of the source code from the import contracts and the modules' docstrings.

``docs/modules.md`` lists every module; between two marker comments CONTRIBUTING.md has a table of the packages and
docs/how-it-works.md the order of imports.  With ``--check``, only say whether they are up to date.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pullback"
BEGIN, END = "<!-- begin: written by script/module_map.py -->\n", "<!-- end -->\n"

MODULES_HEAD = """\
# Modules

Every module of `src/pullback` with the first sentence of its docstring, package by package; a package may import from
those below it. Written by `script/module_map.py` from the import contracts in `pyproject.toml`.
"""


def read_layers() -> dict[str, list[list[str]]]:
    """Return for each package with a layers contract its layers from the top down, each a list of names."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers: dict[str, list[list[str]]] = {}
    for contract in contracts:
        if contract["type"] == "layers":
            for container in contract.get("containers", []):
                rows = [[name.strip(" ()") for name in re.split(r"[|:]", row)] for row in contract["layers"]]
                layers[container] = [[n for n in row if find_source(container, n)] for row in rows]
    return {container: [row for row in rows if row] for container, rows in layers.items()}


def find_source(container: str, name: str) -> Path | None:
    """Return the file with the docstring of a module or package, or None if there is no such module."""
    folder = ROOT / "src" / Path(*container.split("."))
    found = [path for path in (folder / name / "__init__.py", folder / f"{name}.py") if path.exists()]
    return found[0] if found else None


def read_summary(path: Path) -> str:
    """Return the first sentence of a module's docstring."""
    docstring = re.match(r'"""(.*?)"""', path.read_text("utf-8"), re.DOTALL)
    text = docstring[1].split("\n\n")[0] if docstring else ""
    return re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0].replace("``", "`").replace("|", r"\|")


def format_order(rows: list[list[str]]) -> str:
    """Return layers as one line, from the importing to the imported."""
    return " → ".join(" | ".join(f"`{name}`" for name in row) for row in rows)


def format_packages(layers: dict[str, list[list[str]]]) -> str:
    """Return the table of packages, with those inside a package below it."""
    lines = ["| package or module | contents |", "|---|---|"]
    for name in (name for row in layers["pullback"] for name in row):
        source = find_source("pullback", name)
        assert source is not None
        lines.append(f"| `{name}` | {read_summary(source)} |")
        for inner in (inner for row in layers.get(f"pullback.{name}", []) for inner in row):
            source = find_source(f"pullback.{name}", inner)
            assert source is not None
            lines.append(f"| `{name}.{inner}` | {read_summary(source)} |")
    return "\n".join(lines) + "\n"


def format_orders(layers: dict[str, list[list[str]]]) -> str:
    """Return the order of imports in every package with a layers contract."""
    orders = [f"- `{container}`: {format_order(rows)}" for container, rows in layers.items()]
    text = "A package may import those to the right of it; packages joined by `|` do not import each other."
    return "\n".join([text, "", *orders]) + "\n"


def format_modules(layers: dict[str, list[list[str]]]) -> str:
    """Return docs/modules.md."""
    parts = [MODULES_HEAD]
    for name in (name for row in layers["pullback"] for name in row):
        source = find_source("pullback", name)
        assert source is not None
        parts.append(f"## `{name}`\n\n{read_summary(source)}\n")
        modules = sorted(path for path in (PACKAGE / name).rglob("*.py") if path.name != "__init__.py")
        if modules:
            rows = [
                f"| `{path.relative_to(PACKAGE / name).with_suffix('')}` | {read_summary(path)} |" for path in modules
            ]
            parts.append("\n".join(["| module | contents |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def replace_between_markers(text: str, inner: str) -> str:
    """Return a page with the part between the two markers replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{inner}\n{END}{after}"


def write_pages() -> dict[Path, str]:
    """Return the text of every page that has a map."""
    layers = read_layers()
    inner = {
        ROOT / "CONTRIBUTING.md": format_packages(layers),
        ROOT / "docs" / "how-it-works.md": format_orders(layers),
    }
    pages = {path: replace_between_markers(path.read_text("utf-8"), text) for path, text in inner.items()}
    return {ROOT / "docs" / "modules.md": format_modules(layers), **pages}


if __name__ == "__main__":
    for path, text in write_pages().items():
        if "--check" not in sys.argv:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is not up to date: run python script/module_map.py")
