"""Print measures of the source code, one column per tree: a directory or a git revision.

    python script/measure_code.py 1df9b26 .           # before and after
    python script/measure_code.py --list any .        # where: the functions or lines that a row counts
    python script/measure_code.py --collect .         # also the tests that pytest collects, with their parameters

Definitions:

- functions: every ``def``, nested ones and methods too, without ``__dunder__`` names.
- branches of a function: ``if``, ``elif``, ``for``, ``while``, ``except``, ``case``, conditional expressions, the
  ``for`` and ``if`` of comprehensions, and each further operand of ``and`` and ``or``; a nested function counts for
  the one around it and not by itself.
- participle: the first word of the name ends in -ed or -ing, or is one of an irregular verb.
- bare Any: a parameter other than ``self`` and ``cls`` whose annotation is ``Any`` or missing.
- readers of the backward protocol: modules that take the rules of a step (``step.dx``, ``step.rules``, …) themselves.
- comparisons of .kind: ``node.kind`` with strings; the one-letter kinds of NumPy's dtypes are not counted.
"""

from __future__ import annotations

import argparse
import ast
import gc
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BRANCHES = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case, ast.IfExp, ast.comprehension,
)  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IRREGULAR = {
    "begun", "bound", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "fallen", "felt", "found",
    "given", "gone", "got", "grown", "held", "hidden", "kept", "known", "laid", "left", "lost", "made", "meant",
    "met", "paid", "said", "seen", "sent", "shown", "sold", "stood", "taken", "taught", "thought", "thrown", "told",
    "torn", "understood", "won", "worn", "written",
}  # fmt: skip
NOT_PARTICIPLES = {"embed", "feed", "need", "seed", "shed", "speed", "bring", "ring", "sing", "string", "swing"}
DTYPE_KINDS = set("biufcmMOSUVT")
LAZY_BUILD = "core/op.py"  # the only place that may assign to __code__
RULES = {"dx", "dy", "operand_rules", "positional_rules"}  # attributes of a step of a tape
SHARED_NAMES = {"rule", "rules"}  # the same, which other objects have too
STEPS = {"back", "loose", "one", "original", "s", "step", "via"}  # what a step is called
RECORDS = ("diagnostics/page.py", "plot/graphs.py")  # their steps are records of a program, with the names of rules
LONG_FUNCTION = 15


class Found(NamedTuple):
    """A place in the source, and how much of what is measured it has."""

    where: str
    size: int


class Function(NamedTuple):
    where: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    nodes: list[ast.AST]  # its own and those of all that is in it
    nested: bool


class Module(NamedTuple):
    path: str
    lines: int
    tree: ast.Module
    nodes: list[ast.AST]  # all of the tree, walked once
    functions: list[Function]  # all of them, ``__dunder__`` ones too


def walk_depth_first(node: ast.AST, nodes: list[ast.AST], ends: dict[int, int]) -> None:
    """Append a node and all below it to ``nodes``; ``ends`` maps the position of a function to that of its end.

    Contexts (``ast.Load`` and the like), which are almost half of a tree, are left out.
    """
    start = len(nodes)
    nodes.append(node)
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    walk_depth_first(item, nodes, ends)
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            walk_depth_first(value, nodes, ends)
    if isinstance(node, FUNCTIONS):
        ends[start] = len(nodes)


def load_module(folder: Path, path: Path) -> Module:
    """Parse a Python file and walk its syntax tree."""
    text, name = path.read_text("utf-8"), path.relative_to(folder).as_posix()
    tree, nodes, ends = ast.parse(text), [], {}
    walk_depth_first(tree, nodes, ends)
    functions, around = [], 0
    for start, end in sorted(ends.items()):
        f = nodes[start]
        functions.append(Function(f"{name}:{f.lineno} {f.name}", f, nodes[start:end], nested=start < around))
        around = max(around, end)
    return Module(name, len(text.splitlines()), tree, nodes, functions)


