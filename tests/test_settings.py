"""Environment variables that switch mechanisms off: results stay the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exhaustive import ALL

import pullback as pb
from pullback.compiler.ir.products import resolve_product
from pullback.compiler.runtime import disk_cache, threads
from pullback.compiler.runtime.abi.entry import is_entry_usable
from pullback.compiler.runtime.abi.object_loader import Loaded
from pullback.compiler.runtime.llvm import get_code, llvm_available
from pullback.compiler.schedule.products import BlasPlan, TinyPlan, plan_product
from pullback.compiler.target import X86, Options
from pullback.core import accelerate
from pullback.settings import MECHANISMS, SAFE, is_enabled, list_disabled

HERE = Path(__file__).resolve().parent
llvm = pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")


@pytest.fixture(autouse=True)
def unset_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (SAFE, *MECHANISMS.values()):
        monkeypatch.delenv(variable, raising=False)


def test_mechanisms_are_enabled_unless_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_disabled() == ()
    for value, on in (("0", False), ("off", False), ("False", False), ("1", True), ("", True)):
        monkeypatch.setenv("PULLBACK_EAGER_KERNELS", value)
        assert is_enabled("eager kernels") is on


def test_safe_mode_disables_unset_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SAFE, "1")
    assert list_disabled() == tuple(MECHANISMS)
    monkeypatch.setenv("PULLBACK_NATIVE_ENTRY", "1")
    assert list_disabled() == tuple(name for name in MECHANISMS if name != "native entry")


def test_design_notes_describe_every_mechanism() -> None:
    text = (HERE.parent / "docs" / "design-notes.md").read_text("utf-8")
    assert [name for name in (SAFE, *MECHANISMS.values()) if f"`{name}=" not in text] == []


# ---- read when it is used


def compile_and_compare() -> Any:
    """Compile a program with a product, a loop and a sum; check its values and return it."""
    f = lambda x, w: (np.tanh(x @ w), np.sum(np.exp(x)))
    compiled = pb.compile(f, backend="llvm")
    x, w = np.linspace(-1, 1, 32 * 48).reshape(32, 48), np.linspace(0, 1, 48 * 64).reshape(48, 64)
    for _ in range(2):
        for got, want in zip(compiled(x, w), f(x, w), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    return compiled


@llvm
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_compiled_program_without_mechanism(mechanism: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    compile_and_compare()
    monkeypatch.setenv(MECHANISMS[mechanism], "0")
    compile_and_compare()


@llvm
def test_native_entry_off_calls_through_ctypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_NATIVE_ENTRY", "0")
    assert not is_entry_usable()
    assert "built-in" not in repr(compile_and_compare().__call__)


@llvm
def test_object_loader_off_links_with_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_OBJECT_LOADER", "0")
    made, _ = get_code("define i64 @one() {\n  ret i64 1\n}\n", ["one"], {})
    assert not isinstance(made.held, Loaded)
    assert made.addresses["one"]


def test_thread_pool_off_runs_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_THREAD_POOL", "0")
    assert not threads.has_threads()


@pytest.mark.parametrize("disabled", [(), ("matrix products",)], ids=["on", "off"])
def test_matrix_products_off_calls_blas(disabled: tuple[str, ...]) -> None:
    product = pb.compile(lambda x, y: x @ y, backend="numpy").lower(np.ones((8, 8)), np.ones((8, 8))).traced.outputs[0]
    plan = plan_product(resolve_product(product), X86[0], Options(disabled=disabled))
    assert isinstance(plan, BlasPlan if disabled else TinyPlan)


def test_options_of_programs_are_the_settings_when_they_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_WINOGRAD", "0")
    monkeypatch.setenv("PULLBACK_FOURIER_TRANSFORMS", "off")
    options = threads.choose_options(None)
    assert {"Winograd convolutions", "Fourier transforms"} <= {*options.disabled}
    assert not options.is_enabled("Fourier transforms")
    monkeypatch.setenv("PULLBACK_FOURIER_TRANSFORMS", "1")
    assert not options.is_enabled("Fourier transforms")
    assert threads.choose_options(None).is_enabled("Fourier transforms")


def test_loop_rolling_off_keeps_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        for _ in range(400):
            x = np.sin(x) * 0.5 + x
        return x

    counts = []
    for value in ("1", "0"):
        monkeypatch.setenv("PULLBACK_LOOP_ROLLING", value)
        counts.append(len(pb.compile(f, backend="numpy").lower(np.ones(3)).stages.simplified.nodes))
    assert counts[0] < 10 < 1000 < counts[1]


@llvm
@pytest.mark.parametrize(
    ("variable", "name", "f"),
    [
        ("PULLBACK_COMPILED_DRAWS", "draw_uniform", lambda x: x + pb.random.uniform((8,), dtype="f8")),
        ("PULLBACK_FOURIER_TRANSFORMS", "rfft", lambda x: np.fft.rfft(x)),
    ],
    ids=["draws", "fourier"],
)
def test_compiled_draws_and_fourier_transforms_off_run_on_the_host(
    variable: str, name: str, f: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_host = []
    for value in ("1", "0"):
        monkeypatch.setenv(variable, value)
        pb.random.seed(3)
        compiled = pb.compile(f, backend="llvm")
        found = compiled(np.arange(8.0))
        pb.random.seed(3)
        np.testing.assert_allclose(found, f(np.arange(8.0)), rtol=1e-12, atol=1e-12)
        steps = compiled.lower(np.arange(8.0)).kernels
        on_host.append([step.split()[0] for step in steps if "NumPy kernel" in step and "take" not in step])
    assert on_host == [[], [name]]


def test_eager_kernels_off_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerate, "_programs", {})
    monkeypatch.setenv("PULLBACK_EAGER_KERNELS", "0")
    pb.max_pool(np.ones((1, 128, 128, 4)), 2, 2)
    assert [*accelerate._programs.values()] == [None]


def test_disk_cache_off_stores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    assert disk_cache.get_default_cache() is disk_cache.NO_CACHE


@llvm
def test_disabled_mechanism_changes_cache_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    compile_and_compare()
    before = len(os.listdir(tmp_path))
    monkeypatch.setenv("PULLBACK_MATRIX_PRODUCTS", "0")
    compile_and_compare()
    assert len(os.listdir(tmp_path)) > before


# ---- read when pullback is imported

SAFE_PROGRAM = """
import numpy as np, pullback as pb
from pullback.core.memory import Large
from pullback.core.op import REGISTRY, call_stub
big, seen = np.linspace(-1, 1, 200_000), []
def loss(x):
    y = np.sin(x) * x
    seen.append(type(y) is Large)
    return np.sum(y * y)
