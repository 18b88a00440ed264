"""Generated pages of the documentation are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from check import ops_cases

from pullback.core.op import REGISTRY

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ops.md"
CALLED = {case["py_op"]: case["op"] for case in ops_cases()}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


ROWS = [cells(line) for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
BY_NAME = {name.strip("`"): row for row in ROWS for name in row[0].split(", ")}


@pytest.mark.parametrize("script", ["ops_table.py", "module_map.py", "numpy_table.py", "scipy_table.py"])
def test_generated_page_is_up_to_date(script: str) -> None:
    command = [sys.executable, str(ROOT / "script" / script), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
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
    built_in = {name for name, op in REGISTRY.items() if op.function.__module__.startswith("pullback.ops")}
    assert not built_in - modules
