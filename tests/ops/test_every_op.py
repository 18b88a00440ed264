"""Every op of the registry, checked from its own facts.  Adding an op adds its tests."""

from __future__ import annotations

import itertools
import math
import sys
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import scipy.special
from exhaustive import sample

import pullback as pb
from pullback.compiler.backends.executor import LibraryExecutor
from pullback.compiler.backends.library import Library
from pullback.core import tape
from pullback.core.formula import get_parameters
from pullback.core.lowering import fold, scalar
from pullback.core.op import REGISTRY, list_ops
from pullback.errors import PullbackError, UnconnectedError

H = 1e-6
OPS = list_ops()
ELEMENTWISE = [op for op in OPS if op.elementwise]


def is_shape(x: Any) -> bool:
    """Whether an input of a sample is a shape, to be filled; else it is an array."""
    return isinstance(x, tuple | list)


def label(inputs: Any, params: Any) -> str:
    """How a sample is named where a test fails."""
    shapes = ", ".join(str([*x]) if is_shape(x) else f"{x.dtype}{[*x.shape]}" for x in inputs)
    return shapes + "".join(f", {k}={v!r:.30}".replace("\n", " ") for k, v in params.items())


def for_samples(ops: list[Any], one_of: int = 1, first: int = 0) -> Callable[[Callable[..., None]], Any]:
    """Run a test for each of some ops, on all samples of its inputs and parameters; or on one of so many."""

    def decorate(test: Callable[..., None]) -> Any:
        def run(op: Any) -> None:
            for inputs, params in sample(op.acts.samples(), one_of, first):
                try:
                    test(op, inputs, params)
                except BaseException as error:
                    error.add_note(f"{op.name} of {label(inputs, params)}")
                    raise

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return pytest.mark.parametrize("op", ops, ids=lambda op: op.name)(run)

    return decorate


FLOWING, CONSTANT = [op for op in OPS if op.flows], [op for op in OPS if not op.flows]
every_case, every_flowing_case = for_samples(OPS), for_samples(FLOWING)
every_elementwise_op = pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)


def random(op: Any, *more: Any) -> np.random.Generator:
    """Numbers of its own for every op, the same on every run."""
    return np.random.default_rng(zlib.crc32(repr((op.name, *more)).encode()))


def drawn(op: Any, inputs: Any) -> list[Any]:
    """Arrays for a sample: shapes are filled from the op's domain, arrays are what they are."""
    rng = random(op, "values")
    return [np.asarray(rng.uniform(*op.domain, size=x) if is_shape(x) else x) for x in inputs]


def elementwise_inputs(op: Any, *shapes: Any) -> tuple[list[Any], dict[str, Any]]:
    """Inputs of these shapes for an elementwise op, and the parameters of its samples.  Conditions stay conditions."""
    samples = op.acts.samples()
    inputs, params = samples[0]
    rng = random(op, "shaped")
    xs = []
    for shape, given in zip(shapes, inputs, strict=True):
        if is_shape(given) or given.dtype.kind == "f":
            xs.append(rng.uniform(*op.domain, size=shape))
        else:
            xs.append(np.resize(given, shape) if given.size else np.zeros(shape, given.dtype))
    return xs, params


def moving(op: Any, xs: list[Any]) -> list[int]:
    """Which inputs are differentiated: floats and complex numbers in which the op has a derivative."""
    return [i for i, x in enumerate(xs) if x.dtype.kind in "fc" and op.d.differentiable(i)]


def of_the_moving(op: Any, xs: list[Any], params: Any) -> tuple[Any, list[Any]]:
    """The op as a function of the inputs that are differentiated, and those inputs."""
    live = moving(op, xs)

    def f(*some: Any) -> Any:
        put = dict(zip(live, some, strict=True))
        return op.call([put.get(i, x) for i, x in enumerate(xs)], params)

    return f, [xs[i] for i in live]


def along(f: Any, xs: list[Any], ts: list[Any]) -> Any:
    """The derivative of ``f`` in the direction ``ts``, by central differences."""
    ahead, behind = ([x + s * H * t for x, t in zip(xs, ts, strict=True)] for s in (1, -1))
    return (np.asarray(f(*ahead)) - np.asarray(f(*behind))) / (2 * H)


