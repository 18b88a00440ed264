"""Optimizer steps with row-sparse gradients: equal to dense ones, touching only rows."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import train
from pullback.errors import ArgumentError, NanError, ShapeError, TracedValueError, VariableError

SHAPE = (20_000, 8)  # large enough to be trained by rows
RANDOM = np.random.default_rng(0)
TABLE = RANDOM.normal(size=SHAPE).astype(np.float32)
BATCHES = [np.concatenate([RANDOM.integers(-9, 9, 6), RANDOM.integers(0, 20_000, 6)]) for _ in range(4)]
NAMED = np.unique(np.concatenate(BATCHES) % SHAPE[0])
OTHERS = np.setdiff1d(np.arange(SHAPE[0]), NAMED)

OPTIMIZERS: dict[str, Callable[[], train.Optimizer]] = {
    "sgd": lambda: train.sgd(0.1),
    "sgd by value": lambda: train.sgd(0.1, clip_value=0.2),
    "sgd by norm": lambda: train.sgd(0.1, clip_norm=0.3),
    "sgd by global norm": lambda: train.sgd(0.1, clip_global_norm=0.3),
    "sgd decayed": lambda: train.sgd(0.1, weight_decay=0.1),
    "sgd by a schedule": lambda: train.sgd(train.exponential_decay(0.1, 2, 0.5)),
    "adagrad": lambda: train.adagrad(0.1),
    "adagrad by global norm": lambda: train.adagrad(0.1, clip_global_norm=0.3),
    "adagrad decayed": lambda: train.adagrad(0.1, weight_decay=0.1),
    "momentum": lambda: train.momentum(0.1, 0.9),
    "adam": lambda: train.adam(0.1),
    "adamw": lambda: train.adamw(0.1),
    "rmsprop": lambda: train.rmsprop(0.01, momentum=0.5),
    "lion": lambda: train.lion(0.01),
}


def variables(dtype: Any = np.float32) -> tuple[pb.Variable, pb.Variable]:
    return pb.variable(TABLE.astype(dtype)), pb.variable(np.linspace(-1, 1, 8).astype(dtype))


def loss(table: pb.Variable, weights: pb.Variable, at: Any) -> Any:
    return (pb.gather(table, at) * weights).sum() + (table[at[0]] ** 2).sum()


def train_by(optimizer: train.Optimizer, how: str, dtype: Any = np.float32) -> tuple[list[Any], dict[str, Any]]:
    """Return variables and slots after some steps: by dense gradients, by minimize, or by compiled minimize."""
    table, weights = variables(dtype)

    def step(at: Any) -> None:
        optimizer.minimize(lambda: loss(table, weights, at))

    run = pb.compile(step) if how == "compiled" else step
    for at in BATCHES:
        if how == "dense":
            optimizer.apply_gradients(pb.variable_grads(lambda at=at: loss(table, weights, at)).grads)
        elif how == "given":
            optimizer.apply_gradients(pb.variable_grads(lambda at=at: loss(table, weights, at), sparse=True).grads)
        else:
            run(at)
    names = {table.name: "t", weights.name: "w"}
    slots = [(key.rpartition("/"), x) for key, x in optimizer.state_dict().items()]
    return [table.numpy(), weights.numpy()], {names.get(v, "") + "/" + slot: x for (v, _, slot), x in slots}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", ["eager", "given", "compiled"])
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_row_sparse_step_equals_the_dense_step(make: Any, how: str):
    want, kept = train_by(make(), "dense")
    got, state = train_by(make(), how)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    assert state.keys() == kept.keys()
    for key in kept:
        np.testing.assert_allclose(state[key], kept[key], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("name", ["sgd", "adagrad", "sgd by global norm"])
def test_row_sparse_step_in_float64_is_exact(name: str, how: str):
    want, _ = train_by(OPTIMIZERS[name](), "dense", np.float64)
    got, _ = train_by(OPTIMIZERS[name](), how, np.float64)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(got[0][OTHERS], TABLE[OTHERS])


# ---- lazy


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("name", ["adam", "adamw", "momentum", "sgd decayed", "rmsprop"])
def test_lazy_optimizer_does_not_change_other_rows(name: str, how: str):
    plain = OPTIMIZERS[name]()
    lazy = plain.maker(**plain.get_config() | {"lazy": True})
    got, state = train_by(lazy, how)
    np.testing.assert_array_equal(got[0][OTHERS], TABLE[OTHERS])
    for key, x in state.items():
        if key.startswith("t/"):
            np.testing.assert_array_equal(x[OTHERS], 0)
            assert np.any(x[NAMED])


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_lazy_adam_equals_adam_in_touched_rows(how: str):
    at = np.array([5, 5, 7])
    results = []
    for lazy in (False, True):
        v = pb.variable(TABLE)
        optimizer = train.adam(0.1, lazy=lazy)

        def step(at: Any, v: Any = v, optimizer: Any = optimizer) -> None:
            optimizer.minimize(lambda: (pb.gather(v, at) ** 2).sum())

        run = pb.compile(step) if how == "compiled" else step
        for _ in range(3):
            run(at)
        results.append(v.numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6)  # all rows but two have had no gradient at all


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("rows", [[1], [1, 1], [0, 1, 2]])
def test_lazy_optimizer_on_small_tables(rows: list[int], how: str):
    v = pb.variable(np.ones((3, 2)))
    optimizer = train.sgd(0.1, weight_decay=1.0, lazy=True)

    def step(at: Any) -> None:
        optimizer.minimize(lambda: pb.gather(v, at).sum())

    (pb.compile(step) if how == "compiled" else step)(np.array(rows))
    expected = np.ones((3, 2))
    for row in set(rows):
        expected[row] = 1 - 0.1 - 0.1 * rows.count(row)
    np.testing.assert_allclose(v.numpy(), expected)


def test_lazy_is_part_of_optimizer_config():
    optimizer = train.adam(0.1, lazy=True)
    assert optimizer.get_config()["lazy"] is True
    assert pickle.loads(pickle.dumps(optimizer)).get_config()["lazy"] is True
    with pytest.raises(ArgumentError, match="adam: lazy must be True or False, got 'yes'"):
        train.adam(0.1, lazy="yes")  # type: ignore[typeddict-item]


# ---- in place, without changing arrays seen elsewhere


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_row_sparse_step_allocates_no_table(name: str, how: str):
    v = pb.variable(np.zeros((200_000, 8), np.float32))
    optimizer = OPTIMIZERS[name]()

    def step(at: Any) -> None:
        optimizer.minimize(lambda: (pb.gather(v, at) - 1.0).sum())

    run = pb.compile(step) if how == "compiled" else step
    for at in BATCHES:
        run(at)
    tracemalloc.start()
    try:
        run(BATCHES[0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000 * 8 * 4 / 4


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_row_sparse_step_does_not_change_tensors_read_before(how: str):
    v = pb.variable(TABLE)
    optimizer = train.sgd(0.1)

    def step(at: Any) -> None:
        optimizer.minimize(lambda: (pb.gather(v, at) ** 2).sum())

    run = pb.compile(step) if how == "compiled" else step
    run(BATCHES[0])
    seen, before = np.asarray(v), v.numpy()
    tensor = pb.stop_gradient(v)
    rows = v[:10]
    run(BATCHES[1])
    np.testing.assert_array_equal(seen, before)
    np.testing.assert_array_equal(np.asarray(tensor), before)
    np.testing.assert_array_equal(np.asarray(rows), before[:10])
    assert np.any(v.numpy() != before)


def test_row_sparse_step_does_not_change_what_a_tape_recorded():
    v = pb.variable(TABLE)
    at = BATCHES[0]
    with pb.GradientTape(persistent=True) as tape:
        y = (v * v).sum() + (pb.gather(v, at) ** 3).sum()
    before = tape.gradient(y, v).numpy()
    train.sgd(0.1).minimize(lambda: (pb.gather(v, at) ** 2).sum())
    np.testing.assert_array_equal(tape.gradient(y, v).numpy(), before)


def test_row_sparse_step_copies_user_array_first():
    given = TABLE.copy()
    v = pb.variable(given)
    train.sgd(0.1).minimize(lambda: (pb.gather(v, BATCHES[0]) ** 2).sum())
    np.testing.assert_array_equal(given, TABLE)


def test_row_sparse_gradient_is_owned_by_caller():
    v = pb.variable(TABLE)
    grads = pb.variable_grads(lambda: (pb.gather(v, BATCHES[0]) ** 2).sum(), sparse=True).grads
    before = grads[v.name].numpy()
    train.sgd(0.1, clip_norm=0.1).apply_gradients(grads)
    np.testing.assert_array_equal(grads[v.name].numpy(), before)


# ---- compiled programs


def test_compiled_program_with_two_row_sparse_steps():
    tables = []
    for compiled in (False, True):
        v = pb.variable(TABLE)
        optimizer = train.adagrad(0.1)

        def steps(a: Any, b: Any, v: Any = v, optimizer: Any = optimizer) -> Any:
            optimizer.minimize(lambda: (pb.gather(v, a) ** 2).sum())
            between = pb.gather(v, a).sum()
            optimizer.minimize(lambda: (pb.gather(v, b) ** 2).sum())
            return between, (v * 1.0).sum()

        run = pb.compile(steps) if compiled else steps
        results = [[float(x) for x in run(a, b)] for a, b in (BATCHES[:2], BATCHES[2:])]
        tables.append((v.numpy(), results))
    np.testing.assert_allclose(tables[1][0], tables[0][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tables[1][1], tables[0][1], rtol=1e-4, atol=1e-2)


def test_compiled_program_returns_table_before_step():
    v = pb.variable(TABLE)
    optimizer = train.sgd(0.1)

    def step(at: Any) -> Any:
        before = v * 1.0
        optimizer.minimize(lambda: (pb.gather(v, at) ** 2).sum())
        return before, v.read()

    run = pb.compile(step)
    for at in BATCHES:
        held = v.numpy()
        before, after = run(at)
        np.testing.assert_array_equal(np.asarray(before), held)
        np.testing.assert_array_equal(np.asarray(after), v.numpy())


def test_compiled_step_by_the_numpy_backend():
    v, w = pb.variable(TABLE), pb.variable(TABLE)
    optimizers = train.adagrad(0.1), train.adagrad(0.1)
    runs = [
        pb.compile(lambda at, x=x, o=o: o.minimize(lambda: (pb.gather(x, at) ** 2).sum()), backend=backend)
        for x, o, backend in ((v, optimizers[0], "numpy"), (w, optimizers[1], "auto"))
    ]
    for at in BATCHES:
        for run in runs:
            run(at)
    np.testing.assert_allclose(v.numpy(), w.numpy(), rtol=1e-6)


def test_compiled_step_with_captured_indices():
    v, w = pb.variable(TABLE), pb.variable(TABLE)
    at = BATCHES[0]
    train.sgd(0.1).minimize(lambda: (pb.gather(v, at) ** 2).sum())
    optimizer = train.sgd(0.1)
    pb.compile(lambda: optimizer.minimize(lambda: (w[at] ** 2).sum()))()
    np.testing.assert_allclose(v.numpy(), w.numpy(), rtol=1e-6)


# ---- arguments


def test_apply_gradients_takes_row_sparse_gradients_of_another_dtype():
    v = pb.variable(TABLE)
    train.sgd(1.0).apply_gradients([(pb.RowSparse([1, 1, -1], np.ones((3, 8)), SHAPE), v)])
    expected = TABLE.copy()
    expected[1] -= 2
    expected[-1] -= 1
    np.testing.assert_allclose(v.numpy(), expected)


def test_apply_gradients_with_no_rows_changes_only_the_count():
    v = pb.variable(TABLE)
    optimizer = train.adagrad(0.1)
    optimizer.minimize(lambda: pb.gather(v, np.array([], int)).sum())
    np.testing.assert_array_equal(v.numpy(), TABLE)
    assert optimizer.iterations == 1


def test_apply_gradients_row_sparse_errors():
    v = pb.variable(TABLE, name="row table")
    with pytest.raises(ShapeError, match=r"the gradient of 'row table' has shape \(3, 8\), expected \(20000, 8\)"):
        train.sgd(0.1).apply_gradients({v: pb.RowSparse([1], np.ones((1, 8)), (3, 8))})


def test_apply_gradients_traced_row_sparse_raises():
    v = pb.variable(TABLE)

    def f(s: Any) -> Any:
        train.sgd(0.1).apply_gradients({v: pb.RowSparse([1], np.ones((1, 8)) * s, SHAPE)})
        return s

    with pytest.raises(TracedValueError, match="is traced by a transform"):
        pb.grad(f)(1.0)


def test_update_densifies_row_sparse_gradients():
    optimizer = train.adam(0.1)
    params = {"t": TABLE[:5]}
    g = pb.RowSparse([1, 1], np.ones((2, 8), np.float32), (5, 8))
    new, _ = optimizer.update(params, {"t": g}, optimizer.init(params))
    want, _ = optimizer.update(params, {"t": g.to_dense()}, optimizer.init(params))
    np.testing.assert_array_equal(new["t"], want["t"])


def test_clipping_functions_keep_row_sparse_gradients():
    g = pb.RowSparse([1, 3, 1], np.arange(6.0).reshape(3, 2), (5, 2))
    both = {"t": g, "w": np.array([3.0])}
    dense = {"t": g.to_dense(), "w": both["w"]}
    for clip in (train.clip_values, train.clip_norms, train.clip_global_norm):
        made, want = clip(both, 2.0), clip(dense, 2.0)
        assert isinstance(made["t"], pb.RowSparse)
        np.testing.assert_allclose(made["t"], want["t"])
        np.testing.assert_allclose(made["w"], want["w"])
    assert train.global_norm(both) == train.global_norm(dense)


# ---- assign_rows


@pytest.mark.parametrize("compiled", [False, True])
def test_assign_rows(compiled: bool):
    v = pb.variable(np.zeros((4, 2)))

    def f(at: Any, values: Any) -> Any:
        v.assign_rows(at, values)
        return v.sum()

    total = (pb.compile(f) if compiled else f)(np.array([1, -1]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert v.tolist() == [[0, 0], [1, 2], [0, 0], [3, 4]]
    assert float(total) == 10


def test_assign_rows_errors():
    v = pb.variable(np.zeros((4, 2)), name="rows of")
    with pytest.raises(ShapeError, match="the index 4 is out of range for 4 rows"):
        v.assign_rows([4], [[1.0, 2.0]])
    with pytest.raises(ShapeError, match=r"values have shape \(1, 3\)"):
        v.assign_rows([1], [[1.0, 2.0, 3.0]])
    with pytest.raises(VariableError, match=r"rows of.assign_rows: expected dtype float64, got dtype float32. Cast it"):
        v.assign_rows([1], np.ones((1, 2), np.float32))


# ---- fit


def embedder(optimizer: Any, eager: bool = False, rows: int = 20_000) -> Any:
    pb.random.seed(1)
    table = pb.layers.embedding(rows, 8, input_shape=[3])
    model = pb.sequential([table, pb.layers.flatten(), pb.layers.dense(1)])
    model.compile(optimizer, "mean_squared_error", eager=eager)
    return model


X = RANDOM.integers(0, 500, (64, 3)).astype(np.int32)
Y = RANDOM.normal(size=(64, 1)).astype(np.float32)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("make", [lambda: train.sgd(0.5), lambda: train.adagrad(0.5), lambda: train.adam(0.01)])
def test_fit_row_sparse_equals_dense(make: Any, eager: bool, monkeypatch: pytest.MonkeyPatch):
    models = []
    for by_rows in (True, False):
        if not by_rows:
            monkeypatch.setattr("pullback.train.optim.step.has_few_rows", lambda g: False)
        models.append(embedder(make(), eager))
        models[-1].fit(X, Y, epochs=3, batch_size=16, shuffle=False, verbose=0)
    for a, b in zip(*(m.get_weights() for m in models), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("make", [lambda: train.sgd(0.5), lambda: train.adagrad(0.5)])
def test_fit_undoes_nonfinite_row_sparse_steps(make: Any, eager: bool):
    good = embedder(make(), eager)
    good.fit(X[:32], Y[:32], batch_size=16, shuffle=False, verbose=0)
    model = embedder(make(), eager)
    y = Y.copy()
    y[33] = np.inf
    with pytest.raises(NanError):
        model.fit(X, y, batch_size=16, shuffle=False, verbose=0)
    for a, b in zip(model.get_weights(), good.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    want = [x for x in good.optimizer.state_dict().values() if np.ndim(x)]
    got = [x for x in model.optimizer.state_dict().values() if np.ndim(x)]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_fit_undoes_interrupted_row_sparse_step():
    model = embedder(train.sgd(0.5), eager=True)
    model.fit(X, Y, batch_size=16, verbose=0)
    before = model.get_weights()
    own = model.optimizer.apply_gradients

    def broken(grads: Any) -> None:
        own(grads)
        raise KeyboardInterrupt

    model.optimizer.apply_gradients = broken
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, batch_size=16, verbose=0)
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_fit_undo_does_not_change_arrays_seen_by_callbacks():
    model = embedder(train.sgd(0.5), eager=True)
    y = Y.copy()
    y[33] = np.inf
    seen: list[Any] = []

    def look(batch: int, logs: Any) -> None:
        table = np.asarray(model.variables[0])
        seen.append((table, table.copy()))

    with pytest.raises(NanError):
        model.fit(X, y, batch_size=16, shuffle=False, verbose=0, callbacks={"onBatchEnd": look})
    assert len(seen) == 2
    for table, before in seen:
        np.testing.assert_array_equal(table, before)


def test_fit_with_a_regularized_embedding_trains_the_whole_table():
    pb.random.seed(1)
    table = pb.layers.embedding(20_000, 8, embeddings_regularizer="l2", input_shape=[3])
    model = pb.sequential([table, pb.layers.flatten(), pb.layers.dense(1)])
    model.compile(train.sgd(0.5), "mean_squared_error")
    model.build_for([(3,)])
    before = model.get_weights()[0]
    model.fit(X, Y, batch_size=64, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0][600:], before[600:] * (1 - 0.5 * 2 * 0.01), rtol=1e-5)
