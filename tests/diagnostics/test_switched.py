"""Off, nothing is asked; on, every op still gives what it gave."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core.op import REGISTRY, Op
from pullback.core.tape import Tape
from pullback.transforms.forward import Dual
from pullback.transforms.grad import Differentiated

ENGINE = (Tape.open, Dual.interpret, Differentiated.pulled, pb.jvp, pb.vjp, pb.variable_grads)
OWN = [f.__code__ for f in ENGINE]
DIFFERENTIABLE = sorted(name for name, op in REGISTRY.items() if op.flows)


def off() -> bool:
    return [f.__code__ for f in ENGINE] == OWN


def test_the_engine_has_its_own_code_when_nothing_is_on():
    assert off()
    pb.diagnose(pb.exp)(1.0)
    pb.explain(pb.exp)(1.0)
    pb.trace(pb.exp)(1.0)
    assert off()
    with pb.strong_zero():
        with pb.debug_nans():
            assert not off()
        assert not off()
        assert pb.diagnose(pb.sqrt)(4.0).found is False
    assert off()


def test_the_last_of_several_threads_switches_off():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with pb.strong_zero():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait()
    with pb.debug_nans():
        pass
    assert not off()
    leave.set()
    thread.join()
    assert off()


def test_a_tool_that_is_first_used_inside_the_block_of_another():
    program = """
import sys, pullback as pb
assert not [name for name in sys.modules if "diagnostics" in name], "opened though nobody asked"
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
    """Each sample of an op as a function of the inputs that it has a derivative in, and those inputs."""
    random = np.random.default_rng(0)
    for inputs, params in op.acts.samples():
        xs = [random.uniform(*op.domain, x)[()] if isinstance(x, tuple) else x for x in inputs]
        on = [
            op.d.differentiable(0 if op.variadic else i) and np.asarray(x).dtype.kind in "fc" for i, x in enumerate(xs)
        ]
        if any(on):

            def f(*moved: Any, xs: Any = xs, on: Any = on, params: Any = params) -> Any:
                source = iter(moved)
                return op.call([next(source) if b else x for x, b in zip(xs, on, strict=True)], {**op.params, **params})

            yield f, [x for x, b in zip(xs, on, strict=True) if b]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_every_op_is_the_same_under_watch_and_with_strong_zeros(name):
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
