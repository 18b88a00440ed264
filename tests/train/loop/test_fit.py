"""Models: compile, fit, evaluate, predict, errors, interruption, resuming and files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, CheckpointError, DataError, GradientError, NanError, ShapeError

layers = pb.layers


def points(n: int = 90, seed: int = 0):
    """Return points of three clusters and the cluster of each."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 3, n)
    x = random.normal(size=(n, 2)) * 0.3 + np.array([[0, 0], [2, 0], [0, 2]])[kind]
    return x.astype(np.float32), kind


def classifier(seed: int = 1, dropout: float = 0.0, noise: int | None = None, **how):
    pb.random.seed(seed)
    drop = layers.dropout(dropout, seed=noise)
    model = pb.sequential([layers.dense(16, activation="tanh", input_shape=[2]), drop, layers.dense(3)])
    how = {"optimizer": pb.train.adam(0.05), "loss": "sparse_softmax_cross_entropy", "metrics": ["accuracy"]} | how
    model.compile(**how)
    return model


def same(a, b) -> bool:
    return all(np.array_equal(u, v) for u, v in zip(a.get_weights(), b.get_weights(), strict=True))


# ---- training


@pytest.mark.parametrize("eager", [False, True])
def test_fit_learns_classification(eager: bool) -> None:
    x, y = points()
    model = classifier(eager=eager)
    history = model.fit(x, y, epochs=30, batch_size=16, validation_split=0.2)
    assert history.epochs == list(range(30))
    assert history.steps == 30 * 5
    assert history.history["loss"][-1] < 0.2 * history.history["loss"][0]
    assert history.history["val_accuracy"][-1] > 0.9
    loss, accuracy = model.evaluate(*points(40, seed=9))
    assert loss < 0.3
    assert accuracy > 0.9
    assert np.mean(model.predict(x).argmax(1) == y) > 0.9


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "optimizer", ["sgd", "momentum", "adam", "rmsprop", pb.train.adamw(0.01, clip_global_norm=1.0)]
)
def test_fit_eager_equals_compiled(optimizer) -> None:
    x, y = points()
    made = []
    for eager in (False, True):
        if not isinstance(optimizer, str):
            optimizer = pb.train.adamw(0.01, clip_global_norm=1.0)
        model = classifier(dropout=0.25, eager=eager, optimizer=optimizer)
        made.append((model.fit(x, y, epochs=3, batch_size=16).history, model.get_weights()))
    (one, weights), (other, others) = made
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-4)
    for a, b in zip(weights, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_fit_is_deterministic_with_seed() -> None:
    x, y = points()
    one, other, another = classifier(dropout=0.2), None, None
    one.fit(x, y, epochs=2)
    other = classifier(dropout=0.2)
    other.fit(x, y, epochs=2)
    another = classifier(seed=2, dropout=0.2)
    another.fit(x, y, epochs=2)
    assert same(one, other)
    assert not same(one, another)


BITS = """
import sys, zlib
sys.path[:0] = sys.argv[1:]
from test_fit import classifier, points
model = classifier(dropout=0.2)
model.fit(*points(), epochs=2)
print(zlib.crc32(b"".join(w.tobytes() for w in model.get_weights())))
"""


def test_fit_is_deterministic_across_processes() -> None:
    command = [sys.executable, "-c", BITS, os.path.dirname(__file__)]
    found = {subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(found) == 1
    assert found.pop().strip().isdigit()


def test_evaluate_means_are_weighted_by_batch_size() -> None:
    model = pb.sequential([layers.dense(1, kernel_initializer="ones", use_bias=False, input_shape=[1])])
    model.compile("sgd", "mean_squared_error", metrics=["mae"])
    x = np.arange(5.0).reshape(-1, 1)
    assert model.evaluate(x, np.zeros((5, 1)), batch_size=2) == [6.0, 2.0]
    loss = classifier(metrics=()).evaluate(*points(5), batch_size=2)
    assert isinstance(loss, float)


def test_predict_is_independent_of_batch_size() -> None:
    model, (x, _) = classifier(), points(50)
    np.testing.assert_allclose(model.predict(x, batch_size=7), model.predict(x, batch_size=50), rtol=1e-5)
    assert model.predict(x[:0]).shape == (0, 3)
    assert model.predict(x).dtype == np.float32


def test_fit_takes_float64_and_tensors() -> None:
    x, y = points()
    for xs, ys in ((x.astype(np.float64), y.astype(np.int8)), (pb.tensor(x), pb.tensor(y)), (x.tolist(), y.tolist())):
        model = classifier()
        model.fit(xs, ys, epochs=1, shuffle=False)
        reference = classifier()
        reference.fit(x, y, epochs=1, shuffle=False)
        assert same(model, reference)


def test_fit_float64_model() -> None:
    with pb.default_dtype("float64"):
        model, (x, y) = classifier(), points()
        model.fit(x, y, epochs=1)
    assert {w.dtype for w in model.get_weights()} == {np.dtype("float64")}


def test_fit_dataset_equals_fit() -> None:
    x, y = points()
    one, other = classifier(), classifier()
    one.fit(x, y, epochs=2, shuffle=False)
    data = pb.data.Dataset.from_arrays((x, y)).batch(32)
    history = other.fit_dataset(data, epochs=2, validation_data=data)
    assert same(one, other)
    pair = classifier().fit_dataset(data, epochs=1, validation_data=(x, y)).history["val_loss"]
    assert pair == pytest.approx(history.history["val_loss"][:1], rel=1e-5)
    assert history.history["val_loss"][-1] == pytest.approx(other.evaluate(data)[0])


def test_fit_several_inputs_and_outputs() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 64, 3)).astype(np.float32)
    u, v = pb.input([3]), pb.input([3])
    h = layers.dense(8, activation="tanh")(layers.concatenate()(u, v))
    model = pb.model(inputs=[u, v], outputs=[layers.dense(1)(h), layers.dense(3)(h)])
    model.compile(pb.train.adam(0.02), ["mse", "sparse_softmax_cross_entropy"])
    targets = (a[:, :1] * b[:, :1], b.argmax(1))
    history = model.fit((a, b), targets, epochs=40)
    assert history.history["loss"][-1] < 0.5 * history.history["loss"][0]
    assert [z.shape for z in model.predict([a, b])] == [(64, 1), (64, 3)]
    with pytest.raises(ArgumentError, match="the model has 2 outputs and 2 losses, but the number of targets is 1"):
        model.fit((a, b), targets[0])


