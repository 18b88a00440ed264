"""Figures in files: what was measured, on which CPU, and with which revision of the library."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pullback as pb
from pullback.compiler.target import get_target

__all__ = ["find_cpu", "record_figures"]


def record_figures(file: Path, versions: Mapping[str, str], rounds: int, found: Mapping[str, Any]) -> None:
    """Write what was found, and on what, for ``script/benchmark_figures.py``, which makes tables and charts of it."""
    result = {
        "cpu": find_cpu(),
        "isa": get_target().isa,
        "revision": find_revision(),
        "date": date.today().isoformat(),
        "versions": dict(versions),
        "rounds": rounds,
        "found": found,
    }
    file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")


def find_revision() -> str:
    """Return the commit of the library that is measured, marked as dirty where the library's files differ from it."""
    folder = Path(pb.__file__).parent
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"version {pb.__version__}"
    is_changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "."], cwd=folder, check=False).returncode
    return done.stdout.strip() + ("-dirty" if is_changed else "")


def find_cpu() -> str:
    """Return the name of the CPU with its family and model, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return (
        f"{facts.get('model name', platform.machine())} (family {facts.get('cpu family')}, model {facts.get('model')})"
    )
