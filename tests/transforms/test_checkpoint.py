"""recompute_grad (checkpoint): gradients, and memory, since only the inputs of f are kept."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pullback as pb
from pullback.core import tape
from pullback.errors import CapturedError
from pullback.settings import is_enabled

LARGE = 10_000  # elements of the arrays whose buffers are recycled in these tests
needs_recycling = pytest.mark.skipif(not is_enabled("buffer recycling"), reason="buffer recycling is off")


def f(x, k=3.0):
    """sin² scaled."""
    return pb.sin(x) ** 2 * k


def test_recompute_grad_value_and_gradient_match_f():
    g = pb.recompute_grad(f)
    x = np.array([0.5, 1.0])
    assert_allclose(g(x), f(x))
    assert_allclose(pb.grad(g)(x), pb.grad(f)(x))
    assert_allclose(pb.grad(lambda x: g(x * x, k=2.0) * x)(x), pb.grad(lambda x: f(x * x, k=2.0) * x)(x))
    assert pb.checkpoint is pb.recompute_grad


def test_recompute_grad_runs_f_again_in_backward_pass():
    runs = []
    g = pb.recompute_grad(lambda x: runs.append(1) or x * x)
    g(pb.tensor(2.0))
    assert len(runs) == 1
    assert pb.grad(g)(2.0) == 4
    assert len(runs) == 3


def test_recompute_grad_keeps_inputs_only():
    layer = lambda x: pb.sin(pb.exp(pb.sin(pb.exp(pb.sin(x)))))

    def measure_kept(layer):
        measured = []

        def chain(x):
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(4):
                x = layer(x)
            measured.append(tracemalloc.get_traced_memory()[0] - before)
            return x.sum()

        pb.grad(chain)(np.zeros(5000))
        return measured[0]

    tracemalloc.start()
    try:
        assert measure_kept(pb.recompute_grad(layer)) < 0.4 * measure_kept(layer)
    finally:
        tracemalloc.stop()


def test_recompute_grad_higher_orders():
    g, h = pb.recompute_grad(f), f
    for _ in range(4):
        g, h = pb.grad(g), pb.grad(h)
        assert g(0.7) == pytest.approx(h(0.7))
    layer = pb.recompute_grad(lambda x: pb.tanh(x) * x)
    twice, plain = lambda x: layer(layer(x)), lambda x: pb.tanh(pb.tanh(x) * x) * (pb.tanh(x) * x)
    assert pb.grad(pb.grad(twice))(0.7) == pytest.approx(pb.grad(pb.grad(plain))(0.7))
    nested = pb.recompute_grad(lambda x: pb.recompute_grad(f)(x) * x)
    assert pb.grad(pb.grad(nested))(0.7) == pytest.approx(pb.grad(pb.grad(lambda x: f(x) * x))(0.7))


def test_recompute_grad_forward_mode():
    x, t = np.array([0.5, 1.0]), np.array([1.0, 2.0])
    assert_allclose(pb.jvp(pb.recompute_grad(f), [x], [t])[1], pb.jvp(f, [x], [t])[1])
    one = np.float64(1)
    got = pb.jvp(pb.grad(pb.recompute_grad(f)), [np.float64(0.7)], [one])[1]
    assert got == pytest.approx(pb.grad(pb.grad(f))(0.7))


def test_recompute_grad_trees_and_unconnected_inputs():
    g = pb.recompute_grad(lambda p: {"a": p["x"] * p["y"], "b": [p["y"] * 2]})
    grads = pb.grads(lambda x, y: g({"x": x, "y": y})["b"][0], unconnected="zero")([2.0, 3.0])
    assert grads == [0.0, 2.0]
    grads = pb.grads(lambda x, y: g({"x": x, "y": y})["a"] * g({"x": x, "y": y})["b"][0])([2.0, 3.0])
    assert grads == [18.0, 24.0]


def test_recompute_grad_big_arrays():
    x = np.linspace(0, 1, 80_000)
    assert_allclose(pb.grad(lambda x: pb.recompute_grad(f)(x * 2).sum())(x), 6 * np.sin(4 * x))


def test_recompute_grad_variables():
    v = pb.variable(2.0, name="v")
    g = pb.recompute_grad(lambda x: x * x * v * v)
    x = pb.tensor(3.0)
    assert pb.variable_grads(lambda: g(x)).grads["v"].item() == 36
    assert pb.grad(g)(3.0) == 24
    assert pb.variable_grads(lambda: g(v)).grads["v"].item() == 32  # v⁴
    assert pb.variable_grads(lambda: pb.variable_grads(lambda: g(x)).grads["v"]).grads["v"].item() == 18
    assert pb.variable_grads(lambda: pb.grad(g)(x)).grads["v"].item() == 24
    assert pb.grad(lambda x: pb.variable_grads(lambda: g(x)).grads["v"])(3.0) == 24


def test_recompute_grad_uses_variable_values_of_first_run():
    v = pb.variable(2.0, name="v")
    g = pb.recompute_grad(lambda x: x * v)

    def loss():
        y = g(pb.tensor(3.0)) * g(pb.tensor(1.0))
        v.assign(100.0)
        return y

    assert pb.variable_grads(loss).grads["v"].item() == 12  # d/dv 3v² at 2


def test_recompute_grad_captured_tensor_raises():
    def outer(w):
        scale = w * 2
        return pb.recompute_grad(lambda x: x * scale)(w)

    with pytest.raises(CapturedError, match=r"recompute_grad\(<lambda>\): .* 'scale'"):
        pb.grad(outer)(3.0)


@pytest.mark.parametrize("wrt", ["kept", "given"])
def test_recompute_grad_keyword_arrays_are_inputs(wrt):
    def layer(x, n, p, *, kind, scale, rows=None):
        assert type(n) is int
        assert (kind, type(p["deep"][1]), rows) == ("sum", bool, (2, 3))
        for _ in range(n):
            x = x * scale["by"]
        return (x * p["deep"][0]).sum()

    g = pb.recompute_grad(layer)
    more = lambda by: {"kind": "sum", "scale": {"by": by, "unused": 1}, "rows": (2, 3)}
    by, x = np.array([2.0, 3.0]), np.array([1.0, -1.0])
    if wrt == "kept":
        found = pb.grad(lambda x: g(x, 2, {"deep": (0.5, True)}, **more(by)))(x)
        assert_allclose(found, 0.5 * by**2)
    else:
        found = pb.grad(pb.grad(lambda by: g(x, 3, {"deep": (0.5, True)}, **more(by))))(by)
        assert_allclose(found, 0.5 * x * 6 * by)


def test_recompute_grad_methods():
    class Layer:
        def __init__(self, k):
            self.k = k

        @pb.recompute_grad
        def __call__(self, x):
            return self.k * x**2

    assert pb.grad(Layer(3.0).__call__)(2.0) == 12
    assert pb.grad(Layer(3.0))(2.0) == 12


def test_recompute_grad_inside_and_outside_vmap():
    x = np.array([0.3, 0.5, 0.7])
    first, second = pb.grad(lambda x: f(x).sum())(x), np.array([pb.grad(pb.grad(f))(v) for v in x])
    g = pb.recompute_grad(f)
    assert_allclose(pb.vmap(pb.grad(g))(x), first)
    assert_allclose(pb.grad(lambda x: pb.vmap(g)(x).sum())(x), first)
    assert_allclose(pb.grad(pb.recompute_grad(lambda x: pb.vmap(f)(x).sum()))(x), first)
    assert_allclose(pb.grad(pb.recompute_grad(lambda x: pb.vmap(pb.grad(g))(x).sum()))(x), second)
    assert_allclose(pb.vmap(pb.grad(pb.grad(g)))(x), second)
    assert_allclose(pb.vmap(lambda t: pb.jvp(g, [x], [t])[1])(np.eye(3)), np.diag(first))
    assert_allclose(pb.vmap(lambda t: pb.grad(g)(x, dy=t))(np.eye(3)), np.diag(first))


def test_recompute_grad_variables_in_vmap_jvp_and_tape():
    v = pb.variable(2.0, name="v", dtype="float64")
    x = pb.tensor([0.3, 0.5], dtype="float64")
    g = pb.recompute_grad(lambda x: pb.sin(x * v))
    want = x.numpy() * np.cos(2 * x.numpy())
    assert_allclose(pb.variable_grads(lambda: pb.vmap(g)(x).sum()).grads["v"], want.sum())
    assert_allclose(pb.vmap(lambda x: pb.variable_grads(lambda: g(x)).grads["v"])(x), want)
    with pb.GradientTape() as recorded:
        y = pb.vmap(g)(x).sum()
    assert_allclose(recorded.gradient(y, v), want.sum())
    moved = pb.variable_grads(lambda: pb.jvp(g, [x], [pb.ones_like(x)])[1].sum()).grads["v"]
    assert_allclose(moved, np.sum(np.cos(2 * x.numpy()) - 2 * x.numpy() * np.sin(2 * x.numpy())))


@pytest.mark.parametrize("jump", [lambda: 7, lambda: np.random.default_rng(7)])
def test_recompute_grad_seeded_random_op_repeats_values(jump):
    g = pb.recompute_grad(lambda x, seed: x * pb.random.uniform([3], seed=seed) ** 2)
    plain = lambda x, seed: x * pb.random.uniform([3], seed=seed) ** 2
    x = np.ones(3)
    value, slope = pb.value_and_grad(lambda x: g(x, jump()))(x)
    assert_allclose(slope, value)
    assert_allclose(value, plain(x, jump()))
    assert_allclose(pb.jvp(lambda x: g(x, jump()), [x], [x])[1], value)
    assert_allclose(pb.jvp(pb.grad(lambda x: (g(x, jump()) ** 2).sum()), [x], [x])[1], 2 * value**2)


def test_recompute_grad_advances_generator_once():
    rng, other = np.random.default_rng(3), np.random.default_rng(3)
    pb.grad(lambda x: pb.recompute_grad(lambda x, rng: x * pb.random.uniform([], seed=rng))(x, rng))(1.0)
    pb.random.uniform([], seed=other)
    assert rng.random() == other.random()


def test_recompute_grad_error_in_second_run_propagates():
    runs = []

    def moody(x):
        runs.append(1)
        if len(runs) == 2:
            raise KeyError("second run")
        return x * x

    with pytest.raises(KeyError, match="second run"):
        pb.grad(pb.recompute_grad(moody))(2.0)
    assert pb.grad(pb.recompute_grad(moody))(2.0) == 4


# ---- memory


@pytest.fixture
def recycled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recycle the buffers of arrays of 80 kB, not only from 1 MiB on."""
    if is_enabled("buffer recycling"):
        monkeypatch.setattr(tape, "RECYCLED", LARGE * 8)