def test_fit_freeze_and_unfreeze_layer() -> None:
    x, y = points()
    model = classifier()
    first, last = model.layers[0], model.layers[-1]
    model.fit(x, y)
    first.trainable = False
    kernel, other = first.kernel.numpy().copy(), last.kernel.numpy().copy()
    model.fit(x, y)
    assert np.array_equal(first.kernel.numpy(), kernel)
    assert not np.array_equal(last.kernel.numpy(), other)
    first.trainable = True
    model.fit(x, y)
    assert not np.array_equal(first.kernel.numpy(), kernel)


def test_train_on_batch() -> None:
    x, y = points()
    model = classifier(metrics=())
    losses = [model.train_on_batch(x, y)[0] for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]


def test_model_apply_under_transforms() -> None:
    model, (x, y) = classifier(), points(6)
    params = model.params()

    def loss(params, x, y):
        return pb.losses.sparse_softmax_cross_entropy(y, model.apply(params, x))

    each = pb.vmap(lambda x, y: pb.grad(lambda p: loss(p, x[None], y[None]))(params))(x, y)
    whole = pb.grad(lambda p: loss(p, x, y))(params)
    for name in params:
        np.testing.assert_allclose(np.asarray(each[name]).mean(0), whole[name], rtol=1e-4, atol=1e-6)
    found = pb.variable_grads(lambda: loss({}, x, y)).grads
    for name, v in model.named_variables().items():
        np.testing.assert_allclose(found[v.name], whole[name], rtol=1e-5, atol=1e-7)
    compiled = pb.compile(pb.grad(lambda p: loss(p, x, y)))(params)
    np.testing.assert_allclose(compiled["dense_1/kernel"], whole["dense_1/kernel"], rtol=1e-4, atol=1e-6)


