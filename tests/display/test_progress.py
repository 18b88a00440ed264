"""Progress of long work: bars in a terminal or notebook, lines elsewhere."""

from __future__ import annotations

import io
import itertools
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr

import numpy as np
import pytest

import pullback as pb
from pullback.display import progress
from pullback.errors import ArgumentError


@pytest.fixture(autouse=True)
def count_time_by_calls(monkeypatch):
    """A clock of which each reading is a millisecond after the one before, whatever else the machine does."""
    monkeypatch.setattr(progress, "perf_counter", (n * 1e-3 for n in itertools.count()).__next__)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Fixed:
    def __init__(self, **numbers):
        self.numbers = numbers

    def compute(self):
        return self.numbers


def epoch(verbose, stream, steps=3, count=3):
    """Return what an epoch writes to a stream."""
    with redirect_stderr(stream), progress.make_progress("Epoch 2/5", steps, verbose) as shown:
        for _ in range(count):
            shown.step(Fixed(loss=np.float32(0.5), accuracy=0.25))
        shown.close({"loss": 1 / 3, "accuracy": 0.5, "val_loss": 1e-7})
    return stream.getvalue()


LINE = r"Epoch 2/5 - 0\.\d s - \d+(\.\d)? [µm]s/step - loss: 0\.3333 - accuracy: 0\.5 - val_loss: 1e-07\n"


@pytest.mark.parametrize("verbose", ["auto", 1, True])
def test_progress_bar_in_terminal(verbose):
    last = epoch(verbose, Terminal()).split("\r")[-1]
    assert re.fullmatch(
        r"Epoch 2/5 █+ 3/3 0:00 \d+(\.\d)? [µm]s/step loss=0\.3333 accuracy=0\.5 val_loss=1e-07 *\n", last
    )


def test_progress_bar_fits_terminal():
    sizes = [(0, 0), (24, 60), (24, 120)]
    pty = pytest.importorskip("pty")
    pytest.importorskip("termios")
    code = f"""
import termios
from pullback.display import progress
for size in {sizes}:
    termios.tcsetwinsize(2, size)
    with progress.make_progress("Epoch 1/1", 2) as shown:
        shown.step(None)
        shown.close({{"loss": 0.5, "accuracy": 0.25, "val_loss": 0.75, "val_accuracy": 0.5}})
"""
    ours, its = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=its, check=True)
    os.close(its)
    epochs = os.read(ours, 10_000).decode().split("\n")
    os.close(ours)
    for (_, width), epoch in zip(sizes, epochs, strict=False):
        line = epoch.rstrip("\r").split("\r")[-1]
        assert "loss=0.5 " in line
        assert "val_loss=0.75" in line
        assert len(line) < (width or 101)


@pytest.mark.parametrize("width", [40, 60, 79, 200])
def test_bar_is_never_wider_than_terminal(width):
    numbers = {"loss": 0.5, "accuracy": 0.25, "val_loss": 0.75, "val_accuracy": 0.5}
    line = progress.format_bar("Epoch 10/10", 12, 100, ["0:01", "1.2 ms/step"], numbers, width)
    assert len(line) <= width
    assert "loss=0.5" in line
    assert ("val_accuracy" in line) == (width > 70)


def test_progress_bar_without_total():
    assert "Epoch 2/5 7 steps 0:00 " in epoch("auto", Terminal(), steps=None, count=7)


def test_progress_bar_redraws_at_intervals(monkeypatch):
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.0)
    shown = epoch("auto", Terminal())
    for step in (1, 2, 3):
        assert re.search(rf" {step}/3 .*loss=0\.5 accuracy=0\.25", shown)


def test_progress_bar_closes_on_error():
    stream = Terminal()

    def interrupted():
        with redirect_stderr(stream), progress.make_progress("Epoch 1/1", 3) as shown:
            shown.step(Fixed(loss=0.5))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue().endswith("\n")


SHOWN = {"nothing": r"", "a line": LINE}


@pytest.mark.parametrize(
    ("verbose", "shown"),
    [("auto", "a line"), (0, "nothing"), (False, "nothing"), (1, "a line"), (True, "a line"), (2, "a line")],
)
def test_progress_without_terminal_prints_lines(verbose, shown):
    assert re.fullmatch(SHOWN[shown], epoch(verbose, io.StringIO()))