def inner(a: Any, b: Any) -> Any:
    """The real product: complex numbers are pairs of real ones."""
    return sum(np.vdot(x, y).real for x, y in zip(a, b, strict=True))


def normal(rng: np.random.Generator, like: Any) -> Any:
    """Random numbers, complex for complex ones."""
    x = rng.normal(size=np.shape(like))
    return x + 1j * rng.normal(size=x.shape) if np.iscomplexobj(like) else x


NARROW = {"float64": np.float32, "complex128": np.complex64}


def narrowed(x: Any) -> Any:
    return x.astype(NARROW.get(x.dtype.name, x.dtype))


def widened(x: Any) -> Any:
    return x.astype(np.result_type(x, np.float64)) if x.dtype.kind in "fc" else x


def close(a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-7) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)


# ------------------------------------------------------------------ values


@every_case
def test_every_op_value_has_shape_and_type_of_rule(op: Any, inputs: Any, params: Any) -> None:
    xs = drawn(op, inputs)
    out = op.call(xs, params)
    assert isinstance(out, np.ndarray | np.generic)
    assert out.shape == op.acts.shape(op.name, [x.shape for x in xs], {**op.params, **params})
    if not out.shape:  # the engine computes with NumPy's scalars, which are quicker than 0-d arrays
        assert isinstance(op.call([x[()] for x in xs], params), np.generic)
    tensor = op.call([pb.tensor(x) for x in xs], params)
    assert isinstance(tensor, pb.Tensor)
    assert (tensor.shape, tensor.dtype) == (out.shape, out.dtype)
    np.testing.assert_array_equal(tensor.numpy(), out)


@for_samples(OPS, one_of=2)
def test_every_op_of_read_only_and_strided_inputs(op: Any, inputs: Any, params: Any) -> None:
    xs = drawn(op, inputs)
    strided = [np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x.copy() for x in xs]
    for x in strided:
        x.flags.writeable = False
    close(op.call(strided, params), op.call(xs, params), 1e-14, 1e-15)
    if op.flows and moving(op, xs):
        f, ins = of_the_moving(op, xs, params)
        g, odd = of_the_moving(op, strided, params)
        dy = normal(random(op, "dy"), f(*ins))
        for a, b in zip(pb.grads(g)(odd, dy), pb.grads(f)(ins, dy), strict=True):
            close(a, b, 1e-13, 1e-14)
            assert a.shape == b.shape
            assert a.ndim == 0 or a.flags.writeable


@for_samples(OPS, one_of=2, first=1)
def test_every_op_of_float32_is_float32(op: Any, inputs: Any, params: Any) -> None:
    xs = drawn(op, inputs)
    narrow = [narrowed(x) for x in xs]
    wide = [widened(x) for x in narrow]
    out, want = op.call(narrow, params), op.call(wide, params)
    assert out.dtype == (want.dtype if "dtype" in params else NARROW.get(want.dtype.name, want.dtype))
    close(out, want, 2e-4, 2e-4)
    if not op.flows or not moving(op, xs):
        return
    f, ins = of_the_moving(op, narrow, params)
    reference, wide_ins = of_the_moving(op, wide, params)
    dy = narrowed(normal(random(op, "dy"), out))
    ts = [narrowed(normal(random(op, "t"), x)) for x in ins]
    got = pb.grads(f)(ins, dy)
    for x, a, b in zip(ins, got, pb.grads(reference)(wide_ins, widened(dy)), strict=True):
        assert a.dtype == x.dtype
        close(a, b, 2e-3, 2e-3)
    tangent = pb.jvp(f, ins, ts)[1]
    assert tangent.dtype == out.dtype
    close(tangent, pb.jvp(reference, wide_ins, [widened(t) for t in ts])[1], 2e-3, 2e-3)


# ------------------------------------------------------------------ derivatives


