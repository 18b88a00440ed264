"""Callbacks, called as fit calls them: early stopping, checkpoints, CSV logs, learning rates, and resuming."""

from __future__ import annotations

import csv
import json
import struct

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, DataError
from pullback.train.loop.callbacks import CallbackList
from pullback.train.loop.tensorboard import _checksum


class FakeModel:
    """The part of a model that callbacks use."""

    def __init__(self, rate=0.1):
        self.stop_training = False
        self.optimizer = pb.train.sgd(rate)
        self.weight = np.zeros(1)
        self.saved = []

    def get_weights(self):
        return [self.weight.copy()]

    def set_weights(self, weights):
        self.weight = weights[0].copy()

    def save_checkpoint(self, path):
        self.saved.append(path)


def run(callbacks, values, name="val_loss", model=None, start=0, state=None):
    """Run the epochs of a fit whose monitored number has these values."""
    model = model or FakeModel()
    listed = CallbackList(callbacks, model)
    if state is not None:
        listed.restore(state)
    listed.on_train_begin({})
    done = start
    for epoch, value in enumerate(values[start:], start):
        listed.on_epoch_begin(epoch, {})
        for batch in range(2):
            listed.on_batch_begin(batch, {})
            model.weight = model.weight + 1
            listed.on_batch_end(batch, {"loss": float(value)})
        listed.on_epoch_end(epoch, {"loss": 1.0, name: float(value)})
        done = epoch + 1
        if model.stop_training:
            break
    after = listed.state()
    listed.on_train_end({})
    return model, listed, done, after


# ---- early stopping


@pytest.mark.parametrize(
    ("options", "values", "epochs", "stops"),
    [
        ({}, [3, 2, 1, 1, 0], 4, True),  # the same is not better
        ({}, [3, 2, 1], 3, False),
        ({"patience": 2}, [3, 4, 2, 3, 3, 0], 5, True),
        ({"patience": 2}, [3, 4, 2, 3, 1, 2], 6, False),
        ({"min_delta": 0.5}, [3, 2, 1.6, 0], 3, True),
        ({"min_delta": -0.5}, [3, 2, 1.6, 0], 3, True),
        ({"mode": "max"}, [1, 2, 3, 2, 5], 4, True),
        ({"baseline": 1.5, "patience": 3}, [3, 2.5, 2, 1.9], 3, True),
        ({"baseline": 2.2, "patience": 3}, [3, 2.5, 2, 1.9, 3, 3, 3, 3], 7, True),
        ({"patience": 2}, [np.nan, 2, np.nan, 1, np.nan, np.nan, 0], 6, True),
        ({"patience": 1}, [np.nan, np.nan, 0], 2, True),
    ],
)
def test_early_stopping_by_patience(options, values, epochs, stops):
    model, listed, done, _ = run(pb.callbacks.early_stopping(**options), values)
    assert (done, model.stop_training, listed.stopped is not None) == (epochs, stops, stops)


@pytest.mark.parametrize("name", ["acc", "val_accuracy", "val_top_k_categorical_accuracy", "precision", "val_recall"])
def test_monitor_mode_auto_follows_metric_name(name):
    assert run(pb.callbacks.early_stopping(name), [0.5, 0.6, 0.7, 0.6, 0.9], name)[2] == 4
    assert run(pb.callbacks.early_stopping(name, mode="min"), [0.5, 0.6, 0.7], name)[2] == 2


def test_early_stopping_reason_and_best_weights():
    stopping = pb.callbacks.early_stopping(patience=1, restore_best_weights=True)
    model, listed, _, _ = run(stopping, [3, 1.5, 2])
    assert listed.stopped == "early_stopping: val_loss was best, 1.5, after epoch 2"
    assert model.weight == [4.0]  # two batches in each of two epochs
    assert run(pb.callbacks.early_stopping(patience=1), [3, 1.5, 2])[0].weight == [6.0]
    _, listed, done, state = run(stopping, [9, 8, 7])  # the next fit starts from the beginning
    assert (done, listed.stopped) == (3, None)
    assert run(stopping, [0, 9, 8], start=1, state=state)[2] == 2  # 9 and 8 are not better than 7
    assert run(stopping, [9, 8])[2] == 2
    assert stopping.best == 8