def test_model_apply_errors() -> None:
    model = classifier()
    with pytest.raises(ArgumentError, match="there is no variable 'dense_9/kernel'; there are dense_1/kernel"):
        model.apply({"dense_9/kernel": np.ones(2)}, np.ones((1, 2)))
    with pytest.raises(ShapeError, match=r"dense_2/bias has shape \(2,\), expected \(3,\)"):
        model.apply({"dense_2/bias": np.ones(2)}, np.ones((1, 2)))


# ---- errors


@pytest.mark.parametrize("eager", [False, True])
def test_fit_nonfinite_loss_raises_and_restores_model(eager: bool) -> None:
    x, y = points(64)
    x = np.abs(x) + 1
    x[40] = -1.0  # its logarithm is NaN

    @dataclass(eq=False)
    class Logarithm(layers.Layer):
        def call(self, x):
            return np.log(x)

    model = pb.sequential([Logarithm(input_shape=[2]), layers.dense(3)])
    model.compile("sgd", "sparse_softmax_cross_entropy", eager=eager)
    reference = pb.sequential([Logarithm(input_shape=[2]), layers.dense(3)])
    reference.compile("sgd", "sparse_softmax_cross_entropy", eager=eager)
    reference.set_weights(model.get_weights())
    reference.fit(x[:32], y[:32], batch_size=16, shuffle=False)
    with pytest.raises(NanError, match=r"in epoch 1, batch 3[^.]*\. The model is as it was (.|\n)*log") as caught:
        model.fit(x, y, batch_size=16, shuffle=False)
    assert caught.value.report.op == "log"
    assert same(model, reference)
    assert model.optimizer.iterations == 2
    model.fit(x[:32], y[:32])  # training can continue


def test_fit_error_names_data_that_is_not_finite() -> None:
    x, y = np.ones((8, 2)), np.ones((8, 1))
    y[3] = np.nan
    model = pb.sequential([layers.dense(1, input_shape=[2])])
    model.compile("sgd", "mse")
    with pytest.raises(NanError, match=r"The targets y of this batch hold nan, first at index \[3, 0\]\."):
        model.fit(x, y, shuffle=False)


