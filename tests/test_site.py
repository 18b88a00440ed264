"""The documentation site: it builds without a warning, which includes every link, and fetches nothing."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from browser import run_in_page
from exhaustive import DOWNLOADS
from test_docs import list_public_functions, list_undescribed

import pullback as pb

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "SITE_SEARCH": str(DOWNLOADS).lower()}  # tested in a browser
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=env)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def test_site_has_every_page_and_public_name(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file()
    reference = "".join(p.read_text("utf-8") for p in (site / "reference").glob("*.html"))
    names = [name for name in list_public_functions() if not name.startswith("pb.typing")]
    assert len(names) > 900
    missing = [n for n in names if f'id="{n.replace(".", "").lower()}"' not in reference and f">{n}<" not in reference]
    assert not missing
    for name in ("model.fit", "model.save", "gradienttape.watch", "dataset.batch", "optimizer.minimize", "pool.sum"):
        assert f'id="{name.replace(".", "")}"' in reference, name
    errors = (site / "errors.html").read_text("utf-8")
    assert "ShapeError" in errors
    assert "0.0588235" in (site / "tour.html").read_text("utf-8")
    gallery = (site / "gallery.html").read_text("utf-8")
    assert gallery.count("<details") == len(list((ROOT / "examples").glob("*.py")))
    assert gallery.count("<img") == len(list((ROOT / "docs/images/examples").iterdir()))
    assert (site / "benchmarks.html").read_text("utf-8").count("images/benchmarks-") >= 5


def test_methods_in_the_reference_describe_every_argument() -> None:
    pages = runpy.run_path(str(ROOT / "script" / "site_pages.py"))
    described = list_public_functions() | {f"pb.scale.{name}": getattr(pb.scale, name) for name in pb.scale.__all__}
    lacking = {
        f"{owner}.{name}": missing
        for owner in pages["WITH_METHODS"]
        for name, method in pages["list_methods"](described[owner]).items()
        if not isinstance(method, property)
        and (missing := {*list_undescribed(pages["get_function"](method))} - {"cls"})
    }
    assert not lacking


SEARCH = """
    const box = document.querySelector("input[data-md-component=search-query]");
    box.focus();
    box.value = "sparse jacobian";
    box.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
    for (let i = 0; i < 50; i++) {
      await new Promise(done => setTimeout(done, 100));
      const found = [...document.querySelectorAll(".md-search-result__link")];
      if (found.length) return found.map(link => link.pathname.split("/").pop());
    }
"""


@pytest.mark.skipif(not DOWNLOADS, reason="starts a browser: runs with PULLBACK_TEST_DOWNLOADS=1 and --all")
def test_site_search_works_in_pages_opened_as_files(site: Path) -> None:
    index = (site / "index.html").read_text("utf-8")
    assert "how-to.html" in run_in_page(index, SEARCH, beside=site)


def test_site_copy_button_copies_code_only(site: Path) -> None:
    text = (site / "gradients.html").read_text("utf-8")
    assert "&gt;&gt;&gt;" in text
    assert re.findall(r'(?<!<span class="gp">)&gt;&gt;&gt;', text) == []


def test_site_pictures_page_shows_cells_and_report(site: Path) -> None:
    text = (site / "pictures.html").read_text("utf-8")
    for shown in (
        "Tensor</b>",
        "compiled &lt;lambda&gt;</b>",
        "History</b>",
        "NaN or infinity</b>",
        'src="report.html"',
    ):
        assert shown in text
    assert "-np.sum(p * np.log(p))" in (site / "report.html").read_text("utf-8")
    assert "&lt;doctest" not in (site / "nan.html").read_text("utf-8")


def test_external_links_are_https_urls() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\((\w+:[^)]*)\)", page.read_text("utf-8")):
            assert re.fullmatch(r"https://[\w-]+(\.[\w-]+)+/[\w./#-]*", link), (page.name, link)


def test_site_pages_load_no_external_resources(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert not re.search(r'<(script|link|img|iframe)[^>]+(src|href)="https?://', text), page.name
