"""Generated pages of the documentation and generated signatures are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from check import ops_cases

from pullback.core.op import list_ops

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
NAMES = "write_signatures ops_table module_map numpy_table scipy_table layers_table"
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