@every_flowing_case
def test_every_op_first_order_in_both_modes(op: Any, inputs: Any, params: Any) -> None:
    f, ins = of_the_moving(op, drawn(op, inputs), params)
    assert ins, "a sample of an op with a derivative has an input to differentiate by"
    rng = random(op, "directions")
    ts = [normal(rng, x) for x in ins]
    want = along(f, ins, ts)
    value, tangent = pb.jvp(f, ins, ts)
    close(value, f(*ins), 1e-14, 0)
    close(tangent, want)
    assert np.shape(tangent) == np.shape(value)
    dy = normal(rng, want)
    got = pb.grads(f)(ins, dy)
    assert [d.shape for d in got] == [x.shape for x in ins]
    assert not any(isinstance(d, pb.Tensor) for d in got)
    close(inner(got, ts), inner([dy], [want]))
    close(inner(got, ts), inner([dy], [tangent]), 1e-10, 1e-12)


@every_flowing_case
def test_every_op_gradient_by_each_input(op: Any, inputs: Any, params: Any) -> None:
    """The steps for one operand on the tape are other ones than those for all."""
    f, ins = of_the_moving(op, drawn(op, inputs), params)
    if len(ins) == 1:
        return
    dy = normal(random(op, "dy"), f(*ins))
    for others in (ins, [pb.tensor(x) for x in ins]):
        for i, want in enumerate(pb.grads(f)(ins, dy)):
            got = pb.grad(lambda x, i=i, a=others: f(*a[:i], x, *a[i + 1 :]))(ins[i], dy=dy)
            close(got, want, 1e-13, 1e-14)


@every_flowing_case
def test_every_op_second_order(op: Any, inputs: Any, params: Any) -> None:
    """The gradient is itself a function, of the inputs and of ``dy``; both nestings differentiate it."""
    f, ins = of_the_moving(op, drawn(op, inputs), params)
    rng = random(op, "second")
    ws = [normal(rng, x) for x in ins]
    point = [*ins, normal(rng, f(*ins))]
    ts = [normal(rng, x) for x in point]

    def first(*a: Any) -> Any:
        terms = [d * w for d, w in zip(pb.grads(f)(list(a[:-1]), a[-1]), ws, strict=True)]
        return sum(np.sum(np.real(t) if t.dtype.kind == "c" else t) for t in terms)

    want = along(first, point, ts)
    close(inner(pb.grads(first, unconnected="zero")(point), ts), want, 1e-5, 1e-6)
    close(pb.jvp(first, point, ts)[1], want, 1e-5, 1e-6)


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if len(op.inputs) > 1], ids=lambda op: op.name)
def test_every_op_accepts_python_number_as_any_operand(op: Any) -> None:
    samples, params = op.acts.samples()[0]
    given = [np.full(2, np.mean(op.domain) if is_shape(x) else np.ravel(x)[0]) for x in samples]
    for i, x in enumerate(given):
        number = [x[0].item() if j == i else y for j, y in enumerate(given)]
        expected = op.function(*given, **params)
        np.testing.assert_allclose(op.function(*number, **params), expected)
        tensors = [y if j == i else pb.tensor(y) for j, y in enumerate(number)]
        np.testing.assert_allclose(np.asarray(op.function(*tensors, **params)), expected)


@for_samples(CONSTANT)
def test_constant_ops_have_no_gradient(op: Any, inputs: Any, params: Any) -> None:
    xs = drawn(op, inputs)
    f = lambda *some: op.call(some, params)
    with pytest.raises(UnconnectedError, match=rf"{op.name} \(test_every_op.py:\d+\)"):
        pb.grads(f)(xs)
    value, tangent = pb.jvp(f, xs, [np.ones(x.shape) for x in xs])
    np.testing.assert_array_equal(value, f(*xs))
    np.testing.assert_array_equal(tangent, np.zeros(value.shape))


# ------------------------------------------------------------------ many examples at once


def examples(op: Any, xs: list[Any], inputs: Any, on: Any) -> list[Any]:
    """Two examples for each input that is ``on``: the sample, and another that the op takes as well."""
    rng = random(op, "examples")
    made = []
    for i, (x, given, b) in enumerate(zip(xs, inputs, on, strict=True)):
        if not b:
            made.append(x)
            continue
        other = rng.uniform(*op.domain, size=x.shape) if is_shape(given) else x * 0.97 if x.dtype.kind in "fc" else x
        if x.dtype.kind not in "fc" and x.ndim:  # positions and conditions in another order, where they may be
            try:
                op.call([*xs[:i], np.flip(x, 0), *xs[i + 1 :]], {})
            except (pb.errors.PullbackError, TypeError):
                pass
            else:
                other = np.flip(x, 0)
        made.append(np.stack([x, other]))
    return made