@pytest.mark.parametrize("cut", range(1, 6))
@pytest.mark.parametrize("late", [False, True])
def test_early_stopping_state_resumes(cut, late, tmp_path):
    values = [3, 2, 4, 1, 2, 3, 0]

    def make():
        return [pb.callbacks.early_stopping(patience=2, restore_best_weights=True)]

    whole = run(make(), values)
    model, _, _, state = run(make(), values[:cut])
    model.weight = np.array([2.0 * cut])  # as a checkpoint has it, before the best is restored
    pb.train.save(tmp_path / "state", state)
    state = pb.train.load(tmp_path / "state")
    if late:  # restored by a hook of the beginning
        callbacks = make()
        listed = CallbackList(callbacks, None)
        again = run(
            [{"on_train_begin": lambda logs: listed.restore(state)}, *callbacks], values, start=cut, model=model
        )
    else:
        again = run(make(), values, start=cut, state=state, model=model)
    assert again[2] == whole[2] == 6
    assert again[0].weight == whole[0].weight == [8.0]


def test_monitor_unknown_name_raises():
    with pytest.raises(DataError) as caught:
        run(pb.callbacks.early_stopping("val_acc"), [1.0], "accuracy")
    assert str(caught.value) == (
        "callbacks.early_stopping: there is no 'val_acc' to monitor; there are loss, accuracy. There is no validation: "
        "give fit validation_data or validation_split."
    )
    with pytest.raises(DataError, match=r"model_checkpoint: there is no 'acc' to monitor; there are loss, val_loss\.$"):
        run(pb.callbacks.model_checkpoint("a", "acc", save_best_only=True), [1.0])


# ---- checkpoints


def test_model_checkpoint_every_epoch_or_best_only():
    assert run(pb.callbacks.model_checkpoint("{epoch}-{val_loss:.2f}"), [3, 1, 2])[0].saved == [
        "1-3.00",
        "2-1.00",
        "3-2.00",
    ]
    best = pb.callbacks.model_checkpoint("{epoch:02d}", save_best_only=True)
    assert run(best, [3, 1, 2, 1, 0.5])[0].saved == ["01", "02", "05"]
    risen = pb.callbacks.model_checkpoint("{epoch}", "val_acc", save_best_only=True)
    assert run(risen, [0.3, 0.1, 0.5], "val_acc")[0].saved == ["1", "3"]


def test_monitor_waits_for_epochs_with_validation(tmp_path) -> None:
    x, y = np.ones((4, 2), "f4"), np.ones((4, 1), "f4")
    model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
    model.compile(pb.train.sgd(0.1), "mse")
    saver = pb.callbacks.model_checkpoint(f"{tmp_path}/{{epoch}}.keras", save_best_only=True)
    slower = pb.callbacks.reduce_lr_on_plateau(patience=1, factor=0.5, min_delta=100.0)
    model.fit(x, y, verbose=0, epochs=6, validation_data=(x, y), validation_freq=2, callbacks=[saver, slower])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.keras", "4.keras", "6.keras"]
    np.testing.assert_allclose(model.optimizer.learning_rate, 0.025)  # after epochs 4 and 6


def test_model_checkpoint_of_weights_alone_without_ending(tmp_path) -> None:
    x, y = np.ones((4, 2), "f4"), np.ones((4, 1), "f4")
    model = pb.sequential([pb.layers.dense(1, name="d", input_shape=[2])])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0, callbacks=[pb.callbacks.model_checkpoint(tmp_path / "w", save_weights_only=True)])
    found = pb.train.load(tmp_path / "w")["weights"]
    np.testing.assert_array_equal(found["d/kernel"], model.get_weights()[0])


@pytest.mark.parametrize("file", ["model.keras", "model.weights.h5"])
def test_model_checkpoint_writes_the_format_of_the_path(tmp_path, file) -> None:
    x, y, alone = np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), file.endswith(".weights.h5")
    model, other = (pb.sequential([pb.layers.dense(1, input_shape=[2])]) for _ in range(2))
    model.compile("sgd", "mse")
    saver = pb.callbacks.model_checkpoint(tmp_path / file, save_weights_only=alone)
    model.fit(x, y, verbose=0, callbacks=[saver])
    if alone:
        other.load_weights(tmp_path / file)
    else:
        other = pb.load_layers_model(tmp_path / file)
    np.testing.assert_array_equal(other.predict(x), model.predict(x))


def test_model_checkpoint_every_n_steps_resumes_count():
    def make():
        return pb.callbacks.model_checkpoint("{epoch}-{loss:g}", every=3)

    assert run(make(), [1, 2, 3, 4, 5])[0].saved == ["2-2", "3-3", "5-5"]
    model, _, _, state = run(make(), [1, 2])
    assert run(make(), [1, 2, 3, 4, 5], start=2, state=state, model=model)[0].saved == ["2-2", "3-3", "5-5"]


