"""The documentation site: it builds without a warning, which includes every link, and fetches nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=env)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def test_site_has_every_page_and_public_name(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file()
    reference = "".join(p.read_text("utf-8") for p in (site / "reference").glob("*.html"))
    for name in ("pb.grad", "pb.custom_gradient", "pb.layers.dense", "pb.losses.huber_loss", "pb.plot.graph"):
        assert f'id="{name.replace(".", "")}"' in reference, name
    errors = (site / "errors.html").read_text("utf-8")
    assert "ShapeError" in errors
    assert "0.0588235" in (site / "tour.html").read_text("utf-8")
    gallery = (site / "gallery.html").read_text("utf-8")
    assert gallery.count("<details") == len(list((ROOT / "examples").glob("*.py")))
    assert gallery.count("<img") == len(list((ROOT / "docs/images/examples").iterdir()))
    assert (site / "benchmarks.html").read_text("utf-8").count("images/benchmarks-") == 4


def test_pages_fetch_nothing(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert not re.search(r'<(script|link|img|iframe)[^>]+(src|href)="https?://', text), page.name
