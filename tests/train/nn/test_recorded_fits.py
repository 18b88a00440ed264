"""Random trainings give the histories of Keras 3.15: layers, losses, metrics, weights, optimizers and callbacks.

``recorded/record_keras_fits.py`` recorded them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fit_cases import make, run_fit

import pullback as pb

FOLDER = Path(__file__).parent / "recorded"
CASES = json.loads((FOLDER / "keras_fits.json").read_text())
MODULES = {"losses": pb.train.losses, "metrics": pb.metrics, "optimizers": pb.train, "schedules": pb.train}


def find(kind: str, name: str) -> Any:
    module = MODULES[kind] if kind in MODULES else getattr(pb, kind)
    if kind in ("losses", "metrics"):
        return getattr(module, name)
    return getattr(module, {n.replace("_", ""): n for n in dir(module) if n.islower()}[name.lower()])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_random_fit_equals_keras(number: int) -> None:
    case = CASES[number]
    given = y = pb.input(case["shape"], dtype="int32" if case["kind"] == "tok" else "float32")
    for layer in case["layers"]:
        y = make(find, "layers", layer)(y)
    model = pb.model(given, y)
    found = run_fit(case, find, model, [v.name for v in model.variables])
    assert found["history"].keys() == case["answer"]["history"].keys()
    for name, theirs in case["answer"]["history"].items():
        np.testing.assert_allclose(found["history"][name], theirs, rtol=2e-4, atol=1e-5, err_msg=name)
    assert found["predictions"] == pytest.approx(case["answer"]["predictions"], rel=2e-4, abs=2e-4)
