"""Models that are changed, nested, shared, frozen, copied, and loaded from files of other models."""

from __future__ import annotations

import copy
import gc
import pickle
from dataclasses import dataclass
from weakref import ref

import numpy as np
import pytest

import pullback as pb
from pullback import late_binding
from pullback.errors import ArgumentError, CheckpointError, DataError, ShapeError

layers = pb.layers


def points(n: int = 90, seed: int = 0):
    """Return points of three clusters and the cluster of each."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 3, n)
    x = random.normal(size=(n, 2)) * 0.3 + np.array([[0, 0], [2, 0], [0, 2]])[kind]
    return x.astype(np.float32), kind


def classifier(optimizer="adam", metrics=(), input_shape=(2,)):
    model = pb.sequential([layers.dense(5, activation="tanh", input_shape=input_shape), layers.dense(3)])
    model.compile(optimizer, "sparse_softmax_cross_entropy", metrics)
    return model


def same(a, b) -> bool:
    return all(np.array_equal(u, v) for u, v in zip(a.get_weights(), b.get_weights(), strict=True))


# ---- changes after compilation


def test_model_optimizer_can_be_replaced() -> None:
    x, y = points()
    model = classifier(optimizer="sgd")
    model.fit(x, y)
    model.optimizer = pb.train.adam(0.01)
    model.fit(x, y, batch_size=30)
    assert model.optimizer.iterations == 3
    model.optimizer = "sgd"
    model.fit(x, y, batch_size=30)
    assert model.optimizer.iterations == 3
    model.optimizer = "none"
    with pytest.raises(ArgumentError, match="got 'none'"):
        model.fit(x, y)


def test_eager_model_is_freed_without_garbage_collection() -> None:
    x, y = points()
    model = pb.sequential([layers.dense(3, input_shape=[2])])
    model.compile("sgd", "sparse_softmax_cross_entropy", eager=True)
    model.fit(x, y)
    alive = ref(model)
    gc.disable()
    try:
        del model
        assert alive() is None
    finally:
        gc.enable()


def test_added_layer_invalidates_compiled_predict() -> None:
    x, _ = points()
    model = classifier()
    assert (model.predict(x) < 0).any()
    model.add(layers.activation("relu"))
    assert (model.predict(x) >= 0).all()


def test_frozen_batch_normalization_keeps_averages() -> None:
    x, y = points()
    normal = layers.batch_normalization(center=False, scale=False)
    model = pb.sequential([normal, layers.dense(3)])
    model.compile("sgd", "sparse_softmax_cross_entropy")
    model.fit(x, y)
    normal.trainable, before = False, normal.get_weights()
    model.fit(x, y)
    np.testing.assert_array_equal(normal.get_weights(), before)


# ---- mismatched files


def test_load_checkpoint_of_other_optimizer_raises_and_changes_nothing(tmp_path) -> None:
    x, y = points()
    path = tmp_path / "run"
    first = classifier()
    first.fit(x, y)
    first.save_checkpoint(path)
    model = classifier("sgd")
    before = model.get_weights()
    with pytest.raises(CheckpointError, match="another optimizer, so nothing was assigned"):
        model.load_checkpoint(path)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    model.set_weights(pb.train.load(path)["weights"])
    assert same(model, first)


@pytest.mark.parametrize(
    ("metrics", "how", "message"),
    [
        (["accuracy"], {}, "measured loss; this one measures loss, accuracy"),
        ([], {"batch_size": 45}, "another dataset"),
        ([], {"shuffle": False}, "another dataset"),
    ],
)
def test_resume_from_other_training_raises_and_changes_nothing(tmp_path, metrics, how, message: str) -> None:
    x, y = points()
    path = tmp_path / "run"
    classifier().fit(x, y, callbacks=pb.callbacks.model_checkpoint(path))
    model = classifier(metrics=metrics)
    before = model.get_weights()
    with pytest.raises(DataError, match=message):
        model.fit(x, y, epochs=2, resume=path, **how)
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert model.optimizer.iterations == 0


def test_save_and_load_partly_frozen_model(tmp_path) -> None:
    x, y = points()
    model = classifier()
    model.fit(x, y)
    for last in (False, True):
        model.layers[last].trainable = False
        model.save(tmp_path / "model")
        again = pb.load_model(tmp_path / "model")
        assert same(again, model)
        assert len(again.trainable_variables) == (0 if last else 2)


def test_save_and_load_untrained_model_with_optimizer(tmp_path) -> None:
    x, y = points()
    model = classifier()
    model.save(tmp_path / "model")
    model.save_checkpoint(tmp_path / "run")
    again = pb.load_model(tmp_path / "model")
    model.fit(x, y, shuffle=False)
    again.fit(x, y, shuffle=False)
    assert same(again, model)
    model.load_checkpoint(tmp_path / "run")
    assert model.optimizer.iterations == 0
    model.fit(x, y, shuffle=False)
    assert same(again, model)


def test_optimizer_shared_by_two_models_is_saved_per_model(tmp_path) -> None:
    x, y = points()
    optimizer = pb.train.momentum(0.1, 0.9)
    one, other = classifier(optimizer), classifier(optimizer)
    for model in (one, other):
        model.fit(x, y)
    one.save(tmp_path / "model")
    kept = other.optimizer.state_dict()
    one.load_checkpoint(tmp_path / "model")
    assert same(pb.load_model(tmp_path / "model"), one)
    for name, value in other.optimizer.state_dict().items():
        np.testing.assert_array_equal(value, kept[name])


# ---- nested models and shared layers


def test_nested_models_summary_save_and_load(tmp_path, capsys) -> None:
    x = pb.input([4])
    encode, decode = layers.dense(2, name="code"), layers.dense(4)
    encoder = pb.model(x, encode(x))
    z = pb.input([2])
    both = pb.model(x, pb.model(z, decode(z), name="decoder")(encoder(x)))
    both.summary()
    assert "decoder (functional)       (batch, 4)            12" in capsys.readouterr().out
    both.save(tmp_path / "model")
    again = pb.load_model(tmp_path / "model")
    assert list(again.named_variables()) == list(both.named_variables())
    np.testing.assert_array_equal(again.predict(np.eye(4)), both.predict(np.eye(4)))


def test_layer_shared_with_nested_model_is_saved_once(tmp_path) -> None:
    x = pb.input([3])
    shared = layers.dense(3)
    model = pb.model(x, layers.add()(pb.sequential([shared])(x), shared(layers.activation("relu")(x))))
    model.save(tmp_path / "model")
    again = pb.load_model(tmp_path / "model")
    assert len(again.variables) == 2
    np.testing.assert_array_equal(again.predict(-np.eye(3)), model.predict(-np.eye(3)))


def test_duplicate_layer_names_raise() -> None:
    with pytest.raises(ArgumentError, match="two layers are called 'a'"):
        pb.sequential([layers.dense(3, name="a"), layers.dense(3, name="a")])
    x = pb.input([3])
    with pytest.raises(ArgumentError, match="two layers are called 'a'"):
        pb.model(x, layers.dense(3, name="a")(layers.dense(3, name="a")(x)))
    inner = pb.sequential([layers.dense(3, name="b", input_shape=[3])], name="a")
    model = pb.sequential([layers.dense(3, name="a/b", input_shape=[3]), inner])
    with pytest.raises(ArgumentError, match="two variables would be called 'a/b/kernel'"):
        model.named_variables()
    model.compile("sgd", "mse")
    with pytest.raises(ArgumentError, match="two variables would be called 'a/b/kernel'"):
        model.fit(np.ones((2, 3)), np.ones((2, 3)), verbose=0)  # before it trains what could not be saved


def test_set_weights_of_layer_is_all_or_nothing() -> None:
    model = classifier()
    first = model.layers[0]
    before = first.get_weights()
    with pytest.raises(CheckpointError, match="nothing was assigned"):
        first.set_weights([np.ones((2, 5)), np.ones(4)])
    np.testing.assert_array_equal(first.get_weights()[0], before[0])
    first.set_weights([np.ones((2, 5)), np.ones(5)])
    assert all(np.all(w == 1) for w in model.get_weights()[:2])


# ---- classes and copies


class Tower(pb.Model):
    def __init__(self, units: int, depth: int = 1) -> None:
        super().__init__()
        self.units, self.depth = units, depth
        self.steps = [layers.dense(units, activation="tanh") for _ in range(depth)]
        self.last = layers.dense(3)

    def call(self, x):
        for step in self.steps:
            x = step(x)
        return self.last(x)


class Forgetful(pb.Model):
    def __init__(self, units: int) -> None:
        super().__init__()
        self.inner = layers.dense(units)


def test_save_and_load_custom_model(tmp_path) -> None:
    x, y = points()
    model = Tower(4, depth=2)
    model.compile("adam", "sparse_softmax_cross_entropy")
    model.fit(x, y, shuffle=False)
    model.save(tmp_path / "model")
    again = pb.load_model(tmp_path / "model")
    model.fit(x, y, shuffle=False)
    again.fit(x, y, shuffle=False)
    assert same(again, model)
    with pytest.raises(CheckpointError, match="'units' is not known"):
        Forgetful(3).save(tmp_path / "model")


def test_unbuilt_model_loads_checkpoint(tmp_path) -> None:
    data = pb.data.Dataset.from_arrays(points()).batch(30)
    path = tmp_path / "run"
    classifier(input_shape=None).fit_dataset(data, callbacks=pb.callbacks.model_checkpoint(path))
    history = classifier(input_shape=None).fit_dataset(data, epochs=2, resume=path)
    assert history.epochs == [0, 1]
    assert history.history["loss"][1] < history.history["loss"][0]


def duplicate_by_file(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, duplicate_by_file])
def test_copied_model_trains_independently(duplicate) -> None:
    x, y = points()
    inside = pb.input([2])
    h = layers.batch_normalization()(layers.dense(4, kernel_regularizer="l2")(inside))
    model = pb.model(inside, layers.dense(3)(layers.dropout(0.5, seed=1)(h)))
    model.compile("adam", "sparse_softmax_cross_entropy")
    model.fit(x, y, shuffle=False)
    before = model.get_weights()
    other = duplicate(model)
    other.fit(x, y, shuffle=False)
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    model.fit(x, y, shuffle=False)
    assert same(other, model)
    other.trainable = False
    other.trainable = True
    assert [v.trainable for v in other.variables] == [v.trainable for v in model.variables]


# ---- inputs


def test_one_dimensional_input_gets_feature_axis() -> None:
    model = pb.sequential([layers.dense(1, kernel_initializer="ones", input_shape=[1])])
    model.compile("sgd", "mse")
    assert model.fit([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).history["loss"] == [0.0]
    np.testing.assert_array_equal(model.predict([1.0, 2.0]), [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.ones(2), ShapeError, r"For one example: x\[None\]"),
        (np.ones(7), ShapeError, r"expected examples of shape \(2,\)"),
        ([np.ones(2), np.ones(2)], ShapeError, "np.stack"),
        (np.array([["a", "b"]]), DataError, "expected numbers, got dtype <U1. For columns of text see"),
        ([["a", "b"]], DataError, "expected numbers, got text. For columns of text see pb.layers.text_vectorization"),
    ],
)
def test_input_without_batch_axis_raises(x, error, message: str) -> None:
    with pytest.raises(error, match=message):
        classifier().predict(x)


def test_validation_data_is_checked_before_training() -> None:
    x, _ = points()
    model = pb.sequential([layers.dense(2, input_shape=[2])])
    model.compile("sgd", "mse")
    before = model.get_weights()
    with pytest.raises(ShapeError, match="same shape"):
        model.fit(x, x, validation_data=(x, x[:, :1]))
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("wrong", [-1, 10])
def test_embedding_out_of_range_raises_in_compiled_model(functional: bool, wrong: int) -> None:
    parts = [layers.embedding(10, 2, name="words", input_shape=[3]), layers.flatten(), layers.dense(1)]
    x = pb.input([3])
    model = pb.model(x, parts[2](parts[1](parts[0](x)))) if functional else pb.sequential(parts)
    model.compile("sgd", "mse")
    words, y = np.ones((64, 3), int), np.ones(64)
    words[50, 1] = wrong
    data = pb.data.Dataset.from_arrays((words, y)).batch(32)
    for use in (
        model.predict,
        lambda x: model.fit(x, y),
        lambda _: model.fit_dataset(data),
        lambda _: model.evaluate(data),
    ):
        with pytest.raises(ShapeError, match=f"layer 'words'.* from 0 to 9, got {wrong}"):
            use(words)


def test_dataset_batches_as_xs_ys_dict() -> None:
    x, y = points()
    data = pb.data.Dataset.from_arrays({"xs": x, "ys": y}).batch(30)
    model = classifier()
    assert model.fit_dataset(data, validation_data=data).steps == 3
    assert model.evaluate(data) > 0


def test_get_layer_by_name_or_number() -> None:
    model = classifier()
    assert model.get_layer("dense_2") is model.get_layer(1) is model.get_layer(-1) is model.layers[1]
    with pytest.raises(ArgumentError, match="no layer 'dense_3'; there are dense_1, dense_2"):
        model.get_layer("dense_3")


def test_custom_layer_with_builtin_name_is_saved_by_module(tmp_path) -> None:
    @dataclass(eq=False)
    class Dense(layers.Layer):
        factor: float

        def call(self, x):
            return x * self.factor

    model = pb.sequential([layers.dense(2, input_shape=[2]), Dense(3.0)])
    model.save(tmp_path / "model")
    x = np.eye(2)
    np.testing.assert_array_equal(pb.load_model(tmp_path / "model").predict(x), model.predict(x))
    plain = pb.sequential([layers.dense(2, input_shape=[2])])
    plain.save(tmp_path / "model.json")  # whose Dense is TensorFlow.js's
    np.testing.assert_allclose(pb.load_layers_model(tmp_path / "model.json").predict(x), plain.predict(x), rtol=1e-6)


@pytest.mark.parametrize("size", [0, "a"])
def test_batch_size_must_be_a_count(size) -> None:
    with pytest.raises(ArgumentError, match="batch_size must be an integer"):
        classifier().predict(np.ones((4, 2)), batch_size=size)


def test_compiled_program_is_looked_up_once_per_call(monkeypatch) -> None:
    x, y = points()
    model = classifier()
    model.evaluate(x, y, batch_size=1), model.predict(x, batch_size=1)
    walks = []
    every = model.list_structure
    monkeypatch.setattr(model, "list_structure", lambda: walks.append(1) or every())
    model.evaluate(x, y, batch_size=1), model.predict(x, batch_size=1)
    assert len(walks) == 2


def test_layers_in_private_attributes_are_parts() -> None:
    class Private(pb.Model):
        def __init__(self) -> None:
            super().__init__()
            self._first = layers.dense(2, kernel_regularizer="l2")
            self._rest = [layers.dense(3)]

        def call(self, x):
            return self._rest[0](self._first(x))

    x, y = points()
    model = Private()
    model.compile("sgd", "sparse_softmax_cross_entropy")
    for _ in range(2):
        model.fit(x, y)
        assert list(model.named_variables()) == ["_first/kernel", "_first/bias", "_rest/0/kernel", "_rest/0/bias"]
        assert len(model.layers) == 2


def test_redefined_layer_class_replaces_registered_one(tmp_path):
    def cell(factor):
        @dataclass(eq=False)
        class ScaledInACell(pb.layers.Layer):
            def call(self, x):
                return x * factor

        return ScaledInACell

    pytest.importorskip("safetensors")
    pb.sequential([cell(2.0)(input_shape=[2], name="scaled")]).save(tmp_path / "model")
    cell(3.0)
    assert pb.load_model(tmp_path / "model").predict(np.ones((1, 2))).tolist() == [[3, 3]]


def test_model_is_built_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an op was compiled for its shape alone")

    monkeypatch.setattr(late_binding, "compile_formula", refuse)
    image = pb.input([37, 41, 3])
    h = layers.conv2d(24, 5, activation="tanh")(image)
    model = pb.model(image, layers.conv2d_transpose(8, 3, strides=2)(layers.max_pooling2d(2)(h)))
    assert model.outputs[0].shape == (33, 37, 8)


# ---- symbolic tensors


@pytest.mark.parametrize("function", [
    lambda x: x.sum(-1), lambda x: x.mean((1, 2), keepdims=True), lambda x: x[..., 1], lambda x: x[0:1, ..., ::2],
    lambda x: x * pb.tensor(np.arange(3.0, dtype=np.float32)), lambda x: x.astype("int32"),
    lambda x: np.tanh(x).astype(np.float64),
])  # fmt: skip
@pytest.mark.parametrize(
    "duplicate", [lambda model: model, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_functions_of_symbolic_tensors_equal_numpy(function, duplicate) -> None:
    x = np.sin(np.arange(24, dtype=np.float32)).reshape(2, 4, 3) * 3
    given = pb.input([4, 3])
    model = duplicate(pb.model(given, function(given)))
    found, expected = model.predict(x), np.asarray(function(x))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == expected.dtype


def test_symbolic_tensors_reject_arrays_reductions_and_sparse() -> None:
    x = pb.input([4, 3])
    assert x.ndim == 3
    with pytest.raises(
        ArgumentError, match=r"layer 'sum': got a symbolic tensor together with ndarray. Make it an input"
    ):
        layers.add(name="sum")(x, np.ones((1, 4, 3)))
    with pytest.raises(ArgumentError, match=r"np.add.reduce and out= do not apply to a symbolic tensor"):
        np.add.reduce(x)
    for make in (lambda: pb.input([2], sparse=True), lambda: layers.input_layer(sparse=True)):
        with pytest.raises(ArgumentError, match="sparse=True is not known here: arrays are dense"):
            make()


def test_input_layer_takes_batch_shape() -> None:
    layer = layers.input_layer(batch_shape=[5, 2])
    assert (layer.batch_size, layer.input_shape) == (5, (2,))
    assert pb.sequential([layer, layers.dense(3)]).get_weights()[0].shape == (2, 3)


# ---- models


def test_model_class_without_graph_repr_and_failed_build() -> None:
    class Fragile(pb.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.fails = layers.dense(2), True

        def call(self, x):
            if self.fails:
                raise OverflowError("too much")
            return self.dense(x)

    model = Fragile()
    with pytest.raises(ArgumentError, match="a model that is a class of your own has no symbolic inputs and outputs"):
        _ = model.inputs
    with pytest.raises(OverflowError, match="too much"):
        model.build([3])
    assert not model.built
    model.fails = False
    model.build([3])
    assert repr(model) == f"<Fragile {model.name!r}: 1 layer, 8 parameters>"


def test_model_compute_mask_is_that_of_last_layer() -> None:
    model = pb.sequential([layers.masking(input_shape=[4, 3]), layers.lstm(2, return_sequences=True)])
    x = np.ones((2, 4, 3), np.float32)
    x[0, 2:] = 0
    np.testing.assert_array_equal(model.compute_mask(x), x.any(-1))
    np.testing.assert_array_equal(model.compute_mask([x]), x.any(-1))


def test_output_shapes_of_several_outputs() -> None:
    class Split(layers.Layer):
        def call(self, x):
            return x, x[..., :1]

        def compute_output_shape(self, shape):
            return [shape, (*shape[:-1], 1)]

    assert [x.shape for x in Split()(pb.input([4]))] == [(4,), (1,)]
    assert layers.lstm(2, return_state=True).compute_output_shape((None, 4, 3)) == ((None, 2),) * 3
    x = pb.input([None, 3])
    model = pb.model(x, layers.dense(2)(x), trainable=False)
    assert model.output_shape((7, 3)) == (7, 2)
    assert not model.trainable_variables
    assert len(model.variables) == 2


def test_built_is_set_and_metrics_are_listed_in_keras_style() -> None:
    class Counted(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.mean = pb.metrics.Mean("size")

        def build(self, input_shape) -> None:
            self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones")
            self.built = True

        def call(self, x):
            self.mean.update_state(x)
            return x * self.factor

    layer = Counted()
    assert not layer.built
    np.testing.assert_array_equal(layer(np.full((2, 3), 4.0)), np.full((2, 3), 4.0))
    assert layer.built
    assert layer.metrics == [layer.mean]


def test_execute_takes_inputs_by_name() -> None:
    a, b = pb.input([2], name="a"), pb.input([2], name="b")
    model = pb.model([a, b], layers.dense(1)(layers.subtract(name="less")([a, b])))
    found = model.execute({"b": np.ones((1, 2)), "a": np.full((1, 2), 3.0)}, "less")
    np.testing.assert_array_equal(found, [[2.0, 2.0]])
    for call, what in ((model, ""), (lambda given: model.execute(given, "less"), ".execute")):
        with pytest.raises(ArgumentError, match=f"{model.name}{what}: inputs: there is no array for 'a'; there are b"):
            call({"b": np.ones((1, 2))})
    for call, what in ((model.call, ""), (lambda given: model.execute(given, "less"), ".execute")):
        with pytest.raises(ArgumentError, match=f"{model.name}{what}: expected 2 inputs, got 1"):
            call(np.ones((1, 2)))
