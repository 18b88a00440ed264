"""What IPython and pytest show of an error: the user's frames, no others."""

from __future__ import annotations

import builtins
import os
import re
import subprocess
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.tracebacks import register_with_ipython

LONG = """
def f(x):
    y = x * 2
    z = y + 1
    return np.sum(z @ np.ones(5))

w = np.ones(3)
step = pb.grad(f)
g = step(w)
w = w - g
print(w)
"""
NESTED = """
def layer(x):
    y = x * 2
    return y @ np.ones(5)

def loss(x):
    h = layer(x)
    return np.sum(h)

g = pb.grad(loss)(np.ones(3))
"""
CELLS = {
    "op": ("pb.matmul(pb.ones([2, 3]), pb.ones([2, 3]))", "ShapeError: matmul"),
    "nested lists": ("pb.tensor([[1, 2], [3]])", "DataError: tensor"),
    "grad": (
        "def f(x):\n    y = x * 2\n    return np.sum(y @ np.ones(5))\npb.grad(f)(np.ones(3))",
        "ShapeError: matmul",
    ),
    "long function": (LONG, "ShapeError: matmul"),
    "nested functions": (NESTED, "ShapeError: matmul"),
    "float": ("def f(x):\n    return x * float(x)\npb.grad(f)(2.0)", "(cell 7, line 2)"),
    "own error": ("def f(x):\n    return {}[0]\npb.grad(f)(2.0)", "KeyError: 0"),
    "compile": ("def f(x):\n    return x if x > 0 else -x\npb.compile(f)(1.0)", "SymbolValueError"),
    "model": ("pb.sequential([pb.layers.dense(3, input_shape=[2])]).predict(np.ones((3, 4)))", "LayerError"),
}
SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor", xmode="Context")
shell.run_cell("import numpy as np, pullback as pb", store_history=True)
for cell in {cells!r}:
    print("=== cell")
    shell.run_cell(cell, store_history=True)
"""


def run_cells(names: Iterable[str], **environment: str) -> list[str]:
    """Return what IPython writes for each of these cells."""
    code = SHELL.format(cells=[CELLS[name][0] for name in names])
    env = {**os.environ, "IPYTHONDIR": os.devnull, "PULLBACK_FULL_TRACEBACK": "0", **environment}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    return run.stdout.split("=== cell\n")[1:]


def test_ipython_ends_at_the_users_line() -> None:
    pytest.importorskip("IPython")
    shown = run_cells(CELLS)
    assert len(shown) == len(CELLS)
    for (name, (_, message)), text in zip(CELLS.items(), shown, strict=True):
        lines = text.rstrip().splitlines()
        assert message in text, name
        assert len(lines) <= 15, text
        assert "src/pullback" not in text, text
        assert "<op " not in text, text


def test_ipython_shows_all_frames_on_request() -> None:
    pytest.importorskip("IPython")
    assert "pullback/core" in run_cells(["op"], PULLBACK_FULL_TRACEBACK="1")[0]


@pytest.fixture
def run_cell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Return a function of a cell and a mode of tracebacks, which gives the lines that IPython prints."""
    names = ("IPython", "IPython.core.interactiveshell", "traitlets.config")
    ipython, interactive, settings = (pytest.importorskip(name) for name in names)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("PULLBACK_FULL_TRACEBACK", "0")
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    for name in ("__IPYTHON__", "display"):  # which a shell defines
        monkeypatch.setitem(vars(builtins), name, None)

    def run(name: str, mode: str) -> list[str]:
        config = settings.Config({"HistoryManager": {"enabled": False}})
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            shell = interactive.InteractiveShell(colors="NoColor", xmode=mode, config=config)
        monkeypatch.setattr(ipython, "get_ipython", lambda: shell)
        register_with_ipython(pb.errors.PullbackError)
        shell.run_cell("import numpy as np, pullback as pb\n" + CELLS[name][0])
        return capsys.readouterr().out.rstrip().splitlines()

    return run


@pytest.mark.parametrize(("name", "source"), [("op", 2), ("long function", 5), ("nested functions", 3)])
def test_ipython_shows_fewer_lines_of_source_for_more_frames(run_cell: Any, name: str, source: int) -> None:
    lines = run_cell(name, "Context")
    assert len([line for line in lines if re.match(r"(-+>)? *\d+ ", line)]) == source, lines
    assert lines[-1].startswith("ShapeError: matmul")


def test_ipython_leaves_out_causes_inside_the_library(run_cell: Any) -> None:
    lines = run_cell("nested lists", "Context")
    assert lines[-1].startswith("DataError: tensor")
    assert len([line for line in lines if "Traceback (most recent call last)" in line]) == 1


@pytest.mark.parametrize("full", ["0", "1"])
def test_frames_of_errors_are_marked_unless_all_are_shown(full: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_FULL_TRACEBACK", full)
    with pytest.raises(pb.errors.ShapeError) as caught:
        pb.grad(lambda x: np.sum(x @ np.ones(5)))(np.ones(3))
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    hidden = ["__tracebackhide__" in frame.f_locals for frame in frames]
    assert hidden == [full == "0" and frame.f_code.co_filename != __file__ for frame in frames]


@pytest.mark.parametrize(("mode", "count"), [("Plain", 1), ("Minimal", 0)])
def test_ipython_mode_of_tracebacks_is_kept(run_cell: Any, mode: str, count: int) -> None:
    lines = run_cell("op", mode)
    assert len([line for line in lines if "pb.matmul(" in line]) == count, lines
    assert lines[-1].startswith("ShapeError: matmul")
    assert not [line for line in lines if "pullback/" in line]


COMPLETIONS = """
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import pullback as pb")
names = {names!r}
shell.run_cell("x, v, model = pb.tensor([1.0]), pb.variable(1.0), pb.sequential([pb.layers.dense(1, input_shape=[2])])")
for shell.Completer.use_jedi in (False, True):
    for text in ("pb.", "pb.losses.", "x.", "v.", "model."):
        with provisionalcompleter():
            found = {{c.text.lstrip(".") for c in shell.Completer.completions(text, len(text))}}
        print(text, *sorted(found & {{*names}}), *sorted(name for name in found if name[0] == "_"))
"""
ASKED = [
    "grad", "np", "huber_loss", "exp", "assign", "fit",
    "g", "via", "meta", "beneath", "cuda", "clipByValue", "strip", "held", "addWeight", "iterate_layers",
]  # fmt: skip
COMPLETED = ["pb. exp grad", "pb.losses. huber_loss", "x. exp", "v. assign exp", "model. fit"]


def test_ipython_completes_public_names_only() -> None:
    """With and without Jedi, which looks at the source."""
    pytest.importorskip("IPython")
    code = COMPLETIONS.format(names=ASKED)
    env = {**os.environ, "IPYTHONDIR": os.devnull}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert run.stdout.splitlines() == [*COMPLETED, *COMPLETED], run.stderr


def test_pytest_hides_library_frames(tmp_path: Path) -> None:
    body = """
        import numpy as np, pullback as pb

        def f(x):
            return np.sum(x @ np.ones(5))

        def test_gradient():
            pb.grad(f)(np.ones(3))
    """
    (tmp_path / "test_user.py").write_text(textwrap.dedent(body))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    assert "ShapeError: matmul" in shown
    assert "src/pullback" not in shown, shown
