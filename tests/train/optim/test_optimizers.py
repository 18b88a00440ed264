"""Optimizers: update rules, eager, compiled and functional, and their state."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import train
from pullback.errors import DataError, TracedValueError

X = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(16, 3)).astype(np.float32)

OPTIMIZERS: dict[str, Callable[[], train.Optimizer]] = {
    "sgd": lambda: train.sgd(0.1),
    "sgd decayed": lambda: train.sgd(0.1, weight_decay=0.1),
    "momentum": lambda: train.momentum(0.1, 0.9),
    "nesterov": lambda: train.momentum(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: train.adagrad(0.1),
    "adadelta": lambda: train.adadelta(1.0),
    "adam": lambda: train.adam(0.1),
    "adam by value": lambda: train.adam(0.1, clip_value=0.02),
    "sgd by norm": lambda: train.sgd(0.1, clip_norm=0.1),
    "sgd by global norm": lambda: train.sgd(0.1, clip_global_norm=0.1),
    "adamax": lambda: train.adamax(0.1, decay=0.1),
    "rmsprop": lambda: train.rmsprop(0.01, momentum=0.5),
    "centered": lambda: train.rmsprop(0.01, centered=True),
    "adamw": lambda: train.adamw(0.1),
    "lion": lambda: train.lion(0.01),
    "constant": lambda: train.sgd(train.constant_rate(0.1)),
    "step": lambda: train.sgd(train.step_decay(0.1, 5, 0.5)),
    "exponential": lambda: train.sgd(train.exponential_decay(0.1, 5, 0.5)),
    "warm-up and cosine": lambda: train.adam(train.warm_up(train.cosine_decay(0.1, 10), 5)),
    "one cycle": lambda: train.adam(train.one_cycle(0.1, 20)),
    "a function": lambda: train.sgd(lambda step: 0.1 / (step + 1)),
}
every_optimizer = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


class Line:
    """A linear fit by variables, with its own optimizer."""

    def __init__(self, optimizer: train.Optimizer, dtype: str = "float32") -> None:
        w = np.random.default_rng(2).normal(size=(4, 3))
        self.w, self.b = pb.variable(w.astype(dtype)), pb.variable(np.zeros(3, dtype))
        self.optimizer = optimizer

    def step(self, x: Any, y: Any) -> Any:
        return self.optimizer.minimize(lambda: loss({"w": self.w, "b": self.b}, x, y), return_cost=True)

    def values(self) -> list[Any]:
        return [self.w.numpy(), self.b.numpy()]


def loss(p: Any, x: Any, y: Any) -> Any:
    return pb.mean((pb.matmul(x, p["w"]) + p["b"] - y) ** 2)


def near(got: Any, want: Any, tolerance: float = 2e-6) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=tolerance)


# ---- eager, compiled, functional


@every_optimizer
def test_compiled_steps_equal_eager_steps_with_one_program(make: Any) -> None:
    eager, compiled = Line(make()), Line(make())
    program = pb.compile(compiled.step)
    costs = [[float(line(X, Y)) for line in (eager.step, program)] for _ in range(20)]
    near(*zip(*costs, strict=True))
    near(eager.values(), compiled.values())
    assert len(program.programs) == 1
    assert costs[-1][0] < costs[0][0]
    assert compiled.optimizer.iterations == eager.optimizer.iterations == 20
    assert compiled.optimizer.learning_rate == eager.optimizer.learning_rate
    near(*(list(line.optimizer.state_dict().values()) for line in (eager, compiled)))


@every_optimizer
def test_compiled_step_casts_float64_data_for_float32_variables(make: Any) -> None:
    eager, compiled = Line(make()), Line(make())
    program = pb.compile(compiled.step)
    for _ in range(3):
        costs = [line(X.astype(np.float64), Y.astype(np.float64)) for line in (eager.step, program)]
        assert costs[0].dtype == costs[1].dtype == np.float64
        near(*([float(c)] for c in costs))
    near(eager.values(), compiled.values())
    assert {v.dtype for v in compiled.values()} == {np.dtype(np.float32)}


@every_optimizer
def test_update_equals_minimize(make: Any) -> None:
    line, optimizer = Line(make()), make()
    params = dict(zip("wb", line.values(), strict=True))
    state, gradient = optimizer.init(params), pb.grad(lambda p: loss(p, X, Y))
    program, calls = pb.compile(lambda p, s: optimizer.update(p, gradient(p), s)), (params, state)
    for _ in range(20):
        line.step(X, Y)
        g = gradient(params)
        params, state = optimizer.update(params, {"b": g["b"], "w": g["w"]}, state)  # the order does not count
        calls = program(*calls)
    near(line.values(), params.values())
    near(line.values(), calls[0].values())
    assert [type(x) for x in params.values()] == [np.ndarray, np.ndarray]
    assert len(program.programs) == 1
    assert state["iterations"] == calls[1]["iterations"] == 20
    assert optimizer.iterations == 0


def test_compiled_step_uses_new_learning_rate() -> None:
    eager, compiled = Line(train.adam(0.1)), Line(train.adam(0.1))
    program = pb.compile(compiled.step)
    for rate in (0.1, 0.01, 0.5):
        for line, step in ((eager, eager.step), (compiled, program)):
            line.optimizer.learning_rate = rate  # Keras's way to call set_learning_rate
            step(X, Y)
    near(eager.values(), compiled.values())
    assert len(program.programs) == 1


def test_eager_and_compiled_steps_share_state() -> None:
    eager, mixed = Line(train.adam(0.1)), Line(train.adam(0.1))
    program = pb.compile(mixed.step)
    for i in range(6):
        eager.step(X, Y)
        (program if i % 2 else mixed.step)(X, Y)
    near(eager.values(), mixed.values())


def test_update_is_differentiable() -> None:
    optimizer = train.momentum(0.1, 0.9)
    start = np.array([1.0, -2.0])

    def after(x: Any) -> Any:  # two steps down x**2: x - 0.1*(2x), then with 0.9 of the old gradient
        state = optimizer.init(x)
        for _ in range(2):
            x, state = optimizer.update(x, 2.0 * x, state)
        return pb.sum(x)

    np.testing.assert_allclose(pb.grad(after)(start), 0.8 - 0.1 * (0.9 * 2 + 1.6) * np.ones(2))


@pytest.mark.parametrize("params", [2.0, [1.0, 2.0], (np.float32(1), {"a": pb.tensor([1.0])}), [None, np.ones(2)]])
def test_update_keeps_kinds_of_leaves(params: Any) -> None:
    optimizer = train.adam(0.5)
    after, state = optimizer.update(params, params, optimizer.init(params))
    assert _kinds(after) == _kinds(params)
    np.testing.assert_allclose(_numbers(after), np.subtract(_numbers(params), 0.5), rtol=1e-6)
    again, _ = optimizer.update(after, params, state)
    assert _kinds(again) == _kinds(params)


def _kinds(tree: Any) -> Any:
    if isinstance(tree, list | tuple):
        return [_kinds(x) for x in tree]
    return {k: _kinds(x) for k, x in tree.items()} if isinstance(tree, dict) else type(tree)


def _numbers(tree: Any) -> list[float]:
    if isinstance(tree, dict | list | tuple):
        parts = tree.values() if isinstance(tree, dict) else tree
        return [n for part in parts if part is not None for n in _numbers(part)]
    return np.ravel(tree).tolist()


def test_gradient_none_does_not_change_parameter() -> None:
    optimizer, params = train.adam(0.1), {"a": np.ones(2), "b": np.ones(2)}
    after, state = optimizer.update(params, {"a": np.ones(2), "b": None}, optimizer.init(params))
    assert (after["a"] != 1).all()
    assert (after["b"] == 1).all()
    assert (state["m"]["b"] == 0).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@every_optimizer
def test_optimizer_keeps_dtype(make: Any, dtype: str) -> None:
    v, optimizer = pb.variable(np.ones(2, dtype)), make()
    optimizer.apply_gradients({v.name: np.ones(2)})
    assert v.dtype == dtype
    after, state = optimizer.update(np.ones(2, dtype), np.ones(2), optimizer.init(np.ones(2, dtype)))
    assert {after.dtype, *(x.dtype for k, x in state.items() if k != "iterations")} == {np.dtype(dtype)}


# ---- update rules (TensorFlow.js's are in tests/parity)


def test_adamw_and_lion_formulas() -> None:
    grads = np.random.default_rng(3).normal(size=(5, 2))
    w, v = pb.variable(np.ones(2)), pb.variable(np.ones(2))
    adamw, lion = train.adamw(0.1, weight_decay=0.2), train.lion(0.1, weight_decay=0.2)
    x, m, s = np.ones(2), np.zeros(2), np.zeros(2)
    y, n = np.ones(2), np.zeros(2)
    for t, g in enumerate(grads, 1):
        adamw.apply_gradients({w.name: g})
        lion.apply_gradients({v.name: g})
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
        x = x - 0.1 * (m / (1 - 0.9**t) * np.sqrt(1 - 0.999**t) / (np.sqrt(s) + 1e-7) + 0.2 * x)
        y, n = y - 0.1 * (np.sign(0.9 * n + 0.1 * g) + 0.2 * y), 0.99 * n + 0.01 * g
    np.testing.assert_allclose(w.numpy(), x, rtol=1e-12)
    np.testing.assert_allclose(v.numpy(), y, rtol=1e-12)


@pytest.mark.parametrize(
    ("option", "want"),
    [
        ({"clip_value": 2.0}, [[2.0, 0.0], [2.0]]),
        ({"clip_norm": 2.0}, [[2.0, 0.0], [2.0]]),
        ({"clip_global_norm": 2.5}, [[1.5, 0.0], [2.0]]),
        ({"clip_global_norm": 9.0}, [[3.0, 0.0], [4.0]]),
    ],
)
def test_optimizer_clips_gradients(option: Any, want: Any) -> None:
    a, b = pb.variable([0.0, 0.0]), pb.variable([0.0])
    train.sgd(1.0, **option).apply_gradients({a.name: [3.0, 0.0], b.name: [4.0]})
    assert [(-a.numpy()).tolist(), (-b.numpy()).tolist()] == want


def test_global_norm_does_not_overflow() -> None:
    grads = [np.full(4, 1e30, np.float32)]
    assert train.global_norm(grads) == pytest.approx(2e30)
    np.testing.assert_allclose(train.clip_norms(grads, 1.0)[0], 0.5)
    assert train.clip_norms(grads, 1.0)[0].dtype == np.float32


def test_clipping_empty_trees() -> None:
    assert train.clip_global_norm({"a": np.zeros(2)}, 1.0)["a"].tolist() == [0.0, 0.0]
    assert type(train.clip_values(pb.tensor([5.0]), 1.0)) is pb.Tensor
    assert train.clip_values(5.0, 1.0) == 1.0


# ---- variables


def test_apply_gradients_argument_forms() -> None:
    v, optimizer = pb.variable([1.0, 2.0]), train.sgd(1.0)
    g = pb.tensor([0.5, 0.5])
    for given in ({v.name: g}, {v: g}, [{"name": v.name, "tensor": g}], [(g, v)], zip([g], [v], strict=True)):
        v.assign([1.0, 2.0])
        optimizer.apply_gradients(given)
        assert v.tolist() == [0.5, 1.5]
    assert optimizer.iterations == 5


def test_slots_belong_to_the_variable_not_its_index() -> None:
    a, b = pb.variable([1.0]), pb.variable([1.0])
    optimizer = train.momentum(0.1, 0.5)
    for names in ([a, b], [b, a], [b], [a]):
        optimizer.apply_gradients({v.name: [1.0 if v is a else 10.0] for v in names})
    assert optimizer.state_dict()[f"{a.name}/momentum"] == [1.75]
    assert optimizer.state_dict()[f"{b.name}/momentum"] == [17.5]


def test_slots_are_freed_with_their_variable() -> None:
    v, optimizer = pb.variable([1.0]), train.adam(0.1)
    optimizer.apply_gradients({v.name: [1.0]})
    assert len(optimizer.state_dict()) == 4
    del v
    gc.collect()
    assert set(optimizer.state_dict()) == {"iterations", "learning_rate"}


def test_new_variable_at_same_address_gets_new_slots() -> None:
    optimizer, places = train.momentum(0.5, 0.9), set()
    for _ in range(20):
        v = pb.variable([1.0])
        places.add(id(v))
        optimizer.apply_gradients({v: [1.0]})
        assert v.tolist() == [0.5]
        del v
    assert len(places) < 20  # otherwise the test shows nothing


def test_two_optimizers_on_one_variable() -> None:
    v = pb.variable([1.0])
    for optimizer in (train.adam(0.1), train.adam(0.1)):
        optimizer.apply_gradients({v.name: [1.0]})
    np.testing.assert_allclose(v.numpy(), 0.8, rtol=1e-5)


def test_frozen_and_unlisted_variables_are_unchanged() -> None:
    a, b, c = pb.variable(1.0), pb.variable(1.0, trainable=False), pb.variable(1.0)
    train.sgd(0.1).minimize(lambda: a * b * c, var_list=[a, b])
    assert [float(a) != 1, float(b), float(c)] == [True, 1.0, 1.0]


def test_step_inside_transform_raises() -> None:
    v, optimizer = pb.variable(3.0), train.sgd(0.1)
    with pb.GradientTape() as tape:
        optimizer.apply_gradients({v: 6.0})
        with pytest.raises(TracedValueError, match=r"sgd: the gradient of '.*' is traced by a transform"):
            optimizer.minimize(lambda: v * v)
        y = v * 2.0
    assert float(v) == pytest.approx(2.4)
    assert float(tape.gradient(y, v)) == 2.0
    with pytest.raises(TracedValueError, match="Make the step outside of it"):
        pb.vmap(lambda g: optimizer.apply_gradients({v: g}))(np.ones(3))


@pytest.mark.parametrize("size", [3, 100_000])
@pytest.mark.parametrize("hold", [lambda v: v.read(), np.asarray, lambda v: pb.reshape(v, [-1, 1]), lambda v: v[1:]])
def test_step_does_not_change_tensors_read_before(size: int, hold: Any) -> None:
    v, optimizer = pb.variable(np.ones(size)), train.momentum(0.1, 0.9)
    for _ in range(2):
        held = hold(v)
        before = np.array(held)
        optimizer.apply_gradients({v.name: np.ones(size)})
        np.testing.assert_array_equal(np.asarray(held), before)
        del held
    saved = optimizer.state_dict()
    optimizer.apply_gradients({v.name: np.ones(size)})
    assert (saved[f"{v.name}/momentum"] == 1.9).all()
    optimizer.state_dict()[f"{v.name}/momentum"][:] = 0.0  # the caller's own
    assert (optimizer.state_dict()[f"{v.name}/momentum"] != 0.0).all()


@pytest.mark.sampled(2)
@every_optimizer
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_variables_are_updated_in_blocks_like_small_ones(make: Any, order: Any) -> None:
    x, g = np.random.default_rng(4).normal(size=(2, 300, 200))
    v, optimizer = pb.variable(np.asarray(x, order=order)), make()
    params, state = v.numpy(), optimizer.init(v.numpy())
    step = pb.compile(lambda g: optimizer.apply_gradients({v.name: g}))
    for apply in (lambda g: optimizer.apply_gradients({v.name: g}), step, lambda g: optimizer.apply_gradients({v: g})):
        apply(g)
        params, state = optimizer.update(params, g, state)
    near([v.numpy()], [params], 1e-10)


# ---- saving


@every_optimizer
def test_load_state_dict_resumes_training(make: Any) -> None:
    whole, first = Line(make()), Line(make())
    for _ in range(3):
        whole.step(X, Y)
        first.step(X, Y)
    saved = {k: x.copy() if isinstance(x, np.ndarray) else x for k, x in first.optimizer.state_dict().items()}
    first.step(X, Y)  # changes after saving must not matter
    again, values = make(), whole.values()
    first.w.assign(values[0])
    first.b.assign(values[1])
    first.optimizer = again
    again.load_state_dict(saved, [first.w, first.b])
    for _ in range(3):
        whole.step(X, Y)
        first.step(X, Y)
    for one, other in zip(whole.values(), first.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.iterations == 6


def test_load_state_dict_into_compiled_step() -> None:
    line = Line(train.adam(0.1))
    program, begin = pb.compile(line.step), line.values()
    saved = line.optimizer.state_dict()
    first = [float(program(X, Y)) for _ in range(3)]
    line.w.assign(begin[0])
    line.b.assign(begin[1])
    line.optimizer.load_state_dict(
        saved | {f"{v.name}/{s}": np.zeros_like(v.numpy()) for v in (line.w, line.b) for s in "mv"}
    )
    assert [float(program(X, Y)) for _ in range(3)] == first
    assert len(program.programs) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, a: s.pop(f"{a}/m"), "'{a}/m' missing"),
        (lambda s, a: s.pop("iterations"), "'iterations' missing"),
        (lambda s, a: s.update({"nobody/m": np.ones(2), "more": 1.0}), "'more', 'nobody/m' extra"),
        (
            lambda s, a: s.update({f"{a}/v": np.ones(3)}),
            "'{a}/v' is float64 of shape (3,), expected float32 of shape (2,)",
        ),
        (lambda s, a: s.update({"iterations": np.ones(2)}), "'iterations' is not one number"),
    ],
)
def test_load_state_dict_mismatch_changes_nothing(change: Any, message: str) -> None:
    a, optimizer = pb.variable([1.0, 2.0]), train.adam(0.1)
    optimizer.apply_gradients({a: [1.0, 1.0]})
    state = optimizer.state_dict()
    before = repr(state)
    change(state, a.name)
    for one in (optimizer, train.adam(0.1)):
        with pytest.raises(DataError) as error:
            one.load_state_dict(state, [a])
        assert message.format(a=a.name) in str(error.value)
    assert repr(optimizer.state_dict()) == before


def test_get_config_and_repr() -> None:
    optimizer = train.adam(0.1, clip_norm=1.0)
    optimizer.set_learning_rate(0.2)
    config = optimizer.get_config()
    assert config == {"learning_rate": 0.2, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7, "clip_norm": 1.0}
    assert train.adam(**config).get_config() == config
    assert repr(train.sgd(train.cosine_decay(0.1, 10))) == "sgd(learning_rate=cosine_decay(0.1, 10, 0.0))"


@every_optimizer
def test_deepcopy_of_optimizer_is_independent(make: Any) -> None:
    v, optimizer = pb.variable([1.0, 2.0]), make()
    optimizer.apply_gradients({v: [1.0, 3.0]})
    before = repr(optimizer.state_dict())
    made = copy.deepcopy(optimizer)
    assert (repr(made.state_dict()), made.name) == (before, optimizer.name)
    made.apply_gradients({v: [1.0, 3.0]})
    assert repr(optimizer.state_dict()) == before
    assert made.iterations == 2


def test_pickle_optimizer() -> None:
    v, optimizer = pb.variable([1.0, 2.0]), train.momentum(0.1, 0.9, clip_norm=1.0)
    optimizer.apply_gradients({v: [1.0, 3.0]})
    made = pickle.loads(pickle.dumps(optimizer))
    assert repr(made) == repr(optimizer)
    assert repr(made.state_dict()) == repr(optimizer.state_dict())


# ---- numbers of Keras 3.15

GRADIENTS = [np.array([0.3, -0.02, 0.5], np.float32) * k for k in range(1, 6)]


@pytest.mark.parametrize(
    ("every", "expected", "average"),
    [
        (None, [0.928, -1.9952, 0.38], [0.95488, -1.996992, 0.4248]),
        (2, [0.9616, -1.99744, 0.436], [0.9616, -1.99744, 0.436]),
    ],
)
def test_accumulated_steps_count_for_schedules_and_averages_as_in_keras(every, expected, average) -> None:
    v = pb.variable(np.array([1.0, -2.0, 0.5], np.float32))
    options = {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": every}
    optimizer = train.sgd(train.inverse_time_decay(0.1, 1, 0.5), gradient_accumulation_steps=2, **options)
    for g in GRADIENTS:
        optimizer.apply_gradients([(g, v)])
    np.testing.assert_allclose(v.numpy(), expected, rtol=1e-6)
    optimizer.use_averages([v])
    np.testing.assert_allclose(v.numpy(), average, rtol=1e-6)


def test_adamw_adds_epsilon_and_decays_as_keras() -> None:
    v, optimizer = pb.variable(np.array([1.0, -2.0, 0.5], np.float32)), train.adamw(0.05, epsilon=1e-3)
    for g in GRADIENTS:
        optimizer.apply_gradients([(g, v)])
    np.testing.assert_allclose(v.numpy(), [0.7663911, -1.8396262, 0.26311022], rtol=1e-5)


@pytest.mark.parametrize("options", [{"use_ema": True}, {"use_ema": True, "gradient_accumulation_steps": 2}])
def test_average_keeps_dtype_of_variables_in_eager_steps(options) -> None:
    v, optimizer = pb.variable(np.array([1.0, -2.0, 0.5], np.float32)), train.sgd(0.1, **options)
    for g in GRADIENTS:
        optimizer.apply_gradients([(g, v)])
        assert {x.dtype for x in (v, *optimizer.slots()) if x.shape} == {np.dtype(np.float32)}


# ---- the package


def test_train_is_imported_lazily() -> None:
    code = (
        "import sys, pullback as pb; assert not [m for m in sys.modules if m.startswith('pullback.train')]; "
        "assert 'train' in dir(pb); pb.train.sgd(0.1); assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_of_train_has_a_doctest() -> None:
    public = {
        n: x for n, x in vars(train).items() if not n.startswith("_") and (inspect.isclass(x) or inspect.isroutine(x))
    }
    assert "adam" in public
    assert not [
        n
        for n, x in public.items()
        if ">>>" not in (x.__doc__ or "") or getattr(inspect.getmodule(x), n) not in (x, getattr(x, "__wrapped__", x))
    ]