@pytest.mark.parametrize("eager", [False, True])
def test_fit_nonfinite_gradient_is_found_a_step_later(eager: bool) -> None:
    x = np.ones((64, 1), np.float32)
    x[20] = 0.0  # the root is finite there, its derivative is not

    @dataclass(eq=False)
    class Root(layers.Layer):
        def build(self, shape):
            self.scale = self.weight("scale", (1,), "ones")

        def call(self, x):
            return np.sqrt(x * self.scale)

    model = pb.sequential([Root(input_shape=[1])])
    model.compile("sgd", "mse", eager=eager)
    with pytest.raises(NanError) as caught:
        model.fit(x, x * 0.5, batch_size=16, shuffle=False)
    assert caught.value.report.op == "sqrt"
    assert caught.value.report.phase == "backward"
    assert np.all(np.isfinite(model.get_weights()[0]))
    assert model.optimizer.iterations == 1


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("stops", [False, True])
def test_fit_nonfinite_weights_after_last_batch(eager: bool, stops: bool) -> None:
    x, y = np.ones((12, 2), np.float32), np.ones((12, 1), np.float32)
    x[11, 0] = -np.inf  # the sigmoid is finite there, the gradient of the kernel is not

    class Saved(pb.callbacks.Callback):
        def on_batch_end(self, batch, logs):
            self.model.stop_training = stops and batch == 2

        def on_epoch_end(self, epoch, logs):
            pytest.fail("a callback must not be given such weights to save")

    model = pb.sequential([layers.dense(1, activation="sigmoid", kernel_initializer="ones", input_shape=[2])])
    model.compile("sgd", "mse", eager=eager)
    message = r"dense\S*/kernel is not finite after epoch 1, batch 3\. The model is as it was (.|\n)*the input itself"
    with pytest.raises(NanError, match=message):
        model.fit(x, y, batch_size=4, shuffle=False, callbacks=[Saved()])
    assert all(np.all(np.isfinite(w)) for w in model.get_weights())
    assert model.optimizer.iterations == 2


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda m, x, y: m.fit(np.ones((90, 3)), y), ShapeError, "layer 'dense_.*'.*3"),
        (lambda m, x, y: m.fit(x, y, class_weight=[1, 2, 3]), ArgumentError, "must be a dict from class"),
        (lambda m, x, y: m.fit(x), ArgumentError, r"there are no targets. Give y, or batches that are pairs \(x, y\)"),
        (lambda m, x, y: m.fit(x, ["a"] * 90), DataError, "y: expected numbers, got text. Give classes as whole"),
        (lambda m, x, y: m.fit(x[0, 0], y), ShapeError, "expected an array of examples, got one number"),
        (lambda m, x, y: m.fit(x, y + 1), DataError, "labels must be 0 to 2, as there are 3 classes.*largest 3"),
        (lambda m, x, y: m.fit(x, y - 1), DataError, "labels must be 0 to 2.*smallest is -1"),
        (lambda m, x, y: m.fit(x, y[:5]), ShapeError, r"the same number of examples, got shapes \(90, 2\), \(5,\)"),
        (lambda m, x, y: m.fit(x[:0], y[:0]), DataError, r"there are no examples: the arrays have shape \(0, 2\)"),
        (lambda m, x, y: m.fit(x, y, epochs=0), ArgumentError, "epochs must be a positive whole number, got 0"),
        (lambda m, x, y: m.fit(x, y, validation_split=0.999), ArgumentError, "leaves none on one side"),
        (lambda m, x, y: m.fit(x, y, validation_data=x), DataError, "expected pairs of inputs and targets"),
        (lambda m, x, y: m.fit_dataset(x), ArgumentError, "expected a pb.data.Dataset or .*, got ndarray"),
        (lambda m, x, y: m.evaluate(x, y + 7), DataError, "labels must be 0 to 2"),
        (lambda m, x, y: m.compile("best", "mse"), ArgumentError, "one of the names adadelta, .*; got 'best'"),
        (lambda m, x, y: m.compile("sgd", "worst"), ArgumentError, "got 'worst'"),
    ],
)  # fmt: skip
def test_fit_bad_input_raises_and_changes_nothing(change, error, message: str) -> None:
    model, (x, y) = classifier(), points()
    before = model.get_weights()
    with pytest.raises(error, match=message):
        change(model, x, y)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
    model.fit(x, y)


@pytest.mark.parametrize("batches", [[], [np.ones((2, 2))]])
def test_fit_dataset_without_pairs_raises(batches) -> None:
    data = pb.data.Dataset.from_generator(lambda: iter(batches))
    message = "expected pairs of inputs and targets" if batches else "the dataset is empty: epoch 1 has no batch"
    with pytest.raises(DataError, match=message):
        classifier().fit_dataset(data)


def test_fit_dataset_checks_labels() -> None:
    x, y = points()
    with pytest.raises(DataError, match="labels must be 0 to 2"):
        classifier().fit_dataset(pb.data.Dataset.from_arrays((x, y * 2)).batch(32))


def test_fit_before_compile_or_all_frozen_raises() -> None:
    model, (x, y) = pb.sequential([layers.dense(3, input_shape=[2])]), points()
    with pytest.raises(
        ArgumentError, match=r"fit: the model is not compiled. Call model.compile\(optimizer, loss\) first"
    ):
        model.fit(x, y)
    model.compile("sgd", "sparse_softmax_cross_entropy")
    model.trainable = False
    with pytest.raises(GradientError, match="none of its 2 variables is trainable"):
        model.fit(x, y)
    assert isinstance(model.evaluate(x, y), float)


# ---- interruption and resuming


