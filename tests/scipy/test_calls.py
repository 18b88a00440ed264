"""Gradients of the calls of SciPy's functions that count_scipy.py counts, against finite differences."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy
from exhaustive import ALL, sample

import pullback as pb
from pullback.names.scipy import FUNCTIONS

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import scipy_calls  # noqa: E402

OURS, PLAIN = scipy_calls.load_ours(), scipy_calls.load_scipy()
CALLS = [*scipy_calls.FIRST, *scipy_calls.SECOND]


@pytest.mark.parametrize("call", [*scipy_calls.FIRST, *sample(scipy_calls.SECOND, 3)])
def test_call_of_pb_scipy_matches_finite_differences(call: str) -> None:
    verdict, why = scipy_calls.judge(call, OURS, PLAIN)
    assert verdict == "right" or (verdict == "refused" and call in scipy_calls.FIRST), why


@pytest.mark.parametrize("call", sample(CALLS, 7))
def test_call_of_installed_scipy_matches_finite_differences(call: str) -> None:
    plain = scipy_calls.load_scipy()
    with pb.scipy.install():
        verdict, why = scipy_calls.judge(call, scipy_calls.load_scipy(), plain)
    assert verdict == "right" or (verdict == "refused" and call in scipy_calls.FIRST), why


def test_calls_through_the_array_api_match_finite_differences() -> None:
    every = 1 if ALL else 8
    command = [sys.executable, str(HERE / "count_scipy.py"), "array_api", "--every", str(every)]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert ", 0 wrong" in run.stdout
    right = int(run.stdout.split(" right")[0].split()[-1])
    share = 0.9 if np.lib.NumpyVersion(scipy.__version__) >= "1.16.0" else 0.4  # older versions dispatch less
    assert right > share * len(scipy_calls.FIRST[::every]), run.stdout


@pytest.mark.parametrize("module", FUNCTIONS)
def test_names_of_pb_scipy_exist(module: str) -> None:
    ours = import_module(f"pullback.scipy.{module}")
    for name in FUNCTIONS[module]:
        function = getattr(ours, name)
        assert "make_fallback" not in getattr(getattr(function, "__code__", None), "co_qualname", ""), name
