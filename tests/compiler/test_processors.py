"""Code for other processors than this one: it can be made for all, and run where this one has what it asks for."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler import entry_code, machine, native, threads
from pullback.compiler.assembly import Assembler
from pullback.compiler.machine import Host, Processor, object_code
from pullback.compiler.prepare import prepared

pytestmark = pytest.mark.skipif(not machine.there(), reason="needs llvmlite")

NEON = Processor("aarch64-unknown-linux-gnu", "generic", "+neon")
BASELINE = Processor("x86_64-unknown-linux-gnu", "x86-64")
AVX2 = Processor("x86_64-unknown-linux-gnu", "haswell", "+avx,+avx2,+fma,+bmi2")
AVX512 = Processor(
    "x86_64-unknown-linux-gnu", "skylake-avx512", "+avx,+avx2,+fma,+avx512f,+avx512dq,+avx512vl,+avx512bw"
)
KINDS = {"neon": NEON, "baseline": BASELINE, "avx2": AVX2, "avx512": AVX512}
LANES = {"neon": 16, "baseline": 16, "avx2": 32, "avx512": 64}
ELF_MACHINE = {"neon": 0xB7, "baseline": 0x3E, "avx2": 0x3E, "avx512": 0x3E}

R = np.random.default_rng(0).standard_normal
PLACES = np.random.default_rng(1).integers(0, 50, 90)


def chain(x: Any) -> Any:
    return pb.sum(np.tanh(np.sin(x) * np.exp(-x * x) + np.log(1.0 + x * x)))


PROGRAMS = {
    "chain f4": (pb.value_and_grad(chain), R(1003).astype("f4")),
    "chain f8": (pb.value_and_grad(chain), R(1003)),
    "softmax": (pb.grad(lambda x: pb.sum(pb.softmax(x) ** 2)), R((37, 21)).astype("f4")),
    "more functions": (lambda x: np.cbrt(x) + np.arcsinh(x) * pb.erf(x) + np.log2(1 + x * x) ** 1.5, R(333)),
    "small product": (lambda x: np.tanh(x @ x), R((30, 30))),
    "product": (lambda x: np.tanh(x @ x.T), R((130, 120)).astype("f4")),
    "columns": (lambda x: pb.sum(x, 0) + pb.max(x, 0), R((45, 33))),
    "turned": (lambda x: np.transpose(x, (2, 0, 1)) * 2.0, R((5, 6, 7)).astype("f4")),
    "gather and scatter": (pb.grad(lambda x: pb.sum(pb.gather(x, PLACES) ** 2)), R((50, 7))),
    "whole numbers": (lambda x: pb.where(x > 0, x % 7, -x) // 2, np.arange(-40, 61)),
}


@pytest.fixture
def other(request: Any, monkeypatch: Any) -> Iterator[str]:
    made = Host(KINDS[request.param])
    for module in (machine, native):
        monkeypatch.setattr(module, "host", lambda: made)
    return request.param


everywhere = pytest.mark.parametrize("other", KINDS, indirect=True)
here = set(KINDS) - {"neon"} if platform.machine() == "x86_64" else {"neon"}
known = machine.translator().cpu[1].split(",")
runnable = sorted(kind for kind in here if all(f in known for f in KINDS[kind].features.split(",") if f))


def checked(code: bytes, kind: str) -> None:
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == ELF_MACHINE[kind]


@everywhere
@pytest.mark.parametrize("name", PROGRAMS)
def test_there_is_code_for_every_processor(name: str, other: str) -> None:
    f, x = PROGRAMS[name]
    graph = prepared(pb.compile(f, backend="numpy").lower(x).graph)
    assert machine.host().lanes == LANES[other]
    text = Assembler(graph, machine.host().lanes, 2).run().text
    code, _ = object_code(text)
    checked(code, other)


@everywhere
def test_the_way_in_and_the_threads_too(other: str) -> None:
    kind = "aarch64" if other == "neon" else "x86_64"
    for text in (entry_code.TEXT, threads._text(kind)):
        checked(object_code(text)[0], other)


@pytest.mark.parametrize("other", runnable, indirect=True)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_can_be_run_here_gives_the_same(name: str, other: str) -> None:
    f, x = PROGRAMS[name]
    compiled = pb.compile(f, backend="llvm", cache=False, threads=1)
    widest = f"<{LANES[other] // x.dtype.itemsize} x "
    assert widest in compiled.lower(x).ir
    assert f"<{2 * LANES[other] // x.dtype.itemsize} x double>" not in compiled.lower(x).ir
    tolerance = 2e-5 if x.dtype == "f4" else 1e-12
    for a, b in zip(pb.core.tree.leaves(compiled(x)), pb.core.tree.leaves(f(x)), strict=True):
        np.testing.assert_allclose(a, b, tolerance, tolerance)