def test_fit_sigint_stops_after_step() -> None:
    x, y = points()
    model = classifier()

    def interrupt(batch, logs):
        if batch == 1:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    history = model.fit(x, y, epochs=5, callbacks={"on_batch_end": interrupt})
    assert history.stopped == "by Ctrl-C after step 2"
    assert history.epochs == [0]
    assert history.steps == model.optimizer.iterations == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_fit_resumes_within_epoch_after_sigint(tmp_path) -> None:
    x, y = points()
    path = tmp_path / "run.safetensors"
    whole, model = classifier(), classifier()
    history = whole.fit(x, y, epochs=2)
    pb.random.seed(1)
    model = classifier()
    ends = []

    def interrupt(batch, logs):
        if model.optimizer.iterations == 2:
            os.kill(os.getpid(), signal.SIGINT)

    callback = {"on_batch_end": interrupt, "on_epoch_end": lambda epoch, logs: ends.append(epoch)}
    model.fit(x, y, epochs=2, callbacks=[callback, pb.callbacks.model_checkpoint(path, every=1)])
    assert not ends  # an interrupted epoch has no end
    assert model.fit(x, y, epochs=2, resume=path).history == history.history
    assert same(whole, model)


def test_fit_undoes_step_interrupted_by_keyboard() -> None:
    x, y = points()
    model = classifier(eager=True)
    model.fit(x, y)
    before, apply = model.get_weights(), model.optimizer.apply_gradients

    def broken(grads):
        apply(grads)
        raise KeyboardInterrupt

    model.optimizer.apply_gradients = broken
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))


def test_fit_callback_stops_training() -> None:
    model, (x, y) = classifier(), points()

    def stop(epoch, logs):
        model.stop_training = epoch == 1

    history = model.fit(x, y, epochs=5, callbacks={"onEpochEnd": stop})
    assert history.epochs == [0, 1]
    assert history.stopped


def test_fit_early_stopping_restores_best_weights() -> None:
    x, y = points()
    y = np.random.default_rng(0).permutation(y)  # random labels, so that it overfits
    model = classifier()
    stopping = pb.callbacks.early_stopping(patience=3, restore_best_weights=True)
    history = model.fit(x, y, epochs=50, validation_split=0.3, callbacks=[stopping])
    assert len(history.epochs) < 50
    assert model.evaluate(x[63:], y[63:])[0] == pytest.approx(min(history.history["val_loss"]), rel=1e-5)


def test_fit_learning_rate_schedule_in_compiled_steps() -> None:
    x, y = points()
    model = classifier(optimizer=pb.train.sgd(0.1))
    rates = []
    still = {"on_epoch_end": lambda epoch, logs: rates.append(model.get_weights()[0])}
    model.fit(
        x, y, epochs=3, callbacks=[pb.callbacks.learning_rate_schedule(lambda epoch: [0.1, 0.0, 0.1][epoch]), still]
    )
    assert np.array_equal(rates[0], rates[1])
    assert not np.array_equal(rates[1], rates[2])


class KilledError(Exception):
    pass


@pytest.mark.sampled(2)
@pytest.mark.parametrize("at", [4, 6, 7])  # of 6 steps an epoch: in the first one, at its end, in the second
@pytest.mark.parametrize(("eager", "noise"), [(False, None), (True, None), (False, 5)])
def test_fit_resumed_equals_uninterrupted(tmp_path, at: int, eager: bool, noise) -> None:
    x, y = points()
    path = tmp_path / "run.safetensors"

    def begun():
        model = classifier(dropout=0.3, noise=noise, eager=eager)
        stopping = pb.callbacks.early_stopping("loss", patience=50, restore_best_weights=True)
        return model, [stopping, pb.callbacks.model_checkpoint(path, every=1)]

    def fit(model, callbacks, **more):
        return model.fit(x, y, epochs=3, batch_size=16, validation_split=0.1, callbacks=callbacks, **more)

    model, callbacks = begun()
    whole = fit(model, callbacks)
    path.unlink()

    again, callbacks = begun()
    steps = []

    def kill(batch, logs):
        steps.append(batch)
        if len(steps) == at + 1:
            raise KilledError

    with pytest.raises(KilledError):
        fit(again, [{"on_batch_end": kill}, *callbacks])
    other, callbacks = begun()
    pb.random.seed(99)
    resumed = fit(other, callbacks, resume=path)
    assert same(model, other)
    assert resumed.history == whole.history
    assert resumed.steps == whole.steps