@for_samples(OPS, one_of=2)
def test_vmap_of_every_op_matches_loop(op: Any, inputs: Any, params: Any) -> None:
    """With the examples on any subset of the inputs, and along any axis."""
    xs = drawn(op, inputs)
    f = lambda *a: op.call(a, params)
    for on in itertools.product((False, True), repeat=len(xs)):
        if not any(on):
            continue
        args = examples(op, xs, inputs, on)
        want = np.stack([f(*(a[i] if b else a for a, b in zip(args, on, strict=True))) for i in range(2)])
        for last in range(1 + max(x.ndim for x in xs)):
            axes = [min(last, x.ndim) if b else None for x, b in zip(xs, on, strict=True)]
            moved = [a if axis is None else np.moveaxis(a, 0, axis) for a, axis in zip(args, axes, strict=True)]
            got = pb.vmap(f, axes)(*moved)
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            close(got, want, 1e-11, 1e-13)


@for_samples(FLOWING, one_of=2, first=1)
def test_vmap_of_grad_of_every_op_matches_loop(op: Any, inputs: Any, params: Any) -> None:
    """The gradient inside ``vmap`` is that of a loop, and outside it is the sum where an input is the same for all."""
    xs = drawn(op, inputs)
    live = moving(op, xs)
    weights = normal(random(op, "dy"), op.call(xs, params))

    def pulled(*a: Any) -> Any:
        f = lambda *some: op.call([dict(zip(live, some, strict=True)).get(i, x) for i, x in enumerate(a)], params)
        return pb.grads(f)([a[i] for i in live], weights)

    for on in {tuple(j == i for j in range(len(xs))) for i in live} | {tuple(x.dtype.kind in "fc" for x in xs)}:
        args, axes = examples(op, xs, inputs, on), [0 if b else None for b in on]
        loop = [pulled(*(a[i] if b else a for a, b in zip(args, on, strict=True))) for i in range(2)]
        for got, *want in zip(pb.vmap(pulled, axes)(*args), *loop, strict=True):
            close(got, np.stack(want), 1e-9, 1e-11)
        mapped = pb.vmap(lambda *some: op.call(some, params), axes)
        whole = lambda *some, args=args, mapped=mapped: mapped(
            *[dict(zip(live, some, strict=True)).get(i, x) for i, x in enumerate(args)]
        )
        outside = pb.grads(whole)([args[i] for i in live], np.stack([weights, weights]))
        for i, got, *want in zip(live, outside, *loop, strict=True):
            close(got, np.stack(want) if on[i] else want[0] + want[1], 1e-9, 1e-11)


# ------------------------------------------------------------------ compiled


def make_value_and_gradients(op: Any, xs: list[Any], params: Any) -> Any:
    """Return a function that gives the value of an op and its gradients, all in one list."""
    live = moving(op, xs) if op.flows else []
    dy = normal(random(op, "dy"), op.call(xs, params))
    dy = narrowed(dy) if xs and any(x.dtype in NARROW.values() for x in xs) else dy

    def value_and_gradients(*a: Any) -> Any:
        f = lambda *some: op.call([dict(zip(live, some, strict=True)).get(i, x) for i, x in enumerate(a)], params)
        return [op.call(a, params), *(pb.grads(f)([a[i] for i in live], dy) if live else [])]

    return value_and_gradients