def test_model_checkpoint_state_keeps_best():
    def make():
        return pb.callbacks.model_checkpoint("{epoch}", save_best_only=True)

    model, _, _, state = run(make(), [3, 1])
    assert run(make(), [3, 1, 2, 0], start=2, state=state, model=model)[0].saved == ["1", "2", "4"]


def test_model_checkpoint_runs_after_other_callbacks():
    seen = []
    stopping = pb.callbacks.early_stopping(patience=5)
    model = FakeModel()
    model.save_checkpoint = lambda path: seen.append(stopping.state()["wait"])
    run([pb.callbacks.model_checkpoint("a"), stopping], [3, 1, 2, 2], model=model)
    assert seen == [0, 0, 1, 2]


def test_callback_path_errors():
    with pytest.raises(
        DataError, match=r"'\{accuracy\}' cannot be filled in: 'accuracy'; there are epoch, loss, val_loss"
    ):
        run(pb.callbacks.model_checkpoint("{accuracy}"), [1.0])
    for callback in (pb.callbacks.model_checkpoint("no/folder/a"), pb.callbacks.csv_logger("no/folder/a")):
        with pytest.raises(FileNotFoundError, match="there is no folder 'no/folder'"):
            run(callback, [])


def test_batch_hooks_only_for_checkpoints_by_step():
    assert not CallbackList([pb.callbacks.model_checkpoint("a"), pb.callbacks.early_stopping()], None).has_batch_hooks
    assert CallbackList(pb.callbacks.model_checkpoint("a", every=2), None).has_batch_hooks
    assert CallbackList({"onBatchEnd": print}, None).has_batch_hooks


# ---- CSV


def rows(path, separator=","):
    with open(path, newline="") as file:
        return list(csv.reader(file, delimiter=separator))


def test_csv_logger_flushes_after_each_epoch(tmp_path):
    path, seen = tmp_path / "log.csv", []
    look = pb.callbacks.lambda_callback(on_epoch_end=lambda epoch, logs: seen.append(len(rows(path, ";"))))
    run([pb.callbacks.csv_logger(path, separator=";"), look], [0.25, 1 / 3])
    assert seen == [2, 3]
    assert rows(path, ";") == [["epoch", "loss", "val_loss"], ["0", "1.0", "0.25"], ["1", "1.0", repr(1 / 3)]]


@pytest.mark.parametrize(("append", "epochs"), [(False, ["0"]), (True, ["0", "1", "0"])])
def test_csv_logger_overwrites_or_appends(append, epochs, tmp_path):
    path = tmp_path / "log.csv"
    run(pb.callbacks.csv_logger(path), [1, 2])
    run(pb.callbacks.csv_logger(path, append=append), [3])
    assert [row[0] for row in rows(path)] == ["epoch", *epochs]


def test_csv_logger_of_resumed_fit_equals_uninterrupted(tmp_path):
    path, whole = tmp_path / "log.csv", tmp_path / "whole.csv"
    run(pb.callbacks.csv_logger(whole), [1, 2, 3, 4])
    state = run(pb.callbacks.csv_logger(path), [1, 2])[3]  # the checkpoint
    run(pb.callbacks.csv_logger(path), [1, 2, 9])  # continued until it was killed
    with open(path, "a") as file:
        file.write("3,1.0")  # in the middle of a row
    run(pb.callbacks.csv_logger(path), [1, 2, 3, 4], start=2, state=state)
    assert path.read_text() == whole.read_text()
    path.unlink()
    run(pb.callbacks.csv_logger(path), [1, 2, 3], start=2, state=state)
    assert [row[0] for row in rows(path)] == ["epoch", "2"]
    assert [file.name for file in tmp_path.iterdir() if file.name.endswith("unfinished")] == []


def test_csv_logger_drops_truncated_row(tmp_path):
    path = tmp_path / "log.csv"
    run(pb.callbacks.csv_logger(path), [1, 2])
    path.write_text(path.read_text()[:-2])  # killed while it wrote 2.0
    run(pb.callbacks.csv_logger(path, append=True), [3])
    assert rows(path)[1:] == [["0", "1.0", "1.0"], ["0", "1.0", "3.0"]]


def test_csv_logger_with_other_columns_raises(tmp_path):
    path = tmp_path / "log.csv"
    run(pb.callbacks.csv_logger(path), [1], "val_loss")
    with pytest.raises(
        DataError, match=r"'log.csv' has the columns epoch, loss, val_loss, but there are epoch, loss, acc"
    ):
        run(pb.callbacks.csv_logger(path, append=True), [1], "acc")
    logger = pb.callbacks.csv_logger(path)
    logger.on_epoch_end(0, {"loss": 1.0, "acc": 1.0})
    with pytest.raises(DataError, match="there is no 'acc' in this epoch's logs"):
        logger.on_epoch_end(1, {"loss": 1.0})
    logger.on_train_end({})