class Largest(pb.metrics.Metric):
    """A metric in Keras's style: its state is a variable."""

    def __init__(self, name="largest") -> None:
        super().__init__(name)
        self.value = self.add_weight((), name="value")

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        self.value.assign(np.maximum(self.value, np.max(y_pred)))

    def result(self):
        return self.value


def test_fit_resumed_within_epoch_keeps_state_of_metrics(tmp_path) -> None:
    x, y = points()
    path = tmp_path / "run.safetensors"

    def fit(kill=None, **more):
        pb.random.seed(2)
        model = pb.sequential([pb.layers.dense(3, input_shape=[2])])
        model.compile("sgd", "sparse_softmax_cross_entropy", metrics=[Largest()], eager=True)
        hooks = [{"on_batch_end": kill}] if kill else []
        saver = pb.callbacks.model_checkpoint(path, every=1)
        return model.fit(x, y, epochs=2, batch_size=16, shuffle=False, callbacks=[saver, *hooks], **more).history

    def kill(batch, logs):
        if batch == 4:
            raise KilledError

    whole = fit()
    path.unlink()
    with pytest.raises(KilledError):
        fit(kill)
    assert fit(resume=path) == whole


@pytest.mark.parametrize("shuffled", [False, True])
def test_fit_resumed_with_steps_per_epoch_continues_in_the_data(tmp_path, shuffled: bool) -> None:
    x, y = points()

    def fit(epochs, **more):
        model = classifier(eager=True)
        data = pb.data.Dataset.from_arrays((x, y))
        data = (data.shuffle(len(x), seed=3) if shuffled else data).batch(16)
        return model, model.fit(data, steps_per_epoch=4, epochs=epochs, **more).history

    whole, history = fit(4)
    path = tmp_path / "run.safetensors"
    fit(2, callbacks=pb.callbacks.model_checkpoint(path))
    resumed, found = fit(4, resume=path)
    assert found == history
    assert same(whole, resumed)


def test_fit_rejects_to_resume_from_other_files_and_iterables(tmp_path) -> None:
    x, y = points()
    path = tmp_path / "run.safetensors"
    model = classifier()
    model.fit(iter([(x, y)]), callbacks=pb.callbacks.model_checkpoint(path))
    with pytest.raises(DataError, match=r"an iterable of batches cannot be resumed; pb.data.Dataset can"):
        model.fit(iter([(x, y)]), epochs=2, resume=path)
    model.save_checkpoint(path)
    with pytest.raises(DataError, match=r"run.safetensors' was not written during a training"):
        model.fit(x, y, epochs=2, resume=path)


def test_fit_in_a_thread_equals_fit() -> None:
    x, y = points()
    histories = []

    def fit() -> None:
        pb.random.seed(1)
        histories.append(classifier(eager=True).fit(x, y, epochs=2, shuffle=False).history)

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    fit()
    assert histories[0] == histories[1]


def test_steps_per_epoch_of_whole_iterable_begins_anew() -> None:
    x, y = points()
    read = []

    class Source:
        def __iter__(self):
            for i in range(3):
                read.append(i)
                yield x, y

    classifier(eager=True).fit(Source(), steps_per_epoch=3, epochs=2)
    assert read == [0, 1, 2, 0, 1, 2]


def test_empty_datasets_and_weights_of_datasets_raise() -> None:
    x, y = points()
    model = classifier()
    with pytest.raises(DataError, match="there is nothing to evaluate: the dataset is empty"):
        model.evaluate(iter([]))
    with pytest.raises(DataError, match="there is nothing to predict: the dataset is empty"):
        model.predict(iter([]))
    data = pb.data.Dataset.from_arrays((x, y)).batch(16)
    with pytest.raises(ArgumentError, match="sample_weight and validation_split are for arrays"):
        model.fit(data, sample_weight=np.ones(len(x)))


