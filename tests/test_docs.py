"""Generated pages of the documentation and generated signatures are up to date."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from check import ops_cases

import pullback as pb
from pullback.core.op import list_ops
from pullback.names.table import MODULES
from pullback.train.nn.layers.base import Layer

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ops.md"
CALLED = {case["py_op"]: case["op"] for case in ops_cases()}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


ROWS = [cells(line) for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
BY_NAME = {name.strip("`"): row for row in ROWS for name in row[0].split(", ")}


# In one process of its own: the library is loaded once, and has no ops that tests have added.
CHECK_ALL = """
import sys
from runpy import run_path
failed = []
NAMES = "write_signatures ops_table module_map numpy_table scipy_table layers_table benchmark_figures"
for script in (f"{name}.py" for name in NAMES.split()):
    sys.argv = [script, "--check"]
    try:
        run_path(f"script/{script}", run_name="__main__")
    except SystemExit as end:
        failed += [f"{script}: {end.code}"] if end.code else []
sys.exit("\\n".join(failed) or 0)
"""


def test_generated_files_are_up_to_date() -> None:
    run = subprocess.run([sys.executable, "-c", CHECK_ALL], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(("ours", "theirs"), CALLED.items(), ids=CALLED)
def test_ops_table_has_tensorflow_js_name(ours: str, theirs: str) -> None:
    assert BY_NAME[ours][1] == f"`{theirs}`"


@pytest.mark.parametrize(
    ("name", "facts"),
    {
        "mul": ["`mul`, `multiply`", "`mul`", "`np.multiply`", "x, y", "any", "compiled (scalar)"],
        "gather": ["`gather`", "`gather`", "–", "x", "any", "compiled (call)"],
        "less": ["`less`", "`less`", "`np.less`", "none", "–", "compiled (scalar)"],
        "floor": ["`floor`", "`floor`", "`np.floor`", "x (zero)", "any", "compiled (scalar)"],
        "special.jv": ["`special.jv`", "–", "`scipy.special.jv`", "x", "any", "opaque"],
    }.items(),
)
def test_ops_table_row(name: str, facts: list[str]) -> None:
    assert BY_NAME[name] == facts


def test_ops_table_is_complete() -> None:
    modules = {name.rpartition(".")[2] for name in BY_NAME}
    built_in = {op.name for op in list_ops() if op.function.__module__.startswith("pullback.ops")}
    assert not built_in - modules


# Classes that users do not make themselves, and enumerations.
MADE_ELSEWHERE = {
    "pb.UnconnectedGradients", "pb.losses.Reduction", "pb.train.LBFGS", "pb.train.Optimizer", "pb.data.Dataset",
    "pb.callbacks.CallbackList", "pb.metrics.Metric", "pb.metrics.MeanMetricWrapper",
}  # fmt: skip
OF_EVERY_LAYER = set(inspect.signature(Layer).parameters)


def list_public_functions() -> dict[str, Any]:
    found = {f"pb.{name}": getattr(pb, name) for name in dir(pb)}
    for path in (path for path in MODULES if path not in ("pb", "pb.errors", "pb.typing")):
        module = import_module(MODULES[path])
        found |= {f"{path}.{name}": getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {name: thing for name, thing in found.items() if callable(thing) and not inspect.ismodule(thing)}


def list_undescribed(thing: Any) -> list[str]:
    """Return the parameters that the docstring neither has a line for nor mentions as code."""
    text = inspect.getdoc(thing) or ""
    lines = re.findall(r"^\s*(?:- )?((?:\*{0,2}\w+)(?:, \*{0,2}\w+)*): ", text, re.MULTILINE)
    described = {name.strip(" *") for line in lines for name in line.split(",")}
    taken = [p for p in inspect.signature(thing).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = {p.name for p in taken} - described - {"self", "name"}
    if isinstance(thing, type) and issubclass(thing, Layer):
        names -= OF_EVERY_LAYER
    return [name for name in names if not re.search(rf"``(\w+=)?{name}(=[^`]*)?``", text)]


def test_docstrings_of_public_functions_describe_every_argument() -> None:
    lacking = {
        name: missing
        for name, thing in list_public_functions().items()
        if name not in MADE_ELSEWHERE and not (isinstance(thing, type) and issubclass(thing, tuple))
        and (missing := list_undescribed(thing))
    }  # fmt: skip
    assert not lacking
