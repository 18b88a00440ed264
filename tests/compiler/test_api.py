"""The public API of ``compile``: results, variables, signatures, cache keys and errors, compared with eager code."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, CompileError, SymbolValueError, VariableError
from pullback.transforms.override import GRADIENTS

R = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float64) -> Any:
    return R.normal(size=shape).astype(dtype)


def same(f: Any, *args: Any, rtol: float = 1e-12, atol: float = 1e-13) -> Any:
    """Check that a compiled function gives what the function gives, with both backends, and return it."""
    want = pb.core.tree.leaves(f(*args))
    for backend in ("numpy", "auto"):
        compiled = pb.compile(f, backend=backend)
        for _ in range(2):  # the second call finds the program
            got = pb.core.tree.leaves(compiled(*args))
            assert len(got) == len(want)
            for a, b in zip(got, want, strict=True):
                assert (np.shape(a), getattr(a, "dtype", type(a))) == (np.shape(b), getattr(b, "dtype", type(b)))
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)
        compiled.lower(*args).graph.verify()
    return compiled


# ------------------------------------------------------------------ programs


def chain(x: Any) -> Any:
    return pb.sum(np.tanh(np.sin(x) * np.exp(-(x * x) * 0.5) + np.log(1.0 + x * x)))


def rosenbrock(x: Any) -> Any:
    return pb.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def cross_entropy(x: Any, labels: Any) -> Any:
    return pb.mean(pb.log_sum_exp(x, 1) - pb.sum(x * labels, 1))


def layer_norm(x: Any, gamma: Any, beta: Any, weights: Any) -> Any:
    e = x - pb.mean(x, 1, keepdims=True)
    return pb.sum((e / np.sqrt(pb.mean(e * e, 1, keepdims=True) + 1e-5) * gamma + beta) * weights)


def attention(x: Any, q: Any, k: Any, v: Any, o: Any) -> Any:
    batch, tokens, width = x.shape

    def heads(y: Any) -> Any:
        return pb.transpose(pb.reshape(y, (batch, tokens, 4, width // 4)), (0, 2, 1, 3))

    scores = heads(x @ q) @ pb.transpose(heads(x @ k), (0, 1, 3, 2))
    y = pb.transpose(pb.softmax(scores / 2.0) @ heads(x @ v), (0, 2, 1, 3))
    return pb.sum(pb.reshape(y, x.shape) @ o * x)


def recurrent(xs: Any, w: Any, u: Any, b: Any, h: Any) -> Any:
    for i in range(6):
        h = np.tanh(xs[i] @ w + h @ u + b)
    return pb.sum(h * h)


def mixture(x: Any, means: Any, scales: Any, weights: Any) -> Any:
    d = (x[:, None, :] - means[None]) * np.exp(-scales)[None]
    each = pb.log_softmax(weights)[None] - 0.5 * pb.sum(d * d, 2) - pb.sum(scales, 1)[None]
    return pb.sum(pb.log_sum_exp(each, 1))


PROGRAMS = {
    "chain": (chain, lambda d: [normal(1037, dtype=d)]),
    "chain of nothing": (chain, lambda d: [normal(0, dtype=d)]),
    "rosenbrock": (rosenbrock, lambda d: [normal(100, dtype=d)]),
    "cross entropy": (cross_entropy, lambda d: [normal(37, 53, dtype=d), np.eye(53, dtype=d)[R.integers(0, 53, 37)]]),
    "layer norm": (layer_norm, lambda d: [normal(*s, dtype=d) for s in ((37, 53), (53,), (53,), (37, 53))]),
    "attention": (attention, lambda d: [normal(*s, dtype=d) / 4 for s in ((2, 9, 8), *[(8, 8)] * 4)]),
    "recurrent": (recurrent, lambda d: [normal(*s, dtype=d) / 4 for s in ((6, 5, 8), (8, 8), (8, 8), (8,), (5, 8))]),
    "mixture": (mixture, lambda d: [normal(*s, dtype=d) for s in ((200, 4), (8, 4), (8, 4), (8,))]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_grads_match_eager(name: str, dtype: Any) -> None:
    f, data = PROGRAMS[name]
    tight = {"rtol": 1e-10, "atol": 1e-11} if dtype is np.float64 else {"rtol": 2e-4, "atol": 2e-4}
    same(lambda *xs: tuple(pb.value_and_grads(f)(list(xs))), *data(dtype), **tight)


def test_transforms_inside_compiled_function() -> None:
    x, v = normal(7), normal(7)
    f = lambda x: pb.sum(np.sin(x) * x * x)
    same(pb.grad(lambda x: pb.sum(pb.grad(f)(x) * v)), x)
    same(lambda x, v: pb.jvp(pb.grad(f), [x], [v]), x, v)
    same(pb.vmap(pb.grad(f)), normal(5, 7))
    same(lambda x: pb.vmap(lambda v: pb.jvp(pb.grad(f), [x], [v])[1])(np.eye(7)), x)


def test_custom_gradients_inside_compiled_function() -> None:
    @pb.custom_grad
    def f(x: Any, save: Any) -> Any:
        save([x])
        return np.sin(x), lambda dy, saved: dy * np.cos(saved[0]) * 2

    same(pb.grad(lambda x: pb.sum(f(x) * x)), normal(5))
    same(pb.grad(lambda x: pb.sum(pb.recompute_grad(chain)(x) * 2)), normal(5))


# ------------------------------------------------------------------ what is given and given back


class Point(NamedTuple):
    x: Any
    y: Any


def test_tree_arguments_and_results() -> None:
    f = lambda p, q: {"sum": p["a"] + q.x, "parts": (q.y, [p["b"] * 2.0])}
    same(f, {"a": normal(3), "b": normal(2)}, Point(normal(3), normal(4)))


def test_result_type_matches_argument_type() -> None:
    f = pb.compile(lambda x: x * 2.0)
    assert type(f(np.ones(3))) is np.ndarray
    assert isinstance(f(pb.tensor([1.0])), pb.Tensor)
    assert isinstance(f(np.float64(3.0)), np.float64)
    assert f(np.ones(2, np.float32)).dtype == np.float32


def test_python_numbers_do_not_widen_dtype() -> None:
    f = pb.compile(lambda x, rate: x - rate * x)
    assert f(np.ones(3, np.float32), 0.1).dtype == np.float32
    np.testing.assert_allclose(f(np.ones(3, np.float32), 0.5), np.full(3, 0.5))
    assert len(f.programs) == 1  # another number is no other program


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_concat_stack_of_integers_and_float32_is_float32(backend: str) -> None:
    x, n = pb.tensor([1.5], dtype="float32"), pb.tensor([2], dtype="int64")
    for f in (lambda x, n: np.concatenate([n, x]), lambda x, n: np.stack([x, n]), lambda x, n: pb.concat([n, x, n])):
        assert pb.compile(f, backend=backend)(x, n).dtype == f(x, n).dtype == np.float32


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_reshape_of_empty_array(backend: str) -> None:
    f = lambda x: np.reshape(np.tanh(x) * 2.0, (-1, 3)) + 1.0
    assert pb.compile(f, backend=backend)(np.zeros((0, 3, 2))).shape == (0, 3)


def test_constants_are_captured_by_value() -> None:
    c = np.ones(3)
    f = pb.compile(lambda x: x + c)
    f(np.ones(3))
    c += 1
    np.testing.assert_array_equal(f(np.ones(3)), np.full(3, 2.0))


def test_results_do_not_alias_inputs() -> None:
    x = normal(4)
    y = pb.compile(lambda x: (x, pb.reshape(x, (2, 2))))(x)
    y[0][0] = y[1][0, 0] = 99.0
    assert 99.0 not in x


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[::2], lambda x: np.asfortranarray(x), lambda x: x[::-1, ::-1], lambda x: x.astype(">f8"),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape),
        lambda x: np.broadcast_to(x[:1], x.shape),
    ],
    ids=["strided", "Fortran", "reversed", "swapped", "misaligned", "broadcast"],
)  # fmt: skip
def test_compiled_function_accepts_every_memory_layout(make: Any) -> None:
    x = make(normal(6, 5))
    x.flags.writeable = False
    want = np.sum(np.asarray(x, float) * 2.0 + 1.0, axis=0)
    np.testing.assert_allclose(pb.compile(lambda x: pb.sum(x * 2.0 + 1.0, 0))(x), want)


def write_through_ravel(x: Any) -> Any:
    """Return ``x * 1.0`` with every other element written through ``ravel()``: a view in C order, else a copy."""
    z = x * 1.0
    w = z.ravel()
    w[::2] = 0.25
    return z + 0.5


COPIED = np.asfortranarray(normal(6, 5))


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: lambda x: pb.jvp(f, [x], [x])[0]])
@pytest.mark.parametrize(
    "f", [write_through_ravel, lambda x: write_through_ravel(np.sum(x) * COPIED), lambda x: write_through_ravel(x.T)]
)
def test_writes_through_reshaped_results_of_input_layouts(f: Any, transform: Any) -> None:
    x = normal(6, 5)
    compiled = pb.compile(transform(f))
    layouts = (np.asfortranarray(x), x, np.repeat(x, 2, 1)[:, ::2], np.broadcast_to(x[:1], x.shape), x[::-1])
    for given in (*layouts, *layouts[::-1]):
        np.testing.assert_allclose(compiled(given), f(given))
    assert len(compiled.programs) <= 3  # in C order, in Fortran order, with equal rows
    in_order = pb.compile(lambda x: x * 2.0 + 1.0)
    for given in layouts:
        in_order(given)
    assert len(in_order.programs) == 1


def test_variables_are_in_c_order() -> None:
    v = pb.variable(COPIED)
    want = write_through_ravel(np.ascontiguousarray(COPIED))
    np.testing.assert_array_equal(write_through_ravel(v), want)
    np.testing.assert_array_equal(pb.compile(lambda: write_through_ravel(v))(), want)
    v.assign(COPIED)
    np.testing.assert_array_equal(write_through_ravel(v), want)


# ------------------------------------------------------------------ variables


def test_training_step_matches_eager() -> None:
    x, y = normal(20, 3, dtype=np.float32), normal(20, 1, dtype=np.float32)
    start = normal(3, 1, dtype=np.float32)

    def train(compile: Any) -> Any:
        w = pb.variable(start)

        def step(x: Any, y: Any) -> Any:
            value, grads = pb.variable_grads(lambda: pb.mean((x @ w - y) ** 2))
            w.assign(w - 0.1 * grads[w.name])
            return value

        run = compile(step)
        return [float(run(x, y)) for _ in range(5)], np.asarray(w)

    (losses, w), (want, v) = train(pb.compile), train(lambda f: f)
    np.testing.assert_allclose(losses, want, rtol=1e-5)
    np.testing.assert_allclose(w, v, rtol=1e-5)
    assert losses[-1] < losses[0]


def test_variable_is_read_at_every_call() -> None:
    w = pb.variable([1.0, 2.0])
    f = pb.compile(lambda x: x * w)
    np.testing.assert_array_equal(f(np.ones(2, np.float32)), [1.0, 2.0])
    w.assign([3.0, 4.0])
    np.testing.assert_array_equal(f(np.ones(2, np.float32)), [3.0, 4.0])
    with pytest.raises(VariableError, match=r"expected float32 of shape \(2,\), got float32 of shape \(\)"):
        pb.compile(lambda x: w.assign(pb.sum(x)))(np.ones(2, np.float32))


# ------------------------------------------------------------------ signatures


def test_one_program_for_each_signature() -> None:
    traces = []

    @pb.compile
    def f(x: Any) -> Any:
        traces.append(x.shape)
        return x * 2.0

    for n in (2, 3, 2, 3):
        f(np.ones(n))
    assert traces == [(2,), (3,)]
    f(np.ones(2, np.float32))
    assert len(traces) == 3


def test_static_arguments_are_python_values_in_function() -> None:
    f = pb.compile(lambda x, n: x**n if n > 2 else x, static_argnums=1)
    np.testing.assert_array_equal(f(np.full(2, 3.0), 3), [27.0, 27.0])
    np.testing.assert_array_equal(f(np.full(2, 3.0), 1), [3.0, 3.0])
    g = pb.compile(lambda x, *, deep: pb.sum(x) if deep else x, static_argnames="deep")
    assert g(np.ones(3), deep=True) == 3.0
    assert g(np.ones(3), deep=False).shape == (3,)


def test_compile_as_decorator_with_options() -> None:
    @pb.compile(static_argnums=1, backend="numpy")
    def scale(x: Any, times: int) -> Any:
        return sum([x] * times)

    np.testing.assert_array_equal(scale(np.arange(3.0), 4), 4.0 * np.arange(3.0))
    assert scale.backend == "numpy"


def test_static_arguments_of_function_without_signature() -> None:
    class Scale:
        __name__, __signature__ = "scale", 3

        def __call__(self, x: Any, times: int) -> Any:
            return sum([x] * times)

    f = pb.compile(Scale(), static_argnums=1)
    np.testing.assert_array_equal(f(np.arange(3.0), 4), 4.0 * np.arange(3.0))
    np.testing.assert_array_equal(f(np.arange(3.0), 2), 2.0 * np.arange(3.0))


def test_retrace_warning_of_changing_structure() -> None:
    f = pb.compile(lambda x, how: x * len(how), static_argnums=1)
    for n in range(8):
        f(np.ones(2), "a" * n)
    with pytest.warns(UserWarning, match="the structure of its arguments, or a static one, changes"):
        f(np.ones(2), "a" * 8)


def test_profile_of_traced_argument_raises() -> None:
    with pytest.raises(CompileError, match="profile: a transform traces an argument, so there is no program"):
        pb.grad(lambda x: pb.compile(chain).profile(x))(np.ones(3))


def test_backend_llvm_without_llvmlite_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.compiler.api.llvm_available", lambda: False)
    with pytest.raises(CompileError, match="backend='llvm' needs the package llvmlite, which is not installed here"):
        pb.compile(np.sin, backend="llvm")(np.ones(3))
    f = pb.compile(np.sin)
    np.testing.assert_array_equal(f(np.ones(3)), np.sin(np.ones(3)))
    program = f.lower(np.ones(3))
    assert (program.kernels, program.ir, program.temporaries) == ([], "", 0)
    assert str(program) == str(program.graph)


def test_variables_in_dict_arguments_are_read_at_every_call() -> None:
    v = pb.variable(np.array([1.0, 2.0]))
    f = pb.compile(lambda pair: pair["v"] * pair["x"])
    np.testing.assert_array_equal(f({"v": v, "x": np.array([3.0, 4.0])}), [3.0, 8.0])
    v.assign([5.0, 6.0])
    np.testing.assert_array_equal(f({"v": v, "x": np.array([3.0, 4.0])}), [15.0, 24.0])


def test_stages_of_program_as_text() -> None:
    program = pb.compile(lambda x, y: np.sum(np.tanh(x @ y) + y[0]) * np.sort(x), backend="llvm", cache=False)
    stages = program.lower(np.ones((3, 3)), np.ones((3, 3))).stages
    text = str(stages)
    for name, part in stages._asdict().items():
        assert name == "stats" or f"# {name}\n" in text, part
    assert "slot 0: %0 float64[3, 3]" in text
    assert f"arena: {stages.memory.layout.arena} bytes" in text
    assert stages.module.text in text
    assert ", passes 1, parts 1, threads 1\n" in text
    assert str(stages.contents).splitlines()[0] in text


PLANNED = {
    "shape 4 × 4 × 1, width ": lambda x: np.cumsum(x, 1),
    "order 4, width ": np.linalg.cholesky,
    "length 2, width ": np.fft.rfft,
    "parts 1, threads 1": lambda x: pb.topk(x, 2)[0],
    "width 2, parts 1, threads 1": lambda x: pb.unsorted_segment_sum(x[:, :2], [0, 1, 0, 1], 2),
    "width 2, rows of elements and zeros": pb.grad(lambda x: np.sum(np.cumsum(x[:, ::2], 1) ** 2)),
    "width 2, elements after zeros": pb.grad(lambda x: np.sum(np.cumsum(x[::2, ::2], 1) ** 2)),
    "body:\n    ": lambda x: pb.scan(lambda c, row: (np.tanh(c + row), None), x[0], x)[0],
    "in registers": lambda x: pb.scan(lambda c, v: (np.tanh(c + v), None), x[0, 0], x[:, 0])[0],
    "convolution, tile ": lambda x: pb.conv2d(x[None, ..., None], np.ones((2, 2, 1, 3))),
    "convolution by transformed tiles, strips ": lambda x: pb.conv2d(
        np.tile(x, (8, 8))[None, ..., None] * np.ones(64), np.ones((3, 3, 64, 64))
    ),
    "pooling largest, width ": lambda x: pb.max_pool(x[None, ..., None], 2, 2),
}


@pytest.mark.parametrize("text", PLANNED)
def test_plans_of_steps_as_text(text: str) -> None:
    stages = pb.compile(PLANNED[text], backend="llvm", cache=False).lower(np.eye(4)).stages
    assert f"\n    {text}" in "\n".join(map(str, stages.scheduled))


def test_retrace_warning_names_changing_argument() -> None:
    f = pb.compile(lambda x, y: x + pb.sum(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(8):
            f(np.ones(2), np.ones(n + 1))
    with pytest.warns(UserWarning, match=r"argument 2 was float64\[1\], float64\[2\]"):
        f(np.ones(2), np.ones(9))


def test_program_keeps_no_reference_to_input() -> None:
    import gc
    import weakref

    class Array(np.ndarray):
        pass

    f = pb.compile(lambda x: x + 1.0)
    x = np.ones(5).view(Array)
    gone = weakref.ref(x)
    f(x)
    del x
    gc.collect()
    assert gone() is None


# ------------------------------------------------------------------ what cannot be


def branch(x: Any) -> Any:
    if x > 0:
        return x
    return -x


@pytest.mark.parametrize(
    ("f", "what"),
    [
        (branch, "bool"), (lambda x: x * float(x), "float"), (lambda x: np.ones(int(x)), "int"),
        (lambda x: x.item(), "item"),
    ],
    ids=["if", "float", "int", "item"],
)  # fmt: skip
def test_bool_float_int_item_of_traced_value_error(f: Any, what: str) -> None:
    with pytest.raises(SymbolValueError, match=rf"{what}.*test_api.py:\d+.*(where|static_argnums)"):
        pb.compile(f)(np.float64(1.0))


def test_compile_of_bad_arguments_raises() -> None:
    with pytest.raises(ArgumentError, match="f must be a function, got int"):
        pb.compile(3)
    with pytest.raises(ArgumentError, match="backend must be one of auto, llvm, numpy, jax, torch, cupy, got 'cuda'"):
        pb.compile(lambda x: x, backend="cuda")
    with pytest.raises(CompileError, match="a transform traces an argument"):
        pb.grad(lambda x: pb.compile(chain).lower(x))(np.ones(3))
    f = pb.compile(lambda x: x + np.ones(4))
    with pytest.raises(pb.errors.ShapeError, match=r"\(3,\) and \(4,\)"):
        f(np.ones(3))


def test_grad_and_vmap_of_compiled_function() -> None:
    f = pb.compile(chain)
    x = normal(5)
    np.testing.assert_allclose(pb.grad(f)(x), pb.grad(chain)(x))
    np.testing.assert_allclose(pb.vmap(f)(normal(2, 5)).shape, (2,))


def test_program_text_kernels_ir_and_stats() -> None:
    text = str(pb.compile(pb.grad(chain)).lower(np.ones(5)))
    assert "%0 = input 0 : float64[5]" in text
    assert "= sin(%0) : float64[5]   # test_api.py:" in text
    assert "\nreturn %" in text
    program = pb.compile(pb.grad(chain), backend="llvm").lower(np.ones(5))
    assert program.kernels[0].startswith("kernel [5]: sin")
    assert "define" in program.ir
    assert program.temporaries == 0
    assert {"trace", "rewrite", "write"} <= {*program.stats}


# ------------------------------------------------------------------ what is part of the key


@pytest.fixture
def double_gradient() -> Iterator[str]:
    """Register a gradient for a test: twice the cotangent."""
    GRADIENTS["doubled for compile"] = lambda op, dy: dy * 2.0
    yield "doubled for compile"
    del GRADIENTS["doubled for compile"]


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_override_gradient_recompiles(double_gradient: str, backend: str) -> None:
    x = np.array([0.5, 1.0])
    for first_inside in (False, True):
        f = pb.compile(pb.grad(lambda x: pb.sum(pb.sin(x))), backend=backend)
        if not first_inside:
            for _ in range(2):
                np.testing.assert_allclose(f(x), np.cos(x))
        for _ in range(2):
            with pb.override_gradient({"sin": double_gradient}):
                for _ in range(2):
                    np.testing.assert_array_equal(f(x), [2.0, 2.0])
            for _ in range(2):
                np.testing.assert_allclose(f(x), np.cos(x))
        assert len(f.programs) == 2


def test_override_gradient_is_thread_local(double_gradient: str) -> None:
    x = np.array([0.5, 1.0])
    f = pb.compile(pb.grad(lambda x: pb.sum(pb.sin(x))))
    f(x)
    found: list[Any] = []
    with pb.override_gradient({"sin": double_gradient}):
        thread = threading.Thread(target=lambda: found.append(f(x)))
        thread.start()
        thread.join()
        np.testing.assert_array_equal(f(x), [2.0, 2.0])
    np.testing.assert_allclose(found[0], np.cos(x))


def test_reregistered_gradient_recompiles(double_gradient: str) -> None:
    f = pb.compile(pb.grad(lambda x: pb.sin(x)))
    with pb.override_gradient({"sin": double_gradient}):
        assert f(1.0) == 2.0
        GRADIENTS[double_gradient] = lambda op, dy: dy * 3.0
        assert f(1.0) == 3.0


def test_default_dtype_change_recompiles() -> None:
    f = pb.compile(lambda x: x * pb.ones((2,)))
    x = np.ones(2, np.float32)
    for _ in range(2):
        assert f(x).dtype == np.float32
        with pb.default_dtype("float64"):
            assert [f(x).dtype for _ in range(2)] == [np.float64] * 2
    pb.set_default_dtype("float64")
    try:
        assert [f(x).dtype for _ in range(2)] == [np.float64] * 2
        with pb.default_dtype("float32"):
            assert f(x).dtype == np.float32
        assert f(x).dtype == np.float64
        g = pb.compile(lambda x: x * pb.ones((2,)))
        assert [g(x).dtype for _ in range(2)] == [np.float64] * 2
    finally:
        pb.set_default_dtype("float32")
    assert [g(x).dtype for _ in range(2)] == [np.float32] * 2
    assert f(x).dtype == np.float32
    assert len(f.programs) == len(g.programs) == 2


@pytest.mark.parametrize("args", [(), (np.float64(2.0),), (2.0,)])
def test_trainable_change_recompiles(args: Any) -> None:
    a, b = pb.variable(2.0), pb.variable(3.0)
    f = pb.compile(lambda *x: sorted(pb.variable_grads(lambda: a * b * 1.0).grads))
    both = sorted([a.name, b.name])
    assert f(*args) == f(*args) == both
    for _ in range(2):
        b.trainable = False
        assert f(*args) == f(*args) == [a.name]
        b.trainable = True
        assert f(*args) == f(*args) == both
    a.trainable = False
    assert f(*args) == [b.name]
    assert len(f.programs) == 3


# ------------------------------------------------------------------ products


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 5, 7), (16, 32, 32), (33, 17, 10), (128, 300, 64), (97, 401, 200), (130, 33, 129), (700, 65, 16)],
)
def test_matmul_of_all_sizes(m: int, k: int, n: int, dtype: Any) -> None:
    """By kernels for their size, by panels, or by BLAS; with either operand transposed, with something added."""
    a, b, c = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype), normal(m, n, dtype=dtype)
    loose = {"rtol": 1e-4, "atol": 1e-3} if dtype is np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    same(lambda a, b: a @ b, a, b, **loose)
    same(lambda a, b: pb.transpose(a) @ b, np.ascontiguousarray(a.T), b, **loose)
    same(lambda a, b: a @ pb.transpose(b), a, np.ascontiguousarray(b.T), **loose)
    same(lambda a, b, c: c + a @ b, a, b, c, **loose)
    same(lambda a, b, c: c - 0.25 * (a @ b), a, b, c, **loose)
    same(lambda a, b: pb.sum(pb.stack([a, a * 2.0]) @ b, 0), a, b, **loose)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("batch", [(2,), (3, 2), (1, 2), (2, 1)])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 2, 1), (2, 1, 1), (1, 1, 2), (1, 1, 1), (3, 1, 1), (1, 5, 1)])
def test_batched_matmul_gradient_with_axes_of_length_one(batch: Any, m: int, k: int, n: int) -> None:
    x, w = normal(*batch, m, k), normal(*batch, k, n)
    same(lambda x, w: pb.sum((x @ w) ** 2), x, w)
    gradients = pb.grads(lambda x, w: pb.sum((x @ w) ** 2))
    same(lambda x, w: gradients([x, w]), x, w)


@pytest.mark.parametrize(("batch", "k", "n"), [(2, 2, 2), (3, 1, 2), (2, 5, 3), (4, 3, 17), (2, 130, 90)])
def test_batched_matmul_of_broadcast_row(batch: int, k: int, n: int) -> None:
    v, m = normal(k), normal(1, k, n)
    same(lambda v, m: np.broadcast_to(v, (batch, 1, k)) @ np.broadcast_to(m, (batch, k, n)), v, m)
    same(lambda v, m: np.broadcast_to(v, (batch, 4, k)) @ m, v, m)


def test_batched_dot_product_gradient() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0]).reshape(2, 1, 2)
    gradient = pb.compile(pb.grad(lambda w: np.sum((x @ w) ** 2)))(np.ones((2, 2, 1)))
    np.testing.assert_array_equal(gradient.ravel(), [6.0, 12.0, 42.0, 56.0])


FIRST_COMPILATION = """
import gc
import numpy as np
import pullback as pb
if {frozen}:
    gc.freeze()
gc.collect()
pb.compile(lambda x: np.sum(x * x), cache=False)(np.ones(3))
print(len(gc.get_objects(0)) + len(gc.get_objects(1)), gc.get_freeze_count())
"""


@pytest.mark.parametrize("frozen", [False, True])
def test_modules_imported_for_the_first_compilation_are_old_objects_unless_the_user_has_frozen_some(
    frozen: bool,
) -> None:
    command = [sys.executable, "-c", FIRST_COMPILATION.format(frozen=frozen)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    young, kept = map(int, run.stdout.split())
    assert (young < 5000, kept > 0) == (not frozen, frozen)
