"""Code for other CPUs: it compiles for all targets, and runs for those that this CPU has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler import target
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.pipeline import lower
from pullback.compiler.runtime import llvm, threads
from pullback.compiler.runtime.abi import entry_code
from pullback.compiler.runtime.llvm import compile_object
from pullback.compiler.target import (
    ARM,
    MAX_ISA,
    X86,
    Options,
    Target,
    get_own_target,
    get_target,
    list_isa_names,
    list_targets,
)

pytestmark = pytest.mark.skipif(not llvm.llvm_available(), reason="needs llvmlite")

LINUX = {
    **{t.isa: t._replace(triple="x86_64-unknown-linux-gnu") for t in X86},
    **{t.isa: t._replace(triple="aarch64-unknown-linux-gnu") for t in ARM},
}
ELF_MACHINE = {"x86_64": 0x3E, "aarch64": 0xB7}

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


everywhere = pytest.mark.parametrize("target", LINUX.values(), ids=LINUX)


def check_elf_header(code: bytes, target: Target) -> None:
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == ELF_MACHINE[target.triple.split("-")[0]]


@pytest.mark.sampled(3)
@everywhere
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_target_compiles(name: str, target: Target) -> None:
    f, x = PROGRAMS[name]
    traced = pb.compile(f, backend="numpy").lower(x).traced
    text = lower(traced, target, Options(threads=2)).module.text
    code, _ = compile_object(text, target=target)
    check_elf_header(code, target)


@everywhere
def test_entry_and_threads_compile_for_every_target(target: Target) -> None:
    for text in (entry_code.write_code(), threads.write_text(target.triple.split("-")[0])):
        check_elf_header(compile_object(text, target=target)[0], target)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", list_isa_names())
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_agree_on_every_target_of_this_cpu(name: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    f, x = PROGRAMS[name]
    compiled = pb.compile(f, backend="llvm", cache=False, threads=1)
    assert compiled.lower(x).target == get_target()
    tolerance = 2e-5 if x.dtype == "f4" else 1e-12
    for a, b in zip(pb.core.tree.leaves(compiled(x)), pb.core.tree.leaves(f(x)), strict=True):
        np.testing.assert_allclose(a, b, tolerance, tolerance)


# ------------------------------------------------------------------ which one


@pytest.mark.parametrize(
    ("text", "kilobytes"), [("512K", 512), ("1280K", 1024), ("2048K", 2048), ("64K", 256), ("12288K", 2048), ("", 1024)]
)
def test_list_targets_rounds_second_cache_that_linux_reports(
    text: str, kilobytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "size").write_text(f"{text}\n")
    monkeypatch.setattr(target, "SECOND_CACHE", str(tmp_path / "size"))
    assert {t.second_cache for t in [*list_targets(), get_own_target()]} == {1024 * kilobytes}


@pytest.mark.parametrize(
    ("features", "isas", "fma"),
    [
        ((), ["sse2"], False),
        (("SSE42",), ["sse2", "sse4"], False),
        (("SSE42", "AVX"), ["sse2", "sse4", "avx"], False),
        (("SSE42", "AVX", "FMA3"), ["sse2", "sse4", "avx"], True),
        (("SSE42", "AVX", "AVX2"), ["sse2", "sse4", "avx", "avx2"], False),
        (("SSE42", "AVX", "AVX2", "FMA3", "AVX512F"), ["sse2", "sse4", "avx", "avx2", "avx512"], True),
    ],
)
def test_list_targets_by_features(features: Any, isas: list[str], fma: bool) -> None:
    found = list_targets("x86_64", features)
    assert [t.isa for t in found] == isas
    assert (found[-1].has_fma, found[-1].cpu) == (fma, "")  # the CPU itself, with whatever else it has
    assert [t.isa for t in list_targets("aarch64", features)] == ["neon"]


def test_max_isa_caps_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    own = get_own_target()
    for isa in list_isa_names():
        monkeypatch.setenv(MAX_ISA, isa.upper())
        assert get_target().vector_bytes == min(own.vector_bytes, LINUX[isa].vector_bytes)
    assert get_target() == own


def test_unknown_max_isa_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, "sse9")
    with pytest.raises(pb.errors.CompileError, match=f"PULLBACK_MAX_ISA=sse9 .*: choose one of {list_isa_names()[0]}"):
        pb.compile(np.sin)(np.ones(3))


def test_max_isa_is_in_cache_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PULLBACK_CACHE", "1")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    seen = set()
    for isa in list_isa_names():
        monkeypatch.setenv(MAX_ISA, isa)
        program = pb.compile(lambda x: np.tanh(x) * 3.0, backend="llvm").lower(np.ones(40))
        assert ("codegen" in program.stats) == (get_target() not in seen)
        seen.add(get_target())


def test_products_without_fma_do_not_call_library() -> None:
    traced = pb.compile(lambda x, y: x @ y, backend="numpy").lower(R((20, 20)), R((20, 20))).traced
    texts = {isa: lower(traced, target, Options()).module.text for isa, target in LINUX.items()}
    assert {isa: "llvm.fmuladd" in text for isa, text in texts.items()} == {
        isa: not target.has_fma for isa, target in LINUX.items()
    }


# ------------------------------------------------------------------ what LLVM would not survive


def test_invalid_llvm_module_raises() -> None:
    lines = ["br i1 %c, label %a, label %b", "a:", "%x = add i64 1, 2", "br label %b", "b:", "%y = add i64 %x, 1"]
    text = "\n".join(["define void @f(i1 %c) {", *lines, "ret void", "}"])
    with pytest.raises(llvm.InvalidCodeError, match=r"LLVM refused .* does not dominate all uses"):
        compile_object(text)
    with pytest.raises(llvm.InvalidCodeError, match="LLVM refused"):
        compile_object("define nonsense")


def test_program_refused_by_llvm_runs_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ModuleBuilder.render

    def wrong(self: ModuleBuilder) -> str:
        return right(self).replace("ret void", "ret i64 0", 1)

    monkeypatch.setattr(ModuleBuilder, "render", wrong)
    with pytest.warns(RuntimeWarning, match=r"(?s)LLVM refused .* NumPy runs the program instead") as seen:
        assert pb.compile(lambda x: x * 2.0)(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert seen[0].filename == __file__
    with pytest.raises(pb.errors.CompileError, match="LLVM refused"):
        pb.compile(lambda x: x * 2.0, backend="llvm")(np.ones(3))


@pytest.mark.parametrize(("m", "k", "n"), [(700, 650, 660), (3, 500, 2), (129, 3, 1000), (9, 9, 9)])
def test_products_without_blas_are_machine_code(m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("target", "runtime.link"):
        monkeypatch.setattr(f"pullback.compiler.{place}.find_blas", dict)
    random = np.random.default_rng(0)
    a, b, c = random.normal(size=(m, k)), random.normal(size=(k, n)), random.normal(size=(m, n))
    for f in (lambda a, b, c: a @ b, lambda a, b, c: c - 0.5 * (a @ b), lambda a, b, c: c.T @ a + b.T):
        compiled = pb.compile(f, backend="llvm", cache=False)
        np.testing.assert_allclose(compiled(a, b, c), f(a, b, c), 1e-9, 1e-9)
        assert not [step for step in compiled.lower(a, b, c).kernels if "NumPy" in step]