def check_all_close(results: Any, expected: Any, tight: tuple[float, float]) -> None:
    for got, want in zip(results, expected, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        close(got, want, *tight)


def check_compiled(op: Any, xs: list[Any], params: Any, tight: tuple[float, float]) -> None:
    """Check the value and the gradients of an op that is compiled, in one program."""
    f = make_value_and_gradients(op, xs, params)
    check_all_close(pb.compile(f)(*xs), f(*xs), tight)


@for_samples(OPS, one_of=2)  # the others in float32
def test_every_op_compiled_matches_eager(op: Any, inputs: Any, params: Any) -> None:
    """As machine code, or with its NumPy kernel between machine code, an op gives what it gives; gradients too."""
    check_compiled(op, drawn(op, inputs), params, (1e-11, 1e-13))


@for_samples(OPS, one_of=2, first=1)
def test_every_op_compiled_matches_eager_in_float32(op: Any, inputs: Any, params: Any) -> None:
    check_compiled(op, [narrowed(x) for x in drawn(op, inputs)], params, (2e-5, 2e-6))


class NamesOfNumpy(Library):
    """NumPy and SciPy by their names: CuPy has the same."""

    special = scipy.special


@pytest.mark.filterwarnings("ignore:compile. backend=.* has no")
@pytest.mark.sampled(2)
@for_samples(OPS, one_of=4)
def test_every_op_by_array_library_matches_eager(op: Any, inputs: Any, params: Any) -> None:
    """As a graph that another library runs: those that are installed, and NumPy by its names, as CuPy would."""
    xs = drawn(op, inputs)
    f = make_value_and_gradients(op, xs, params)
    expected, program = f(*xs), pb.compile(f, backend="numpy").lower(*xs)
    made = LibraryExecutor(program.graph, NamesOfNumpy(), program.traced)(xs)
    check_all_close(made, expected, (1e-6, 1e-8))
    for backend in ("jax", "torch"):
        if find_spec(backend) is not None:
            check_all_close(pb.compile(f, backend=backend)(*xs), expected, (1e-6, 1e-8))


# ------------------------------------------------------------------ big arrays


BIG = {np.float32: (200, 100), np.float64: (100, 100)}  # 80 kB


@pytest.mark.sampled(2)
@every_elementwise_op
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_op_of_large_arrays_matches_small_ones(op: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and cotangents of large arrays live in recycled buffers; tiles of a small array must not notice."""
    monkeypatch.setattr(tape, "RECYCLED", 80_000)  # bytes, instead of 1 MiB
    rows, columns = BIG[dtype]
    xs, params = elementwise_inputs(op, *[(columns,)] * len(op.inputs))
    xs = [x.astype(dtype) if x.dtype.kind == "f" else x for x in xs]
    tiles = [np.tile(x, (rows, 1)) for x in xs]
    before = [x.copy() for x in tiles]
    tight = {"rtol": 2e-5, "atol": 1e-5} if dtype is np.float32 else {"rtol": 1e-12, "atol": 1e-13}
    value = op.call(xs, params)
    close(op.call(tiles, params), np.tile(value, (rows, 1)), **tight)
    if op.flows:
        f, small = of_the_moving(op, xs, params)
        h, big = of_the_moving(op, tiles, params)
        square = lambda f: lambda *a: f(*a) * f(*a) * 0.5
        slope = lambda f: lambda *a: sum([d * d for d in pb.grads(f)(list(a))])
        for make, times in ((lambda f: f, 2), (square, 2), (slope, 1)):  # the second time buffers come from the pool
            wanted = pb.grads(make(f), unconnected="zero")(small)
            for _ in range(times):
                got = pb.grads(make(h), unconnected="zero")(big)
                for a, b in zip(got, wanted, strict=True):
                    assert a.dtype == dtype
                    close(a, np.tile(b, (rows, 1)), **tight)
    for x, y in zip(tiles, before, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if len(op.inputs) > 1 and op.flows], ids=lambda op: op.name)
def test_every_op_broadcasts_large_arrays(op: Any) -> None:
    """A big operand with a row and a number: the cotangent of what was broadcast is summed."""
    rows, columns = BIG[np.float64]
    for i in range(len(op.inputs)):
        for other in ((columns,), ()):
            shapes = [other] * len(op.inputs)
            shapes[i] = (2, columns)
            xs, params = elementwise_inputs(op, *shapes)
            tiles = [np.tile(x, (rows // 2, 1)) if n == i else x for n, x in enumerate(xs)]
            f, small = of_the_moving(op, xs, params)
            h, big = of_the_moving(op, tiles, params)
            if not small:
                continue
            pairs = zip(pb.grads(h)(big), pb.grads(f)(small), strict=True)
            for n, (a, b) in zip(moving(op, xs), pairs, strict=True):
                close(a, np.tile(b, (rows // 2, 1)) if n == i else b * (rows // 2), 1e-10, 1e-10)


# ------------------------------------------------------------------ what ops are given


@every_elementwise_op
def test_every_op_of_number_list_and_variable_inputs(op: Any) -> None:
    xs, params = elementwise_inputs(op, *[(3,)] * len(op.inputs))
    narrow = [x.astype(np.float32) if x.dtype.kind == "f" else x for x in xs]
    want = op.call(narrow, params)
    out = op.call([pb.variable(x) for x in narrow], params)
    assert isinstance(out, pb.Tensor)
    assert out.dtype == want.dtype
    np.testing.assert_array_equal(out.numpy(), want)
    if all(x.dtype.kind in "fb" for x in xs):  # a list of Python's integers would be floats
        out = op.call([x.tolist() for x in narrow], params)
        assert isinstance(out, pb.Tensor)
        close(out.numpy(), want)
        out = op.call([x[0].item() for x in xs], params)
        assert isinstance(out, np.generic)
        close(out, op.call(xs, params)[0])


@every_elementwise_op
def test_every_elementwise_op_at_edge_values(op: Any) -> None:
    shapes = [[x if is_shape(x) else x.shape for x in inputs] for inputs, _ in op.acts.samples()]
    ranks = [max(map(len, some)) for some in shapes]
    assert min(ranks) == 0
    assert max(ranks) > 1
    assert any(0 in shape for some in shapes for shape in some)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_docstring_has_example(op: Any) -> None:
    first, *_ = op.function.__doc__.split("\n")
    assert first.strip()
    assert ">>> " in op.function.__doc__
    is_public = op.name in sys.modules[op.function.__module__].__all__
    assert hasattr(pb.Tensor, op.name) == is_public


# ------------------------------------------------------------------ lowering


class Scalars:
    """What a lowering computes with, on whole arrays: NumPy's and SciPy's functions, ``select`` and ``philox``."""

    select = staticmethod(np.where)
    erf = staticmethod(np.vectorize(math.erf, otypes=[float]))
    philox = staticmethod(REGISTRY["draw_uniform"].kernel)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name) if hasattr(np, name) else getattr(pytest.importorskip("scipy.special"), name)


def _lowered(kind: Any) -> list[Any]:
    return [op for op in OPS if isinstance(op.lower, kind)]


@for_samples(_lowered(scalar))
def test_scalar_lowering_matches_kernel(op: Any, inputs: Any, params: Any) -> None:
    xs = [np.real(x) for x in drawn(op, inputs)]  # complex numbers are split into real ones before
    given = {**op.params, **params}
    emit = op.lower.emit
    out = emit(Scalars(), *xs, *[given[n] for n in get_parameters(emit)[1 + len(xs) :]])
    close(out, op.call(xs, params), 1e-12, 1e-12)


@for_samples(_lowered(fold))
def test_fold_lowering_matches_kernel(op: Any, inputs: Any, params: Any) -> None:
    (x,) = drawn(op, inputs)
    given = {**op.params, **params}
    axis = given["axis"]
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    last = np.moveaxis(x, [*axes], [*range(-len(axes), 0)])
    rows = last.reshape(*last.shape[: x.ndim - len(axes)], math.prod(last.shape[x.ndim - len(axes) :]))
    acc = np.full(rows.shape[:-1], op.lower.start)
    for i in range(rows.shape[-1]):
        acc = op.lower.emit(Scalars(), acc, rows[..., i])
    want = op.call([x], params)
    close(acc.reshape(want.shape), want, 1e-12, 1e-12)


# ------------------------------------------------------------------ other kinds of numbers


OF_ANY_SIGN = {"eig_rows", "eigh_rows", "svd_rows"}  # complex LAPACK may choose other signs than the real one


def complex_inputs(op: Any, xs: list[Any], which: int) -> list[Any]:
    """The same inputs, one of them with an imaginary part."""
    x, rng = xs[which], random(op, "imaginary", which)
    side = rng.uniform(0.1, 0.5, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    return [*xs[:which], np.asarray(x + 1j * side), *xs[which + 1 :]]


@for_samples(OPS, one_of=2)
def test_every_op_of_complex_inputs(op: Any, inputs: Any, params: Any) -> None:
    """A complex input gives the continuation of the real function, with right derivatives, or an error of ours."""
    xs = drawn(op, inputs)
    for which in [i for i, x in enumerate(xs) if x.dtype.kind == "f"]:
        zs = complex_inputs(op, xs, which)
        f = lambda z, zs=zs, which=which: op.call([*zs[:which], z, *zs[which + 1 :]], params)
        try:
            value = f(zs[which])
        except PullbackError:
            for refused in (lambda z, f=f: f(pb.tensor(z)), lambda z, f=f: pb.jvp(f, [z], [z]), pb.compile(f)):
                with pytest.raises(PullbackError):
                    refused(zs[which])
            continue
        if op.name not in OF_ANY_SIGN:
            close(f(xs[which] + 0j), op.call(xs, params), 1e-11, 1e-12)
        if not op.flows or not op.d.differentiable(which):
            continue
        rng = random(op, "complex", which)
        t, dy = normal(rng, zs[which]), normal(rng, value)
        try:
            tangent, grad = pb.jvp(f, [zs[which]], [t])[1], pb.grad(f)(zs[which], dy)
        except PullbackError:
            continue
        want = along(f, [zs[which]], [t])
        close(tangent, want)
        close(inner([grad], [t]), inner([dy], [want]))


WHOLE = {"b": [0, 1], "i": [0, 1, 2, 3, 5, 11, 12, 20, 50, -1, -2, -12, -50], "u": [0, 1, 2, 3, 5, 11, 12, 20, 50]}
ORDERED = {"polygamma", "zeta", "iv", "ive", "jv"}  # the order has no derivative


@pytest.mark.sampled(6)
@every_elementwise_op
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool"])
def test_integer_inputs_match_floats(op: Any, dtype: str) -> None:
    """Wherever the result is a float: as tensors, on a tape, compiled, after other dtypes were seen."""
    samples, params = op.acts.samples()[0]
    numbers = np.array(WHOLE[np.dtype(dtype).kind], dtype)
    on = [is_shape(x) or x.dtype.kind == "f" for x in samples]
    xs = [np.roll(numbers, i) if on[i] else np.resize(x, numbers.shape) for i, x in enumerate(samples)]
    floats, short = ([x.astype(kind) if on[i] else x for i, x in enumerate(xs)] for kind in (np.float64, np.float32))
    f = lambda *a: op.call(a, params)
    try:
        f(*map(pb.tensor, short))
        want, out = f(*floats), f(*map(pb.tensor, xs))
    except PullbackError:  # bits are of integers only, and some functions refuse bools
        return
    if out.dtype.kind != "f":
        return
    near = (1e-12, 1e-13) if out.dtype == np.float64 else (2e-5, 1e-6)
    close(out, want, *near)
    for got in (
        f(*[pb.tensor(x) + 0 * pb.tensor(x) if x.dtype.kind in "iu" else pb.tensor(x) for x in xs]),
        pb.compile(f)(*xs),
    ):
        assert got.dtype == out.dtype
        close(got, out, *near)
    live = [i for i in range(len(xs)) if on[i] and op.flows and op.d.differentiable(i) and op.name not in ORDERED]
    if live:
        of = lambda base: lambda *some: f(*[dict(zip(live, some, strict=True)).get(i, x) for i, x in enumerate(base)])
        value, grads = pb.value_and_grads(of(xs))([xs[i] for i in live])
        close(value, want, *near)
        for got, d in zip(grads, pb.grads(of(floats))([floats[i] for i in live]), strict=True):
            close(got, d.astype(got.dtype), 1e-4, 1e-5)
        moved = [np.ones(numbers.shape) for _ in live]
        tangent = pb.jvp(of(xs), [xs[i] for i in live], moved)[1]
        close(tangent, pb.jvp(of(floats), [floats[i] for i in live], moved)[1].astype(tangent.dtype), 1e-4, 1e-5)