# ---- learning rates


def rates(callback, values, **more):
    seen = []
    look = {"on_epoch_end": lambda epoch, logs: seen.append(round(model.optimizer.learning_rate, 6))}
    model = more.pop("model", None) or FakeModel()
    return seen, run([callback, look], values, model=model, **more)


def test_learning_rate_schedule_callback():
    assert rates(pb.callbacks.learning_rate_schedule(lambda epoch: 1 / (epoch + 1)), [1] * 4)[0] == [
        1,
        0.5,
        0.333333,
        0.25,
    ]


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"patience": 1}, [2, 1, 1, 1], [0.1, 0.1, 0.05, 0.025]),
        ({"patience": 2}, [2, 3, 3, 1, 1, 1], [0.1, 0.1, 0.05, 0.05, 0.05, 0.025]),
        ({"patience": 1, "cooldown": 2}, [2, 2, 2, 2, 2], [0.1, 0.05, 0.05, 0.025, 0.025]),
        ({"patience": 1, "min_lr": 0.04}, [2, 2, 2, 2], [0.1, 0.05, 0.04, 0.04]),
        ({"patience": 1, "min_delta": 0.5}, [2, 1.6, 1.6], [0.1, 0.05, 0.025]),
        ({"patience": 1, "mode": "max"}, [2, 3, 1], [0.1, 0.1, 0.05]),
    ],
)
def test_reduce_lr_on_plateau(options, values, expected):
    assert rates(pb.callbacks.reduce_lr_on_plateau(factor=0.5, **options), values)[0] == expected


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_reduce_lr_on_plateau_state_resumes(cut):
    values = [2, 2, 2, 2, 1, 1, 1]

    def make():
        return pb.callbacks.reduce_lr_on_plateau(factor=0.5, patience=2, cooldown=1)

    whole = rates(make(), values)[0]
    first, (model, _, _, state) = rates(make(), values[:cut])
    assert first + rates(make(), values, start=cut, state=state, model=model)[0] == whole


# ---- custom callbacks and errors


def test_callback_hooks_order_and_arguments():
    called = []

    class Own(pb.callbacks.Callback):
        def on_train_begin(self, logs):
            called.append(("train", logs))

        def on_epoch_end(self, epoch, logs):
            called.append((epoch, logs["loss"]))
            self.model.stop_training = epoch == 1

    functions = {"onEpochBegin": lambda epoch, logs: called.append(f"begin {epoch}")}
    more = pb.callbacks.custom_callback(
        {"onBatchEnd": lambda batch, logs: called.append(batch)}, on_train_end=called.append
    )
    assert run([Own(), functions, more], [1, 1, 1])[2] == 2
    assert called == [("train", {}), "begin 0", 0, 1, (0, 1.0), "begin 1", 0, 1, (1, 1.0), {}]


def test_callback_states_are_matched_by_kind():
    def make(patience):
        return pb.callbacks.early_stopping(patience=patience)

    state = run([make(5), make(6), {"on_epoch_end": print}], [3, 4, 4])[3]
    assert {name: kept["wait"] for name, kept in state.items()} == {"early_stopping_1": 2, "early_stopping_2": 2}
    listed = CallbackList([pb.callbacks.reduce_lr_on_plateau(), make(7)], FakeModel())
    listed.restore(state)
    assert [callback.wait for callback in listed.callbacks] == [0, 2]
    with pytest.raises(DataError, match=r"early_stopping.restore: expected a state of best, wait, .* got 'rows'"):
        make(1).restore({"rows": 3})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CallbackList([3], None), "callbacks: expected one of pb.callbacks, or a dict of functions as in"),
        (
            lambda: CallbackList([pb.callbacks.EarlyStopping], None),
            "got the class EarlyStopping; call it: EarlyStopping",
        ),
        (
            lambda: CallbackList({"on_epoch": print}, None),
            "there is no hook 'on_epoch'; there are on_train_begin, on_e",
        ),
        (lambda: CallbackList({"onEpochEnd": 3}, None), "onEpochEnd must be a function, got int"),
        (lambda: pb.callbacks.early_stopping(patience=-1), "early_stopping: patience must be an integer of 0 or more"),
        (lambda: pb.callbacks.early_stopping(mode="up"), "early_stopping: mode must be auto, min or max, got 'up'"),
        (lambda: pb.callbacks.model_checkpoint("a", every=0), "model_checkpoint: every must be an integer of 1"),
        (
            lambda: pb.callbacks.model_checkpoint("a", every=2, save_best_only=True),
            "save_best_only=True exclude each other",
        ),
        (lambda: pb.callbacks.learning_rate_schedule(0.1), "expected a function of the number of the epoch, got float"),
        (lambda: pb.callbacks.reduce_lr_on_plateau(factor=1.0), "factor must be less than 1"),
    ],
)
def test_callback_argument_errors(make, message):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert message in str(caught.value)


