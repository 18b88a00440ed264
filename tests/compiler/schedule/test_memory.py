"""Memory planning: which values of a compiled program share memory, the size of temporaries, and checks of layouts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytest.importorskip("llvmlite")

from pullback.compiler.pipeline import lower
from pullback.compiler.schedule.arena import Allocation, Layout, MemoryPlace, place_apart, place_values, verify
from pullback.compiler.target import X86, Options, get_target

Function = Callable[..., Any]


def draw(*shapes: tuple[int, ...], dtype: Any = "f4") -> list[Any]:
    random = np.random.default_rng(0)
    return [(random.normal(size=shape) * 0.3).astype(dtype) for shape in shapes]


def compare(f: Function, *args: Any, rtol: float = 1e-4) -> Any:
    """Return the program of a function, which gives what the function gives, for any number of threads and twice."""
    before = [a.copy() for a in args]
    want = [np.asarray(w) for w in pb.core.tree.leaves(f(*args))]
    for threads in (1, 2):
        compiled = pb.compile(f, backend="llvm", threads=threads)
        for _ in range(2):
            got = pb.core.tree.leaves(compiled(*args))
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(initial=0))
            for a, b in zip(args, before, strict=True):
                np.testing.assert_array_equal(a, b)  # inputs are not written
            held = [*got, *args]
            assert not any(np.shares_memory(held[i], a) for i in range(len(got)) for a in held[i + 1 :])
    program = compiled.lower(*args)
    lower(program.traced, get_target(), Options()).memory.verify()
    return program


# ------------------------------------------------------------------ in place


@pytest.mark.parametrize("size", [16, 64, 128])
def test_matmul_result_does_not_overwrite_operands(size: int) -> None:
    def f(x: Any, w: Any) -> Any:
        h = np.tanh(x)
        left = h @ w + h
        k = np.tanh(left)
        return np.sum((w @ k + k) ** 2, 1)

    compare(f, *draw((size, size), (size, size)))


def after(f: Function) -> Function:
    """Return a function of the product of two matrices, and a sum in which what it gives is used up."""
    return lambda x, w: np.sum(f(x @ w) @ w, 1)


IN_PLACE: dict[str, Function] = {
    "element by element": np.tanh,
    "with itself": lambda y: y * y + y,
    "softmax: three passes": pb.softmax,
    "a row's sum and the row": lambda y: y * np.sum(y, 1, keepdims=True),
    "the sum over rows": lambda y: np.tanh(y) + np.sum(np.tanh(y), 0) * 0.0,
    "rows normed": lambda y: (y - np.mean(y, 1, keepdims=True)) / (1.0 + np.std(y, 1, keepdims=True)),
}
ELSEWHERE: dict[str, Function] = {
    "turned": lambda y: np.tanh(y) + y.T,
    "backwards": lambda y: y[::-1] * y,
    "backwards along rows": lambda y: y[:, ::-1] * y,
    "its neighbour": lambda y: np.tanh(y) + pb.concat([y[1:], y[:1]], 0),
    "its first row": lambda y: np.tanh(y) + y[0],
    "its first column": lambda y: np.tanh(y) + y[:, :1],
    "rows by position": lambda y: np.tanh(y) + pb.gather(y, np.arange(len(y) - 1, -1, -1)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [64, 600])
@pytest.mark.parametrize("name", [*IN_PLACE, *ELSEWHERE])
def test_kernel_overwrites_its_operand_where_safe(name: str, size: int) -> None:
    f = {**IN_PLACE, **ELSEWHERE}[name]
    program = compare(after(f), *draw((size, size), (size, size)))
    memory = lower(program.traced, get_target(), Options()).memory
    matrix = size * size * 4
    lying = {v.key: v for v in memory.values}
    kernels = [z for z, x in memory.over.items() if {lying[z].size, lying[x].size} == {matrix}]
    assert bool(kernels) == (name in IN_PLACE)


@pytest.mark.parametrize("length", [5, 7, 37])
def test_short_rows_with_remainder_are_not_in_place(length: int) -> None:
    """Their last vectors would be loaded where others were just stored, and have to wait for these."""

    def f(x: Any, w: Any, v: Any) -> Any:
        return ((x @ w) * v[:, None] + 1.0) @ w.T

    program = compare(f, *draw((50, 4), (4, length), (50,)))
    memory = lower(program.traced, get_target(), Options()).memory
    size = {v.key: v.size for v in memory.values}
    assert not [z for z in memory.over if size[z] == 50 * length * 4]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [37, 5000])
def test_kernel_with_several_results_of_one_input(dtype: str, n: int) -> None:
    def f(x: Any, w: Any) -> Any:
        y = x @ w
        a, b = np.tanh(y), np.exp(-y * y)
        return a @ w, b @ w, (y > 0) * 1.0, y.astype("f4")

    compare(f, *draw((n, 16), (16, 16), dtype=dtype))


def test_value_read_in_later_pass_is_not_overwritten() -> None:
    def f(x: Any, w: Any) -> Any:
        y = x @ w
        early = np.tanh(y)
        total = np.sum(early, 1, keepdims=True)
        return early @ w, (y * total) @ w

    compare(f, *draw((70, 32), (32, 32)))


@pytest.mark.parametrize("n", [8, 100])
def test_value_read_by_pieces_of_pieces_is_not_overwritten(n: int) -> None:
    def f(x: Any) -> Any:
        y, p = x * 0.5, x * 0.3
        z = y * p[0] + p[1]
        for i in range(2, 8):
            z = z * y + p[i]
        y[-1] -= 0.9
        y[0] = 0.9
        y[2:4] *= p[:2]
        return y, z

    compare(f, *draw((n,), dtype="f8"), rtol=1e-12)


def test_temporaries_share_memory_with_results() -> None:
    def f(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    program = compare(pb.value_and_grad(f), *draw((1000,), dtype="f8"), rtol=1e-12)
    assert program.temporaries <= 8064  # one of the two parts of the gradient; the other one lies in the result


def test_blas_product_with_transposed_matrix_needs_no_scratch_memory() -> None:
    program = pb.compile(lambda x, w: x @ w.T, backend="llvm").lower(*draw((500, 500), (500, 500)))
    assert lower(program.traced, X86[-1], Options()).memory.layout.arena == 0


# ------------------------------------------------------------------ results that are not written yet


def network(*args: Any) -> Any:
    *ws, x, y = args

    def loss(*ws: Any) -> Any:
        h = x
        for w in ws[:-1]:
            h = np.tanh(h @ w)
        return np.mean((h @ ws[-1] - y) ** 2)

    value, slopes = pb.value_and_grads(loss)(list(ws))
    return value, *(w - 0.1 * g for w, g in zip(ws, slopes, strict=True))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("widths", [(300, 96, 10), (50, 40, 30, 20), (8, 4, 2)])
@pytest.mark.parametrize("batch", [3, 64])
def test_training_step_temporaries_share_memory(widths: tuple[int, ...], batch: int) -> None:
    ws = draw(*pairwise(widths))
    x, y = draw((batch, widths[0]), (batch, widths[-1]))
    program = compare(network, *ws, x, y)
    if widths == (300, 96, 10):  # the activations lie where the new weights will be; a product needs a panel
        assert program.temporaries < 1.5 * batch * 96 * 4 + 16384


def test_temporaries_around_host_op() -> None:
    def f(x: Any, w: Any) -> Any:
        h = np.tanh(x @ w)
        small = np.linalg.eigvalsh(h.T @ h + np.eye(8, dtype="f4"))
        return np.exp(h * small), np.sum(small)

    program = compare(f, *draw((500, 8), (8, 8)))
    assert program.temporaries <= 500 * 8 * 4


# ------------------------------------------------------------------ less to be stored


SHORTER: dict[str, tuple[Function, list[tuple[int, ...]], list[str]]] = {
    "turned": (lambda a, b: (a @ b).T, [(40, 30), (30, 20)], ["product [20, 30] @ [30, 40]"]),
    "columns by a vector": (lambda a, v: a.T @ v, [(200, 30), (200,)], ["kernel [200, 30] by rows of [30]: mul, sum"]),
    "a vector by columns": (lambda a, v: v @ a.T, [(200, 30), (30,)], ["kernel [200, 30] by rows of [30]: mul, sum"]),
    "a new axis": (pb.grad(lambda x: np.sum(x[..., None, :] ** 3)), [(20, 30)], ["kernel [20, 30]: mul, mul, view"]),
    "padded twice": (
        pb.grad(lambda x: np.sum(x[1:] ** 3) + np.sum(np.exp(x[1:]))), [(50,)],
        ["kernel [49]: exp, mul, add", "kernel [50]: pieces"],
    ),
    "to the power of 0": (lambda x: x**0.0, [(50,)], ["kernel [50]: view"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORTER)
def test_kernel_names_of_simplified_programs(name: str) -> None:
    f, shapes, kernels = SHORTER[name]
    assert compare(f, *draw(*shapes)).kernels == kernels


def test_nan_to_power_zero_is_one() -> None:
    x = np.array([np.nan, np.inf, 0.0, -0.0, -2.0])
    np.testing.assert_array_equal(pb.compile(lambda x: x**0.0)(x), x**0.0)


def test_cheap_values_are_recomputed_not_stored() -> None:
    def f(x: Any, v: Any, w: Any) -> Any:
        def loss(w: Any) -> Any:
            return np.sum(pb.relu(pb.relu(x @ w) @ v) ** 2)

        return pb.grad(loss)(w)

    program = compare(f, *draw((100, 50), (40, 40), (50, 40)))
    assert program.temporaries <= 3 * 100 * 40 * 4  # where the first layer is positive can be seen in what it gave


def test_order_of_steps_with_crossed_dependencies() -> None:
    def f(x: Any, w: Any) -> Any:
        early = [np.tanh(x @ w * (i + 1.0)) for i in range(12)]
        crossed = [early[i] @ w + early[-1 - i] @ w for i in range(12)]
        sums = [np.sum(c * e, 1) for c, e in zip(crossed, early[3:] + early[:3], strict=True)]
        return *sums, early[5], sum(crossed)

    compare(f, *draw((30, 30), (30, 30)))


# ------------------------------------------------------------------ layouts


def test_verify_rejects_overlapping_layouts() -> None:
    a, b, c = Allocation("a", 100, 0, 2), Allocation("b", 100, 2, 3), Allocation("c", 100, 3, 4)
    here, there = MemoryPlace(-1, 0), MemoryPlace(-1, 64)
    verify(Layout({"a": here, "b": here, "c": MemoryPlace(-1, 128)}, 256, []), [a, b, c], {"b": "a"})
    for places, over in (
        ({"a": here, "b": here, "c": MemoryPlace(-1, 128)}, {}),
        ({"a": here, "b": there, "c": MemoryPlace(-1, 256)}, {"b": "a"}),
        ({"a": here, "b": MemoryPlace(-1, 128), "c": MemoryPlace(-1, 128)}, {}),
        ({"a": MemoryPlace(3, 0, False), "b": MemoryPlace(3, 512), "c": here}, {}),
    ):
        with pytest.raises(pb.errors.CompileError, match="is needed"):
            verify(Layout(places, 512, []), [a, b, c], over)


@pytest.mark.parametrize("count", [10, 300])
def test_place_values_arena_is_at_most_a_fifth_above_peak(count: int) -> None:
    random = np.random.default_rng(count)
    first = random.integers(0, count, count)
    values = [
        Allocation(i, int(random.integers(1, 9)) * 64, int(f), int(f + random.integers(0, 9)))
        for i, f in enumerate(first)
    ]
    results = {"z": (7, Allocation("z", 1000, count + 9, count + 10))}
    layout = place_values(values, {}, results)
    verify(layout, [*values, results["z"][1]], {})
    assert any(place.slot == 7 and place.lined for place in layout.places.values())
    needed = max(sum(v.size for v in values if v.first <= t <= v.last) for t in range(count + 9))
    assert layout.arena <= 1.2 * needed
    apart = place_apart(values, {}, results)
    assert all(size == v.size for (_, size), v in zip(apart.blocks, sorted(values, key=lambda v: v.first), strict=True))


# ------------------------------------------------------------------ walls


WRONG = (
    "import sys, numpy as np, pullback as pb\n"
    "from pullback.compiler.codegen.module_builder import ModuleBuilder\n"
    "right = ModuleBuilder.find_address\n"
    "def wrong(self, n, offset=0):\n"
    "    moved = n.number not in self.memory.slot and self.memory.layout.places[n.number].slot < 0\n"
    "    return right(self, n, offset + (by if moved else 0))\n"
    "ModuleBuilder.find_address = wrong\n"
    "for by in map(int, sys.argv[1:]):\n"
    "    f = pb.compile(lambda x, w: np.tanh(np.tanh(x @ w) @ w), cache=False)\n"
    "    try:\n"
    "        f(np.ones((9, 5)), np.ones((5, 5)))\n"
    "        print('right', flush=True)\n"
    "    except pb.errors.CompileError as error:\n"
    "        print(str(error).replace('\\n', ' '), flush=True)\n"
)


@pytest.mark.skipif(sys.platform != "linux", reason="pages are closed by mprotect")
def test_guard_pages_around_temporaries() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRONG, "0", "-1", "1", "9"], env={**os.environ, "PULLBACK_CANARY": "1"}, timeout=600,
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    right, *wrong = done.stdout.splitlines()
    assert right == "right", done.stderr
    assert ["wrote outside" in line for line in wrong] == [True, True]  # one element before it, or behind it
    assert done.returncode == -signal.SIGSEGV  # in the pages behind it


@pytest.mark.parametrize("count", [30, 300])
def test_arena_layout_of_random_lifetimes_has_no_overlap_and_is_near_peak(count: int) -> None:
    random = np.random.default_rng(count)
    first = np.sort(random.integers(0, 2 * count, count))
    values = [
        Allocation(i, int(size), int(begin), int(begin + length))
        for i, (size, begin, length) in enumerate(
            zip(random.integers(1, 5000, count), first, random.integers(0, 40, count), strict=True)
        )
    ]
    results = {"z": (0, Allocation("z", 20000, 2 * count, 3 * count))}
    layout = place_values(values, {}, results)
    verify(layout, [*values, results["z"][1]], {})
    peak = max(sum(v.size for v in values if v.first <= step <= v.last) for step in range(3 * count))
    assert layout.arena <= 1.5 * peak + 64 * 64