def load_modules(folder: Path) -> list[Module]:
    """Parse every Python file below a folder."""
    gc.disable()  # millions of objects and no garbage
    try:
        return [load_module(folder, path) for path in sorted(folder.rglob("*.py"))]
    finally:
        gc.enable()


def list_functions(modules: list[Module]) -> list[Function]:
    """Return all functions but ``__dunder__`` ones."""
    return [f for m in modules for f in m.functions if not f.node.name.startswith("__")]


def count_branches(function: Function) -> int:
    """Count the branches of a function, those of nested functions too."""
    count = 0
    for node in function.nodes:
        if isinstance(node, BRANCHES):
            count += 1
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += len(node.ifs)
    return count


def count_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function has, from its ``def`` to its last statement."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def is_participle(name: str) -> bool:
    """Tell whether the first word of a name is a participle."""
    word = name.strip("_").split("_")[0]
    return word in IRREGULAR or (word.endswith(("ed", "ing")) and len(word) > 4 and word not in NOT_PARTICIPLES)


def list_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """Return all parameters of a function but ``self`` and ``cls``."""
    a = function.args
    given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x is not None)]
    return [p for p in given if p.arg not in ("self", "cls")]


def is_bare(parameter: ast.arg) -> bool:
    """Tell whether a parameter is annotated with ``Any`` alone, or not at all."""
    given = parameter.annotation
    return given is None or (
        isinstance(given, ast.Name | ast.Attribute) and ast.unparse(given) in ("Any", "typing.Any")
    )


def list_parameters_of(modules: list[Module]) -> list[tuple[str, ast.arg]]:
    """Return every parameter of every function, dunder ones too, with its place."""
    return [
        (f"{m.path}:{parameter.lineno} {f.node.name}({parameter.arg})", parameter)
        for m in modules
        for f in m.functions
        for parameter in list_parameters(f.node)
    ]


def is_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "kind"