got = pb.grad(loss)(big)
y = np.sin(big) * big
np.testing.assert_allclose(got, 2 * y * (np.cos(big) * big + np.sin(big)), rtol=1e-10, atol=1e-14)
assert pb.hessian(lambda x: np.sum(x ** 3))(np.ones(2)).tolist() == [[6.0, 0.0], [0.0, 6.0]]
f = pb.compile(pb.grad(lambda w: np.sum(np.tanh(w @ w))))
np.testing.assert_allclose(f(np.eye(6)), pb.grad(lambda w: np.sum(np.tanh(w @ w)))(np.eye(6)), rtol=1e-12)
built = [op.function.__code__ is not call_stub.__code__ for op in REGISTRY.values()]
print(seen[0], all(built))
"""


@pytest.mark.parametrize(
    ("variable", "recycled", "built"),
    [
        ("PULLBACK_BUFFER_RECYCLING=0", False, False),
        ("PULLBACK_LAZY_OPS=0", True, True),
        ("PULLBACK_SAFE=1", False, True),
    ],
)
def test_eager_program_without_mechanism(variable: str, recycled: bool, built: bool) -> None:
    name, value = variable.split("=")
    done = subprocess.run(
        [sys.executable, "-c", SAFE_PROGRAM], env={**os.environ, name: value}, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.stdout.split() == [str(recycled), str(built)], done.stderr


# Tests of the engine and the compiler that test no mechanism by itself.
CORE = [
    "core", "transforms/test_grad.py", "transforms/test_nesting.py", "compiler/test_api.py", "ops/test_elementwise.py",
    "ops/test_contraction.py", "ops/test_convolution.py",
]  # fmt: skip


@pytest.mark.skipif(not ALL, reason="only in the exhaustive run")
@pytest.mark.parametrize("variable", [SAFE, *MECHANISMS.values()])
def test_core_tests_without_mechanism(variable: str) -> None:
    value = "1" if variable == SAFE else "0"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        *(str(HERE / p) for p in CORE),
    ]
    command.append(f"--ignore={HERE / 'core' / 'test_memory.py'}")
    environment = {**os.environ, variable: value, "PULLBACK_ALL_TESTS": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