def peak(call):
    """Return the most bytes that are allocated at once while ``call`` runs, above what there was before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def repeat(layer, times):
    def chain(x):
        for _ in range(times):
            x = layer(x)
        return x

    return chain


def block(x):
    return x + 0.1 * pb.tanh(pb.exp(-x * x) * pb.sin(x) + pb.log(1 + x * x) * pb.cos(x))


def polynomial(x):
    """Return what saves several values for the gradient, as ``block`` does, and is quick on large arrays."""
    return x + 0.1 * x * (1.1 - x) * x


def halve(layer, times):
    """Return the chain of which each half is wrapped, and each half of that."""
    if times == 1:
        return layer
    first, second = (pb.recompute_grad(halve(layer, n)) for n in (times // 2, times - times // 2))
    return lambda x: second(first(x))


@pytest.mark.usefixtures("recycled")
@pytest.mark.parametrize("size", [LARGE // 2, LARGE], ids=["small", "big"])
def test_recompute_grad_memory_of_many_layers(size):
    x = np.linspace(0, 1, size)
    plain = lambda x: repeat(block, 48)(x).sum()
    parts = lambda x: repeat(pb.recompute_grad(repeat(block, 8)), 6)(x).sum()
    each = lambda x: repeat(pb.recompute_grad(block), 48)(x).sum()
    want = pb.grad(plain)(x[:10])
    for wrapped in (parts, each):
        assert_allclose(pb.grad(wrapped)(x[:10]), want)
    pb.grad(block)(x, x)  # compiled before memory is measured
    used = peak(lambda: pb.grad(plain)(x))
    assert peak(lambda: pb.grad(parts)(x)) <= 0.25 * used
    assert peak(lambda: pb.grad(each)(x)) <= 0.25 * used


@pytest.mark.usefixtures("recycled")
def test_recompute_grad_nested_halves_use_logarithmic_memory():
    x = np.linspace(0, 1, LARGE)
    pb.grad(polynomial)(x, x)  # compiled before memory is measured
    alive = []
    for times in (16, 64):
        chain = halve(polynomial, times)
        alive.append(peak(lambda chain=chain: pb.grad(lambda x: chain(x).sum())(x)) / x.nbytes)
    assert alive[0] < 16
    assert alive[1] - alive[0] < 6
    want = pb.grad(lambda x: repeat(block, 16)(x).sum())(x[:10])
    assert_allclose(pb.grad(lambda x: halve(block, 16)(x).sum())(x[:10]), want)


@needs_recycling
@pytest.mark.usefixtures("recycled")
@pytest.mark.parametrize("times", [17, 64])
def test_recompute_grad_chain_uses_square_root_memory(times):
    v, moving = pb.variable(1.1, name="v", dtype="float64"), pb.variable(0.0, name="moving", trainable=False)
    x = np.linspace(0, 1, LARGE)
    layer = pb.recompute_grad(lambda x, seed: pb.tanh(pb.sin(x) * v + moving + pb.random.uniform([], seed=seed)))
    plain = lambda x, seed: pb.tanh(pb.sin(x) * 1.1 + pb.random.uniform([], seed=seed))

    def chain(x, layer):
        for i in range(times):
            x = layer(x, i)
        if layer is not plain:
            v.assign(50.0)  # in the backward pass everything is as it was
            moving.assign(50.0)
        return x.sum()

    want = pb.grad(lambda x: chain(x, plain))(x)
    kept = []
    for _ in range(2):
        v.assign(1.1)
        moving.assign(0.0)
        kept.append(peak(lambda: assert_allclose(pb.grad(lambda x: chain(x, layer))(x), want)) / x.nbytes)
    assert min(kept) < 12 + 4 * np.sqrt(times)
    v.assign(1.1)
    moving.assign(0.0)
    with pb.GradientTape(persistent=True) as recorded:
        y = chain(pb.tensor(x), layer)
    first = recorded.gradient(y, v)
    assert_allclose(recorded.gradient(y, v), first)
    v.assign(1.1)
    moving.assign(0.0)
    h = 1e-6
    ends = []
    for by in (1.1 + h, 1.1 - h):
        total = x
        for i in range(times):
            total = np.tanh(np.sin(total) * by + pb.random.uniform([], seed=i).numpy())
        ends.append(total.sum())
    assert_allclose(first, (ends[0] - ends[1]) / (2 * h), rtol=1e-4)


@pytest.mark.usefixtures("recycled")
def test_recompute_grad_of_branches():
    x = np.linspace(0, 1, LARGE)
    layer = lambda x: pb.sin(x) * 1.5

    def branches(layer):
        def f(x):
            for _ in range(20):
                x = layer(x)
            left = right = x
            for _ in range(20):
                left, right = layer(left), layer(right * 0.5)
            return (left * right).sum()

        return f

    assert_allclose(pb.grad(branches(pb.recompute_grad(layer)))(x), pb.grad(branches(layer))(x))


def test_recompute_grad_restores_variable_assigned_in_f():
    count = pb.variable(1.0, name="count", dtype="float64", trainable=False)

    def f(x):
        y = x * count
        count.assign(count.held + 1)
        return y * y

    assert pb.grad(pb.recompute_grad(f))(3.0) == 6


@pytest.mark.parametrize(("numbers", "slope"), [([2.0, 3.0], 2.0), ([2, 3], 2.0)])
def test_recompute_grad_of_list_of_numbers(numbers, slope):
    f = pb.recompute_grad(lambda x, c: x * c[0] + c[1])
    assert pb.grad(lambda w: f(w, numbers))(1.5) == slope
    assert_allclose(pb.grad(lambda c: f(1.5, c))([2.0, 3.0]), [1.5, 1.0])


def test_recompute_grad_names_captured_tensor_of_cell_filled_later():
    def f(x):
        again = pb.recompute_grad(lambda y: later * y)
        later = x * 2.0
        return again(2.0)

    with pytest.raises(CapturedError, match="the body uses the traced tensor 'later', not one of its inputs"):
        pb.grad(f)(3.0)
