"""Observers are on in their block and thread only, and change no result."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb
from pullback.core import hooks
from pullback.core.op import REGISTRY, Op, list_ops
from pullback.ops.special import slopes  # noqa: F401  # fills the table of derivatives of special_function1 to 4

DIFFERENTIABLE = sorted(op.name for op in list_ops() if op.flows)


def is_off() -> bool:
    return not hooks.blocks and not any(op.is_observed for op in REGISTRY.values())


def test_observers_are_off_after_their_blocks():
    assert is_off()
    pb.diagnose(pb.exp)(1.0)
    pb.explain(pb.exp)(1.0)
    pb.trace(pb.exp)(1.0)
    assert is_off()
    with pb.strong_zero():
        with pb.debug_nans():
            assert pb.exp.op.is_observed
        assert not pb.exp.op.is_observed
        assert hooks.blocks
        assert pb.diagnose(pb.sqrt)(4.0).found is False
    assert is_off()


def test_observers_are_off_after_blocks_of_several_threads():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with pb.debug_nans():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait()
    with pb.debug_nans():
        pass
    assert pb.exp.op.is_observed
    with np.errstate(all="ignore"):
        assert pb.log(pb.tensor([0.0])).numpy()[0] == -np.inf  # it is the other thread's
    leave.set()
    thread.join()
    assert is_off()


def test_debug_nans_first_import_inside_strong_zero():
    program = """
import sys, pullback as pb
assert not [name for name in sys.modules if "diagnostics" in name], "imported without being used"
with pb.strong_zero():
    try:
        with pb.debug_nans():
            pb.grad(lambda x: pb.sqrt(x))(0.0)
    except pb.errors.NanError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "derivative of sqrt" in run.stdout, run.stderr


def calls(op: Op) -> Any:
    """Yield each sample of an op as a function of the inputs that it has a derivative in, and those inputs."""
    random = np.random.default_rng(0)
    for inputs, params in sample(op.acts.samples(), 3):
        xs = [random.uniform(*op.domain, x)[()] if isinstance(x, tuple) else x for x in inputs]
        on = [
            op.d.differentiable(0 if op.variadic else i) and np.asarray(x).dtype.kind in "fc" for i, x in enumerate(xs)
        ]
        if any(on):

            def f(*moved: Any, xs: Any = xs, on: Any = on, params: Any = params) -> Any:
                source = iter(moved)
                return op.call([next(source) if b else x for x, b in zip(xs, on, strict=True)], {**op.params, **params})

            yield f, [x for x, b in zip(xs, on, strict=True) if b]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_observed_ops_have_same_gradients(name):
    for f, xs in calls(REGISTRY[name]):
        z = f(*xs)
        dy = np.ones(z.shape, z.dtype)
        plain = pb.grads(f, unconnected="zero")(xs, dy)
        with pb.strong_zero(), pb.debug_nans():
            strong = pb.grads(f, unconnected="zero")(xs, dy)
        for d, e in zip(plain, strong, strict=True):
            np.testing.assert_allclose(e, d, rtol=1e-12, atol=1e-14)
        report = pb.diagnose(f)(*xs)
        assert not report, report
        assert pb.trace(f)(*xs).steps[-1].shape == z.shape
