"""Manifests of traced programs in the disk cache: cache keys, damaged files, and results of loaded programs."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime import cache_key
from pullback.compiler.runtime.abi.object_loader import has_loader
from pullback.compiler.runtime.cache_key import NoCanonicalText, canonical_text
from pullback.compiler.runtime.disk_cache import get_default_cache
from pullback.settings import SAFE

pytestmark = pytest.mark.skipif(SAFE in os.environ, reason="the disk cache is off")

X = np.random.default_rng(0).normal(size=(6, 5))
TABLE = np.random.default_rng(1).normal(size=(300, 5))


@pytest.fixture(autouse=True)
def cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("PULLBACK_CACHE", raising=False)
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def list_manifests(cache_dir: Path) -> list[Path]:
    return [p for p in cache_dir.iterdir() if p.read_bytes()[72:].startswith(b"{")]


def run(f: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, bool]:
    """Return what a program gives, and whether it was found."""
    compiled = pb.compile(f, backend="llvm", **options)
    return compiled(*args), "write" not in compiled.lower(*args).stats


def two(x: Any) -> Any:
    return {"sorted": pb.sort(x * 2.0), "top": pb.topk(x, 2), "sum": pb.sum(x), "same": x}


PROGRAMS: dict[str, Callable[..., Any]] = {
    "gradient": pb.value_and_grad(lambda x: pb.sum(pb.sin(x) * x)),
    "a kernel of NumPy's": lambda x: pb.sort(x * 2.0) + 1.0,
    "several results": two,
    "nothing to do": lambda x: x,
    "a number": lambda x: (x, np.float64(2.5)),
    "a large constant": lambda x: TABLE @ x.T,
    "a constant that is computed": lambda x: x * 2.0 - pb.sum(x[:0], 0),
    "an empty constant that is computed": lambda x: pb.exp(x[:0]),
    "integers": lambda x: pb.cast(x, "int32") @ pb.cast(x.T, "int32"),
    "complex numbers": lambda x: pb.real(pb.complex(x, x) * 1j),
    "positions": lambda x: pb.gather(x, np.array([1, 1, 0])),
    "an empty array": lambda x: pb.concat([x, x[:0]]),
}


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_loaded_program_gives_same_results(f: Callable[..., Any]) -> None:
    first, found = run(f, X)
    assert not found
    again, found = run(f, X)
    assert found
    assert repr(again) == repr(first)
    other = X + 1.0
    np.testing.assert_equal(run(f, other)[0], run(f, other, cache=False)[0])


def same(x: Any) -> Any:
    return pb.sort(x), pb.sort(pb.neg(pb.neg(x)))


def not_the_same(x: Any) -> Any:
    return pb.sort(x), pb.cumsum(pb.neg(pb.neg(x)))


DIFFERENT: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "numbers": (lambda x: x * 2.0, lambda x: x * 2.5),
    "signs of zero": (lambda x: x * 0.0, lambda x: x * -0.0),
    "short constants": (lambda x: x * np.arange(5.0), lambda x: x * np.arange(1.0, 6.0)),
    "long constants": (lambda x: TABLE @ x.T, lambda x: (TABLE + 1.0) @ x.T),
    "ops": (lambda x: pb.exp(x), lambda x: pb.cos(x)),
    "parameters": (lambda x: pb.leaky_relu(x, 0.1), lambda x: pb.leaky_relu(x, 0.2)),
    "axes": (lambda x: pb.sum(x[:5], 0), lambda x: pb.sum(x[:5], 1)),
    "layouts": (lambda x: x[:5] + x[:5], lambda x: x[:5] + x[:5].T),
    "results": (lambda x: (x + 1.0, x + 2.0), lambda x: (x + 2.0, x + 1.0)),
    "kernels of NumPy's": (lambda x: pb.sort(x) * 2.0, lambda x: pb.cumsum(x) * 2.0),
    "which kernels are the same": (same, not_the_same),
    "pieces": (lambda x: pb.pad(x, ((1, 0), (0, 0))), lambda x: pb.pad(x, ((0, 1), (0, 0)))),
    "fillings": (lambda x: pb.pad(x, ((1, 0), (0, 0)), 1.0), lambda x: pb.pad(x, ((1, 0), (0, 0)), 2.0)),
    "dtypes": (lambda x: pb.cast(x, "float32"), lambda x: pb.cast(x, "int32")),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_different_programs_have_different_cache_keys(pair: Any, cache_dir: Path) -> None:
    for count, f in enumerate(pair, 1):
        got, found = run(f, X)
        assert not found
        np.testing.assert_array_equal(got, run(f, X, cache=False)[0])
        assert len(list_manifests(cache_dir)) == count


def test_cache_key_depends_on_arguments_and_threads() -> None:
    def f(x: Any) -> Any:
        return x * 2.0

    for x in (X, X.astype("f4"), X[:3], 3.0):
        assert [run(f, x)[1] for _ in "12"] == [False, True]
    assert not run(f, X, threads=1)[1]


def test_cache_key_depends_on_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    run(PROGRAMS["gradient"], X)
    monkeypatch.setattr(cache_key, "_describe_compiler", lambda: "another")
    assert [run(PROGRAMS["gradient"], X)[1] for _ in "12"] == [False, True]


def test_cache_key_depends_on_compiler_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def about() -> str | None:
        return cache_key._describe_compiler.__wrapped__()

    assert all(repr(str(path)) in (about() or "") for path in Path(pb.__file__).parent.glob("compiler/**/*.py"))
    for package in cache_key.PACKAGES:
        (tmp_path / package / "inner").mkdir(parents=True)
        (tmp_path / package / "inner" / "file.py").write_text("x = 1")
    assert about() != (monkeypatch.setattr(pb, "__file__", str(tmp_path / "__init__.py")) or about())
    before = about()
    (tmp_path / "ops" / "inner" / "file.py").write_text("x = 12")
    assert before != about() is not None
    shutil.rmtree(tmp_path / "ops")
    assert about() is None


def test_manifest_is_not_stored_without_cache_key(monkeypatch: pytest.MonkeyPatch, cache_dir: Path) -> None:
    monkeypatch.setattr(cache_key, "_describe_compiler", lambda: None)
    assert [run(PROGRAMS["gradient"], X)[1] for _ in "12"] == [False, False]
    assert not list_manifests(cache_dir)


BODIES = {
    "nothing": lambda b: b"",
    "noise": lambda b: b"\xff\x00",
    "cut short": lambda b: b[: len(b) // 2],
    "a number": lambda b: b"1",
    "a list": lambda b: b"[]",
    "a field too few": lambda b: b.replace(b'"arena"', b'"arenas"'),
    "another slot": lambda b: b.replace(b'"outputs":[', b'"outputs":[99,'),
    "a slot below": lambda b: b.replace(b'"outputs":[', b'"outputs":[-1,'),
    "another constant": lambda b: b.replace(b'"constants":[[', b'"constants":[[0,0,""],['),
    "a longer constant": lambda b: b.replace(b',-1,"', b',-1,"ff'),
    "no code": lambda b: b.replace(b'"code":"', b'"code":"00'),
    "a function that is not there": lambda b: b.replace(b'"run', b'"ran'),
    "a dtype that is none": lambda b: b.replace(b"<f8", b"?f8"),
}


@pytest.mark.parametrize("damage", BODIES.values(), ids=BODIES)
def test_cache_recompiles_when_manifest_is_damaged(damage: Any, cache_dir: Path) -> None:
    f = PROGRAMS["a constant that is computed"]
    first, _ = run(f, X)
    (path,) = list_manifests(cache_dir)
    data = path.read_bytes()
    body = damage(data[72:])
    assert body != data[72:]
    get_default_cache().put(data[8:40], body)  # as it would have been written
    got, found = run(f, X)
    assert not found
    np.testing.assert_equal(got, first)
    assert path.read_bytes() == data


def flip_last_bits(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-9] + bytes(b ^ 0xFF for b in data[-9:]))


@pytest.mark.parametrize("damage", [Path.unlink, flip_last_bits])
def test_cache_recompiles_when_object_code_is_missing(damage: Any, cache_dir: Path) -> None:
    first, _ = run(PROGRAMS["gradient"], X)
    for path in {*cache_dir.iterdir()} - {*list_manifests(cache_dir)}:
        damage(path)
    compiled = pb.compile(PROGRAMS["gradient"], backend="llvm")
    np.testing.assert_equal(compiled(X), first)
    assert "codegen" in compiled.lower(X).stats


def test_loaded_program_can_be_printed() -> None:
    first, again = (pb.compile(PROGRAMS["gradient"], backend="llvm").lower(X) for _ in "12")
    assert "write" not in again.stats
    assert (str(again), again.ir, again.kernels, again.temporaries) == (
        str(first), first.ir, first.kernels, first.temporaries,
    )  # fmt: skip
    again.graph.verify()


def test_canonical_text_of_ops() -> None:
    assert canonical_text(pb.sin.op) == "op sin"
    with pytest.raises(NoCanonicalText):
        canonical_text(copy.copy(pb.sin.op))
    for x in (object(), np.array([None]), {1: object()}, type("Own", (), {})):
        with pytest.raises(NoCanonicalText):
            canonical_text(x)


def test_canonical_text_differs_for_different_values() -> None:
    values = [
        1, True, 1.0, "1", b"1", None, ..., -0.0, 0.0, (1,), [1], ((1,),), {1: 2}, {2: 1}, slice(1), slice(1, None),
        np.int32(1), np.int64(1), np.ones(1, int), np.ones((1, 1), int), np.dtype("f4"), np.float32, float, (1, 2),
        (12,), np.zeros(100), np.zeros(100, "i8"), np.ones(100), "a,b", ("a", "b"), 1j, np.array("a"),
    ]  # fmt: skip
    words = [canonical_text(x) for x in values]
    assert len({*words}) == len(words)


def test_manifest_is_not_stored_when_cache_is_off(monkeypatch: pytest.MonkeyPatch, cache_dir: Path) -> None:
    run(PROGRAMS["gradient"], X, cache=False)
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    run(PROGRAMS["gradient"], X)
    assert not cache_dir.exists() or not list_manifests(cache_dir)


CHILD = """
import sys, numpy as np, pullback as pb
f = pb.compile(pb.value_and_grad(lambda x: pb.sum(pb.sort(x) * x)))
print(repr(f(np.arange(4.0))))
print(any(f"pullback.compiler.{part}" in sys.modules for part in ("schedule", "codegen", "math", "passes.legalize")))
"""


@pytest.mark.skipif(not has_loader(), reason="images are for ELF on x86-64")
def test_cache_hit_does_not_import_codegen() -> None:
    printed = [
        subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=600, check=True).stdout
        for _ in "12"
    ]
    assert printed[0].removesuffix("True\n") == printed[1].removesuffix("False\n")
    assert printed[0] != printed[1]
