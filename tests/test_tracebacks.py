"""What IPython and pytest show of an error: the user's frames, no others."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest

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


COMPLETIONS = """
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.Completer.use_jedi = {jedi}
shell.run_cell("import pullback as pb")
names = {names!r}
shell.run_cell("x, v, model = pb.tensor([1.0]), pb.variable(1.0), pb.sequential([pb.layers.dense(1, input_shape=[2])])")
for text in ("pb.", "pb.losses.", "x.", "v.", "model."):
    with provisionalcompleter():
        found = {{c.text.lstrip(".") for c in shell.Completer.completions(text, len(text))}}
    print(text, *sorted(found & {{*names}}), *sorted(name for name in found if name[0] == "_"))
"""
ASKED = [
    "grad", "np", "huber_loss", "exp", "assign", "fit",
    "g", "via", "meta", "beneath", "cuda", "clipByValue", "strip", "held", "addWeight", "every_layer",
]  # fmt: skip
COMPLETED = ["pb. exp grad", "pb.losses. huber_loss", "x. exp", "v. assign exp", "model. fit"]


@pytest.mark.parametrize("jedi", [False, True])
def test_ipython_completes_public_names_only(jedi: bool) -> None:
    pytest.importorskip("IPython")
    code = COMPLETIONS.format(jedi=jedi, names=ASKED)
    env = {**os.environ, "IPYTHONDIR": os.devnull}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert run.stdout.splitlines() == COMPLETED, run.stderr


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