def compares_kind(node: ast.AST) -> bool:
    """Tell whether an expression or statement compares the kind of a node with strings."""
    if isinstance(node, ast.Match):
        return is_kind(node.subject)
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    if not any(map(is_kind, sides)):
        return False
    texts = [
        part.value
        for side in sides
        if not is_kind(side)
        for part in ast.walk(side)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return any(not DTYPE_KINDS.issuperset(text) for text in texts)


def reads_rules(node: ast.AST) -> bool:
    """Tell whether an expression reads a rule of a step; what a step itself does with its own is not counted."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return False
    owner = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    return owner != "self" and (node.attr in RULES or (node.attr in SHARED_NAMES and owner in STEPS))


def assigns_code(node: ast.AST) -> bool:
    """Tell whether an expression is the ``__code__`` of a function that is assigned to."""
    return isinstance(node, ast.Attribute) and node.attr == "__code__" and isinstance(node.ctx, ast.Store)


def list_nodes(modules: list[Module], chosen: Callable[[ast.AST], bool]) -> list[Found]:
    """Return the places of all syntax nodes for which a predicate holds."""
    return [
        Found(f"{m.path}:{node.lineno} {ast.unparse(node)[:100]}", 1)  # type: ignore[attr-defined]
        for m in modules
        for node in m.nodes
        if chosen(node)
    ]


class Source:
    """What is measured of the library: its modules, functions and parameters, and the places behind each row."""

    def __init__(self, root: Path) -> None:
        self.modules = load_modules(root / "src" / "pullback")
        self.functions = list_functions(self.modules)
        parameters = list_parameters_of(self.modules)
        outer = [f for f in self.functions if not f.nested]
        self.parameters = len(parameters)
        self.places: dict[str, list[Found]] = {
            "modules": [Found(m.path, m.lines) for m in self.modules],
            "long": [Found(f.where, count_lines(f.node)) for f in outer],
            "branches": [Found(f.where, n) for f in outer if (n := count_branches(f)) > LONG_FUNCTION],
            "participle": [Found(f.where, 1) for f in self.functions if is_participle(f.node.name)],
            "any": [Found(where, 1) for where, parameter in parameters if is_bare(parameter)],
            "readers": [f for f in list_nodes(self.modules, reads_rules) if not f.where.startswith(RECORDS)],
            "kind": list_nodes(self.modules, compares_kind),
            "code": [f for f in list_nodes(self.modules, assigns_code) if not f.where.startswith(f"{LAZY_BUILD}:")],
        }


class Measures:
    """Everything that is measured of one tree: rows of (name, value), and the places behind a row."""

    def __init__(self, root: Path) -> None:
        source, tests = Source(root), load_modules(root / "tests")
        self.places = places = source.places
        longest = {name: max(places[name], key=lambda found: found.size) for name in ("modules", "long")}
        bare = len(places["any"])
        test_functions = [f for f in list_functions(tests) if f.node.name.startswith("test_")]
        self.rows = {
            "lines": f"{sum(m.lines for m in source.modules):,}",
            "modules": f"{len(source.modules):,}",
            "longest file (lines)": f"{longest['modules'].size:,} {longest['modules'].where}",
            "longest function (lines)": f"{longest['long'].size:,} {re.sub(':[0-9]+ ', ' ', longest['long'].where)}",
            f"functions over {LONG_FUNCTION} branches": f"{len(places['branches']):,}",
            "functions": f"{len(source.functions):,}",
            "functions that begin with a participle": f"{len(places['participle']):,}",
            "bare Any parameters": f"{100 * bare / source.parameters:.1f} % ({bare:,} of {source.parameters:,})",
            "readers of the backward protocol": f"{len({f.where.split(':')[0] for f in places['readers']}):,}",
            "comparisons of .kind with a string": f"{len(places['kind']):,}",
            "assignments to __code__ outside the lazy build": f"{len(places['code']):,}",
            "lines of tests": f"{sum(m.lines for m in tests):,}",
            "test functions": f"{len(test_functions):,}",
        }


def count_collected(root: Path) -> str:
    """Return how many tests pytest collects in a tree, doctests too; "?" where it cannot."""
    paths = [name for name in ("tests", "src", "README.md", "docs") if (root / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "--doctest-modules",
               "--doctest-glob=*.md", *paths]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"([0-9]+)(?:/[0-9]+)? tests? collected", run.stdout)
    return f"{int(found[1]):,}" if found else "?"


def find_tree(tree: str, scratch: Path) -> Path:
    """Return the directory of a tree; a git revision is unpacked below ``scratch``."""
    if Path(tree).is_dir():
        return Path(tree).resolve()
    packed = subprocess.run(["git", "archive", tree], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        sys.exit(f"{tree} is neither a directory nor a git revision: {packed.stderr.decode().strip()}")
    place = scratch / re.sub(r"\W", "_", tree)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(place, filter="data")
    return place


def main() -> None:
    summary, _, definitions = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=definitions, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs="*", default=["."], metavar="TREE", help="a directory or a git revision")
    parser.add_argument("--list", metavar="ROW", help="print the places behind a row: any, kind, branches, …")
    parser.add_argument("--collect", action="store_true", help="also count the tests that pytest collects")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        roots = [find_tree(tree, Path(scratch)) for tree in options.trees]
        measured = [Measures(root) for root in roots]
        if options.list:
            if options.list not in measured[0].places:
                parser.error(f"--list takes one of {', '.join(measured[0].places)}")
            for found in sorted(measured[-1].places[options.list], key=lambda found: (-found.size, found.where)):
                print(found.size, found.where)
            return
        if options.collect:
            for root, measures in zip(roots, measured, strict=True):
                measures.rows["tests collected"] = count_collected(root)
    table = [["", *options.trees], *([name, *(m.rows[name] for m in measured)] for name in measured[0].rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
