"""The real TensorFlow.js for tests: in PULLBACK_TFJS, or installed once by npm into the user's cache.

The usual run downloads nothing: npm installs it with ``--all`` or ``PULLBACK_TEST_DOWNLOADS=1``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from exhaustive import DOWNLOADS

VERSION = "4.22.0"


@cache
def find_node_modules() -> Path:
    """Return the folder of packages with TensorFlow.js; skip the test where Node or npm cannot be had."""
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    if given := os.environ.get("PULLBACK_TFJS"):
        return Path(given) / "node_modules"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pullback-tests" / f"tfjs-{VERSION}"
    done = home / "installed"
    if done.is_file():
        return home / "node_modules"
    if not DOWNLOADS:
        pytest.skip("TensorFlow.js is not installed: PULLBACK_TEST_DOWNLOADS=1 and --all let npm install it")
    if shutil.which("npm") is None:
        pytest.skip("npm, which installs TensorFlow.js, is not there")
    home.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0", f"@tensorflow/tfjs@{VERSION}"]
    try:
        made = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm could not install TensorFlow.js in 10 minutes")
    if made.returncode:
        pytest.skip(f"npm could not install TensorFlow.js: {made.stderr[-200:]}")
    done.touch()
    return home / "node_modules"
