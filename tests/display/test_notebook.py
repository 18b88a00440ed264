"""A notebook in a real kernel: what cells show, bars, errors and completion, with and without ipywidgets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import run_in_page
from exhaustive import DOWNLOADS
from matplotlib import image
from matplotlib.colors import to_rgb

import pullback as pb

CELLS = {
    "import": "import numpy as np, pullback as pb",
    "tensor": "x = pb.tensor([[1.0, np.nan], [3.0, 4.0]])\nx",
    "variable": "v = pb.variable(1.0, name='<script>alert(1)</script>')\nv",
    "gradient": "pb.grad(lambda x, y: x * y, argnums=(0, 1))",
    "compiled": "f = pb.compile(lambda x: np.sum(np.tanh(x)))\nf(np.ones(3))\nf",
    "program": "f.lower(np.ones(3))",
    "model": "model = pb.sequential([pb.layers.dense(1, input_shape=[2])])\n"
    "model.compile(optimizer='sgd', loss='mean_squared_error')\nmodel",
    "history": "model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=2, validation_split=0.25)",
    "progress": "for _ in pb.progress(range(3), 'squares'):\n    pass",
    "diagnosis": "def f(x):\n    return np.log(x - 1.0)\npb.diagnose(f)(1.0)",
    "explanation": "pb.explain(lambda x: np.floor(x))(1.5)",
    "trace": "pb.trace(lambda x: np.exp(np.sin(x)))(1.0)",
    "check": "pb.check_grads(np.sin, [0.5])",
    "benchmark": "pb.benchmark({'eager': np.sin, 'compiled': pb.compile(np.sin)}, np.ones(3), rounds=2)",
    "shape error": "def f(x):\n    y = x * 2\n    return np.sum(y @ np.ones(5))\n\npb.grad(f)(np.ones(3))",
    "value error": "def f(x):\n    return x * float(x)\n\npb.grad(f)(2.0)",
    "completion": "{text: get_ipython().kernel.do_complete(text, len(text))['matches']"
    " for text in ['pb.', 'pb.losses.', 'x.', 'v.', 'model.']}",
}
WITHOUT_HTML = {"import", "progress", "shape error", "value error", "completion"}
RUN = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=300).execute()
nbformat.write(notebook, sys.argv[1])
"""
Outputs = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a kernel beside the packages of this Python, and return its Python."""
    if not DOWNLOADS:
        pytest.skip("installs a notebook kernel: runs with PULLBACK_TEST_DOWNLOADS=1 and --all")
    folder = tmp_path_factory.mktemp("kernel")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    here = [Path(pb.__file__).parents[1], sysconfig.get_path("purelib")]
    (packages / "beside.pth").write_text("\n".join(map(str, here)))
    install(python, "nbclient", "ipykernel")
    return python


def install(python: Path, *packages: str) -> None:
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True, capture_output=True)


@pytest.fixture(scope="module", params=["without ipywidgets", "with ipywidgets"])
def outputs(request: pytest.FixtureRequest, kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """Return the outputs of each cell of the notebook."""
    if request.param == "with ipywidgets":
        install(kernel, "ipywidgets")
    folder = tmp_path_factory.mktemp("notebook")
    empty: dict[str, Any] = {"metadata": {}, "outputs": [], "execution_count": None, "cell_type": "code"}
    cells = [empty | {"source": source, "id": f"cell-{i}"} for i, source in enumerate(CELLS.values())]
    file = folder / "notebook.ipynb"
    file.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    env = os.environ | {name: str(folder) for name in ("IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    env |= {"JUPYTER_PLATFORM_DIRS": "1", "PULLBACK_FULL_TRACEBACK": "0"}
    subprocess.run([kernel, "-c", RUN, file], check=True, env=env, cwd=folder)
    done = json.loads(file.read_text())["cells"]
    return {name: cell["outputs"] for name, cell in zip(CELLS, done, strict=True)}


def read(output: dict[str, Any], kind: str) -> str:
    return "".join(output["data"].get(kind, ""))


def test_notebook_cells_write_nothing_to_stderr(outputs: Outputs) -> None:
    assert [output for cell in outputs.values() for output in cell if output["output_type"] == "stream"] == []


def test_notebook_objects_show_html_and_text(outputs: Outputs) -> None:
    failed = [name for name, cell in outputs.items() if any(output["output_type"] == "error" for output in cell)]
    assert failed == ["shape error", "value error"]
    for name in CELLS.keys() - WITHOUT_HTML:
        shown = outputs[name][-1]
        page = read(shown, "text/html")
        assert page, name
        assert read(shown, "text/plain"), name
        assert not re.search(r"<script|src=|https?:", page), name
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in read(outputs["variable"][-1], "text/html")
    assert "cell 10, line 2" in read(outputs["diagnosis"][-1], "text/html")


def test_notebook_progress_bars_end_full(outputs: Outputs) -> None:
    epochs = [read(output, "text/plain") for output in outputs["history"][:-1]]
    assert [re.sub(r" \d.*", "", line) for line in epochs] == ["Epoch", "Epoch"]
    for line in [*epochs, read(outputs["progress"][0], "text/plain")]:
        assert re.search(r"█{10,} (1/1|3/3) 0:00 ", line), line
    assert "val_loss=" in epochs[-1]


def test_notebook_tracebacks_end_at_user_line(outputs: Outputs) -> None:
    for name, line in {"shape error": "----> 3     return np.sum(y @", "value error": "----> 2     return x *"}.items():
        error = outputs[name][-1]
        text = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error["traceback"]))
        assert len(text.splitlines()) <= 15, text
        assert "src/pullback" not in text, text
        place, _, message = text.rpartition(error["ename"])
        assert line in place.rpartition("Cell In[")[2], text
        assert "pullback" not in message.partition(":")[0]
    assert "(cell 16, line 2)" in outputs["value error"][-1]["evalue"]


def test_notebook_completion_lists_public_names_only(outputs: Outputs) -> None:
    matches = eval(read(outputs["completion"][0], "text/plain"))
    found = {text: {name.rpartition(".")[2] for name in names} for text, names in matches.items()}
    for text, name in {"pb.": "grad", "pb.losses.": "huber_loss", "x.": "exp", "v.": "assign", "model.": "fit"}.items():
        assert name in found[text]
        assert [n for n in found[text] if n.startswith("_")] == []
        assert found[text].isdisjoint({"np", "g", "via", "meta", "beneath", "held"})


@pytest.mark.parametrize(("back", "fore"), [("#ffffff", "#111111"), ("#111111", "#eeeeee")], ids=["light", "dark"])
def test_notebook_output_fits_phone_width_in_light_and_dark_theme(
    outputs: Outputs, back: str, fore: str, tmp_path: Path
) -> None:
    shown = "".join(f"<p>{read(outputs[name][-1], 'text/html')}</p>" for name in CELLS if name not in WITHOUT_HTML)
    style = f"<style>body {{ background: {back}; color: {fore}; font: 14px sans-serif }}</style>"
    page, file = f'<!doctype html><meta charset="utf-8">{style}{shown}', tmp_path / "cells.png"
    overflow = "return document.documentElement.scrollWidth - innerWidth;"
    assert run_in_page(page, overflow, size=(390, 2600), screenshot=file) == 0
    pixels = image.imread(file)[..., :3]
    for colour in (back, fore):
        assert np.any(np.all(np.abs(pixels - to_rgb(colour)) < 0.01, axis=-1))