def small_model(**compile_arguments):
    model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[1])])
    model.compile("sgd", "mse", eager=True, **compile_arguments)
    return model, np.ones((4, 1), np.float32), np.zeros((4, 1), np.float32)


def test_tensorboard_event_file_has_checked_records(tmp_path):
    model, x, y = small_model()
    model.fit(x, y, epochs=2, validation_data=(x, y), callbacks=pb.callbacks.tensorboard(tmp_path, update_freq=1))
    found = {}
    for path in tmp_path.rglob("events.*"):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            assert _checksum(data[at : at + 8]) == data[at + 8 : at + 12]
            event = data[at + 12 : at + 12 + size]
            assert _checksum(event) == data[at + 12 + size : at + 16 + size]
            found.setdefault(path.parent.name, []).append(event)
            at += 16 + size
    assert _checksum(b"123456789") == struct.pack("<I", ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % 2**32)
    assert sum(b"epoch_loss" in event for event in found["train"]) == 2
    assert sum(b"batch_loss" in event for event in found["train"]) == 2
    assert sum(b"epoch_loss" in event for event in found["validation"]) == 2


def test_json_logger_and_verbose_callbacks(tmp_path, capfd):
    model, x, y = small_model()
    callbacks = [
        pb.callbacks.json_logger(tmp_path / "log.jsonl"),
        pb.callbacks.learning_rate_scheduler(lambda epoch, rate: rate / 2, verbose=1),
        pb.callbacks.early_stopping("loss", mode="max", start_from_epoch=1, verbose=1),
    ]
    history = model.fit(x, y, epochs=9, callbacks=callbacks)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["loss"] for row in rows] == history.history["loss"]
    assert len(rows) == 3
    assert "Epoch 3: early stopping" in capfd.readouterr().err
    assert model.optimizer.learning_rate == pytest.approx(0.01 / 8)


def test_terminate_on_nan_stops_with_finite_weights():
    model, x, y = small_model()
    model.optimizer = pb.train.sgd(1e30)
    history = model.fit(x, y, epochs=9, callbacks=pb.callbacks.terminate_on_nan())
    assert "not finite" in history.stopped
    assert np.isfinite(model.get_weights()[0]).all()


def test_backup_and_restore_continues_an_interrupted_training(tmp_path):
    def stop(epoch, logs):
        if epoch == 1:
            raise RuntimeError("power cut")

    whole, x, y = small_model()
    whole.fit(x, y, epochs=4)
    model, _, _ = small_model()
    with pytest.raises(RuntimeError):
        model.fit(x, y, epochs=4, callbacks=[pb.callbacks.backup_and_restore(tmp_path), {"on_epoch_begin": stop}])
    again, _, _ = small_model()
    history = again.fit(x, y, epochs=4, callbacks=pb.callbacks.backup_and_restore(tmp_path))
    assert history.epochs == [0, 1, 2, 3]
    np.testing.assert_array_equal(again.get_weights()[0], whole.get_weights()[0])
    assert not any(tmp_path.iterdir())


def test_keras_names_of_batch_hooks():
    calls = []

    class Own(pb.callbacks.Callback):
        def on_train_batch_end(self, batch, logs):
            calls.append((batch, self.params["epochs"]))

    model, x, y = small_model()
    model.fit(x, y, batch_size=2, callbacks=[Own(), {"on_train_batch_begin": lambda batch, logs: calls.append(batch)}])
    assert calls == [0, (0, 1), 1, (1, 1)]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: pb.callbacks.tensorboard("logs", update_freq=0),
            "update_freq must be 'epoch', 'batch' or a number of",
        ),
        (
            lambda: pb.callbacks.model_checkpoint("x", save_freq="batch"),
            "save_freq must be 'epoch' or a number, got 'ba",
        ),
        (lambda: pb.callbacks.backup_and_restore("x", save_freq=0), "every must be an integer of 1 or more, got 0"),
    ],
)
def test_callbacks_reject_invalid_frequencies(make, said):
    with pytest.raises(ArgumentError, match=said):
        make()