def test_fit_resume_without_file_starts_anew(tmp_path) -> None:
    x, y = points()
    path = tmp_path / "run.safetensors"
    model = classifier()
    model.fit(x, y, epochs=2, callbacks=pb.callbacks.model_checkpoint(path), resume=path)
    other = classifier()
    assert other.fit(x, y, epochs=2, resume=path).epochs == [0, 1]  # nothing is left to do
    assert same(model, other)


# ---- files


def test_save_and_load_sequential_model(tmp_path) -> None:
    x, y = points()
    rate = pb.train.warm_up(pb.train.cosine_decay(0.1, steps=50), steps=5)
    model = classifier(optimizer=pb.train.adam(rate))
    model.fit(x, y, epochs=2)
    model.save(tmp_path / "model.safetensors")
    again = pb.load_model(tmp_path / "model.safetensors")
    assert same(model, again)
    assert again.evaluate(x, y) == model.evaluate(x, y)
    for one in (model, again):
        one.fit(x, y, epochs=2, shuffle=False)
    assert same(model, again)


def test_save_and_load_functional_model(tmp_path) -> None:
    u, v = pb.input([2]), pb.input([2])
    shared = layers.dense(4, activation="relu", name="shared")
    out = layers.dense(1)(layers.add()(shared(u), shared(v)))
    model = pb.model(inputs=[u, v], outputs=out)
    model.save(tmp_path / "model.safetensors")
    again = pb.load_model(tmp_path / "model.safetensors")
    assert list(again.named_variables()) == list(model.named_variables())
    x = np.ones((3, 2), np.float32)
    assert np.array_equal(again.predict((x, 2 * x)), model.predict((x, 2 * x)))


def test_save_and_load_custom_layer(tmp_path) -> None:
    @dataclass(eq=False)
    class Shift(layers.Layer):
        by: float = 1.0

        def call(self, x):
            return x + self.by

    model = pb.sequential([Shift(2.5, input_shape=[3])])
    model.save(tmp_path / "model.safetensors")
    assert pb.load_model(tmp_path / "model.safetensors").predict([[1.0, 2.0, 3.0]]).tolist() == [[3.5, 4.5, 5.5]]


def test_save_model_with_function_argument(tmp_path) -> None:
    model = pb.sequential([layers.dense(1, activation=lambda x: x * 2, input_shape=[1])])
    with pytest.raises(CheckpointError, match=r"dense_.*: activation is <function.*names of functions and classes"):
        model.save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())
    pb.train.save(tmp_path / "weights.safetensors", model)
    assert sorted(pb.train.load(tmp_path / "weights.safetensors")) == ["dense_1/bias", "dense_1/kernel"]


def test_load_checkpoint_of_other_model_raises(tmp_path) -> None:
    path = tmp_path / "model.safetensors"
    classifier().save(path)
    other = pb.sequential([layers.dense(16, input_shape=[2]), layers.dense(4), layers.dense(1)])
    before = other.get_weights()
    with pytest.raises(CheckpointError) as caught:
        other.load_checkpoint(path)
    assert "missing: dense_3/bias, dense_3/kernel" in str(caught.value)
    assert "different: dense_2/bias (shape (3,), expected (4,))" in str(caught.value)
    assert all(np.array_equal(a, b) for a, b in zip(before, other.get_weights(), strict=True))


def test_load_damaged_model_raises(tmp_path) -> None:
    path = tmp_path / "model.safetensors"
    model = classifier()
    model.save(path)
    path.write_bytes(path.read_bytes()[:-20])
    for read in (pb.load_model, model.load_checkpoint):
        with pytest.raises(CheckpointError, match="not a whole safetensors file"):
            read(path)
    pb.train.save(path, {"a": np.ones(3)})
    with pytest.raises(CheckpointError, match=r"was not written by model.save"):
        pb.load_model(path)


def test_compiled_fit_equals_eager_with_smaller_last_batch() -> None:
    x = np.sin(np.arange(44.0)).reshape(22, 2).astype(np.float32)
    losses = []
    for eager in (False, True):
        model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        model.compile(pb.train.adam(0.05), "mse", eager=eager)
        losses.append(model.fit(x, x[:, :1], batch_size=8, epochs=20, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert losses[0][-1] < losses[0][0]