@pytest.mark.parametrize(("verbose", "shown"), [(0, "nothing"), (2, "a line")])
def test_progress_line_in_terminal(verbose, shown):
    assert re.fullmatch(SHOWN[shown], epoch(verbose, Terminal()))


def test_notebook_packages_are_imported_lazily():
    code = "import sys, pullback as pb; pb.callbacks; print([m in sys.modules for m in ('IPython', 'matplotlib')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[False, False]"


def test_progress_computes_results_only_to_draw_them(monkeypatch):
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 1e9)
    with redirect_stderr(Terminal()), progress.make_progress("Epoch 1/1", 10) as shown:
        shown.step(None)  # of which nothing can be computed


@pytest.mark.parametrize("verbose", ["auto", 2])
def test_progress_step_time_excludes_validation(verbose, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: clock[0])
    stream = Terminal()
    with redirect_stderr(stream), progress.make_progress("Epoch 1/1", 2, verbose) as shown:
        for _ in range(2):
            clock[0] += 0.005
            shown.step(Fixed(loss=0.5))
        clock[0] += 5.0
        shown.close({"loss": 0.5})
    assert "5.0 ms/step" in stream.getvalue()
    assert ("5.0 s - " in stream.getvalue()) == (verbose == 2)


@pytest.mark.parametrize(("seconds", "formatted"), [(2.5, "1.25 s"), (0.0025, "1.2 ms"), (5e-6, "2 µs")])
def test_progress_formats_step_time(seconds, formatted):
    assert progress._format_time_per_step(seconds, 2) == f"{formatted}/step"


@pytest.mark.parametrize("verbose", [3, "loud", None])
def test_progress_verbose_errors(verbose):
    with pytest.raises(ArgumentError, match=r'fit: verbose must be "auto", 0, 1 or 2'):
        progress.make_progress("Epoch 1/1", 1, verbose, "fit")


class Notebook:
    """IPython as a notebook has it: keeps what is displayed."""

    def __init__(self):
        self.display, self.shown = self, []

    def __call__(self, data, **options):
        self.shown.append(data)
        return self

    def get_ipython(self):
        return self

    update = __call__


def in_notebook(monkeypatch):
    notebook = Notebook()
    notebook.display = type("display", (), {"display": staticmethod(notebook)})
    monkeypatch.setitem(sys.modules, "ipykernel", notebook)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    return notebook.shown


def test_progress_bar_in_notebook_needs_no_widgets(monkeypatch):
    shown = in_notebook(monkeypatch)
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.0)
    assert epoch("auto", io.StringIO()) == ""
    assert " 2/3 " in shown[2]["text/plain"]
    assert shown[-1]["text/html"].startswith("<pre")
    assert "val_loss=1e-07" in shown[-1]["text/html"]


def test_progress_of_items(monkeypatch):
    with redirect_stderr(Terminal()) as stream:
        assert list(pb.progress([3, 4], "numbers")) == [3, 4]
        assert list(pb.progress(iter("ab"), total=2)) == ["a", "b"]
    first, second = stream.getvalue().split("\n")[:2]
    assert re.match(r"\rnumbers █+ 2/2 ", first)
    assert " 2/2 " in second
    assert list(pb.progress([], verbose=0)) == []


def test_show_progress_of_derivatives_and_solvers(capsys):
    def residuals(p):
        return p * np.arange(3.0) - 1.0

    with pb.show_progress():
        pb.check_grads(np.sin, [0.5])
        pb.jacobian(np.sin)(np.zeros(3))
        pb.scipy.optimize.minimize(lambda p: np.sum(residuals(p) ** 2), 0.0)
        pb.scipy.optimize.least_squares(residuals, 0.0)
        pb.scipy.optimize.root(lambda x: x**2 - 2.0, 1.0)
        pb.scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0])
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" - ")[0] for line in lines] == [
        "check_grads",
        "derivatives",
        "minimize",
        "least_squares",
        "root",
        "solve_ivp",
    ]
    pb.jacobian(np.sin)(np.zeros(3))
    assert capsys.readouterr().err == ""
