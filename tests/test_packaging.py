"""The distribution: it builds, its metadata are valid, and the wheel imports without llvmlite."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution and the wheel with the backend that is installed, so that no network is needed."""
    for name in ("build", "hatchling", "twine"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--sdist",
        "--wheel",
        "--outdir",
        str(folder),
        str(ROOT),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def test_package_metadata_is_valid(distributions: Path) -> None:
    files = [str(path) for path in distributions.iterdir()]
    assert len(files) == 2
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_wheel_has_stubs_and_imports_without_llvmlite(distributions: Path, tmp_path: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    assert {"pullback/py.typed", "pullback/__init__.pyi"} <= {*names}
    assert all(name.startswith("pullback") for name in names)
    code = (
        "import sys; sys.modules['llvmlite'] = None; sys.path.insert(0, sys.argv[1])\n"
        "import numpy as np, pullback as pb\n"
        "assert pb.__file__.startswith(sys.argv[1]), pb.__file__\n"
        "assert pb.grad(np.sum)(np.ones(2)).tolist() == [1, 1]\n"
        "assert pb.compile(np.sum)(np.ones(2)) == 2\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path)], check=True, cwd=tmp_path)


def test_classifiers_name_the_tested_versions_of_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {
        c.rpartition(" ")[2] for c in project["classifiers"] if c.startswith("Programming Language :: Python :: 3.")
    }
    assert named == {"3.11", "3.12", "3.13", "3.14"}
    assert project["requires-python"] == ">=3.11"
