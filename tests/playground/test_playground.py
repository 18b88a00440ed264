"""The playground in a real browser: Python and the library run in the page, and nothing leaves it."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from inspect import cleandoc
from pathlib import Path

import numpy as np
import pytest
from browser import find_chromium
from exhaustive import DOWNLOADS

import pullback as pb
from pullback.command.tour import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a word, also when the browser is closed before it has all of one."""

    def log_message(self, *_: object) -> None:
        """Write nothing."""

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Build the playground, serve it on this machine, and return what a browser saw."""
    if not DOWNLOADS:
        pytest.skip("downloads Python for browsers and starts one: runs with PULLBACK_TEST_DOWNLOADS=1 and --all")
    if shutil.which("npm") is None or find_chromium() is None:
        pytest.skip("needs npm and Chromium")
    folder = tmp_path_factory.mktemp("playground")
    subprocess.run([sys.executable, ROOT / "playground" / "build.py", "--build-only", "--out", folder], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    command = ["node", ROOT / "tests/playground/drive.mjs", ROOT / "playground", str(find_chromium()), address]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    finally:
        server.shutdown()
        server.server_close()
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_playground_examples_print_same_text_as_python(seen: dict) -> None:
    assert len(seen["printed"]) == 8
    for title, shown in seen["printed"].items():
        with contextlib.redirect_stdout(io.StringIO()) as printed, np.errstate(all="ignore"):
            exec(cleandoc(EXAMPLES[title]), {"np": np, "pb": pb})
        assert shown == printed.getvalue(), title


def test_playground_runs_gradients_and_compiled_programs(seen: dict) -> None:
    assert seen["gradient"] == "[ 3. 12.]\n"
    assert seen["compiled"] == "[1. 1.]\n"
    assert "NumPy runs compiled programs" in seen["ready"]


def test_playground_error_shows_user_lines(seen: dict) -> None:
    lines = seen["error"].splitlines()
    assert lines[:2] == ["line 4: pb.grad(f)(x)", "line 3: return x @ np.ones(5)"]
    assert lines[2].startswith("pullback.errors.ShapeError: matmul")
    assert len(lines) == 3


def test_playground_shows_pictures_and_report(seen: dict) -> None:
    assert seen["frames"] == ["picture", "picture", "page"]
    assert min(seen["heights"]) > 100
    assert "log" in seen["texts"]["page"]
    assert "exp" in seen["texts"]["picture"]


def test_playground_fits_phone_width_in_dark_mode(seen: dict) -> None:
    assert (seen["overflow"], seen["pictureOverflow"]) == (0, 0)
    assert seen["pictureBack"] == "rgb(20, 22, 26)"


def test_playground_stops_endless_loop(seen: dict) -> None:
    assert seen["afterStop"] == "2\n"


def test_playground_shares_code_by_url(seen: dict) -> None:
    assert seen["shared"] == "print('shared ✓')"


def test_playground_sends_no_requests(seen: dict) -> None:
    assert seen["requests"] == []
    assert seen["errors"] == []


def test_playground_bootstrap_runs_without_browser(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(sys, "path", [*sys.path])
    page = runpy.run_path(str(ROOT / "playground/bootstrap.py"), {"send": lambda *message: sent.append(message)})
    page["run_code"](
        "plot(np.sin, 0, 6, derivatives=2)\ngraph(np.exp, 1.0)\nreport(np.log, 0.0)\npb.tensor([1.0, 2.0])"
    )
    assert capsys.readouterr().err == ""
    assert [kind for kind, _ in sent] == ["picture", "picture", "page", "table"]
    assert "f″" in sent[0][1] or "f′′" in sent[0][1]
