"""Sums over shards: the same numbers as in one process, with all derivatives, and what happens when workers fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.command import main
from pullback.scale.engines import folder
from pullback.scale.engines.pipe import open_pipe
from pullback.scale.engines.protocol import dump, set_environment
from pullback.scale.sums import add_range, plan_blocks

sys.path.insert(0, str(Path(__file__).parent))
import scale_functions as functions

rng = np.random.default_rng(0)
DATA = {"x": rng.normal(size=(60, 4)), "y": rng.normal(size=60)}
PARAMS = {"w": rng.normal(size=4), "b": 0.3}
SHARDS = pb.scale.Shards(DATA, parts=5)


@pytest.fixture(scope="module")
def serial() -> Iterator[pb.scale.Pool]:
    with pb.scale.Pool("serial") as pool:
        yield pool


@pytest.fixture(scope="module")
def processes() -> Iterator[pb.scale.Pool]:
    with pb.scale.Pool("processes", workers=2, start_timeout=600) as pool:
        yield pool


def local(params):
    return functions.loss(params, DATA)


def flatten(tree) -> np.ndarray:
    return np.concatenate([np.ravel(x) for x in tree.values()])


def test_pool_sum_value_and_gradient_equal_unsharded(serial: pb.scale.Pool) -> None:
    total = serial.sum(functions.loss, SHARDS)
    value, grads = pb.value_and_grad(total)(PARAMS)
    wanted, slopes = pb.value_and_grad(local)(PARAMS)
    np.testing.assert_allclose(value, wanted)
    np.testing.assert_allclose(flatten(grads), flatten(slopes))
    np.testing.assert_allclose(total(PARAMS), wanted)
    mean = serial.mean(functions.loss, SHARDS)
    np.testing.assert_allclose(pb.grad(mean)(PARAMS)["w"], slopes["w"] / 5)


def test_pool_sum_combines_with_local_terms(serial: pb.scale.Pool) -> None:
    total = serial.sum(functions.loss, SHARDS)

    def prior(p):
        return np.sum(p["w"] ** 2)

    ours = pb.grad(lambda p: 3.0 * total(p) + prior(p))(PARAMS)
    np.testing.assert_allclose(ours["w"], pb.grad(lambda p: 3.0 * local(p) + prior(p))(PARAMS)["w"])


def test_pool_sum_second_order_and_forward_mode(serial: pb.scale.Pool) -> None:
    total = serial.sum(functions.loss, SHARDS)

    def ours(w):
        return total({"w": w, "b": 0.3})

    def wanted(w):
        return local({"w": w, "b": 0.3})

    w, v = PARAMS["w"], np.ones(4)
    np.testing.assert_allclose(pb.hvp(ours, w, v), pb.hvp(wanted, w, v))
    np.testing.assert_allclose(pb.jvp(ours, [w], [v])[1], pb.jvp(wanted, [w], [v])[1])
    np.testing.assert_allclose(pb.vjp(ours, w)[1](2.0)[0], pb.vjp(wanted, w)[1](2.0)[0])
    np.testing.assert_allclose(
        pb.grad(lambda w: np.sum(pb.grad(ours)(w) ** 3))(w), pb.grad(lambda w: np.sum(pb.grad(wanted)(w) ** 3))(w)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "transform",
    [
        pb.vmap,
        lambda f: pb.vmap(pb.grad(f)),
        lambda f: pb.grad(lambda ws: np.sum(pb.vmap(f)(ws) ** 2)),
        lambda f: pb.vmap(lambda w: pb.jvp(f, [w], [np.ones(4)])[1]),
        lambda f: pb.vmap(pb.hessian(f)),
    ],
    ids=["vmap", "vmap of grad", "grad of vmap", "vmap of jvp", "vmap of hessian"],
)
@pytest.mark.parametrize("pool", ["serial", "processes"])
def test_pool_sum_under_vmap_and_hessian(pool: str, transform: Any, request: pytest.FixtureRequest) -> None:
    total = request.getfixturevalue(pool).sum(functions.loss, SHARDS)
    ws = np.arange(12.0).reshape(3, 4) / 10
    found = transform(lambda w: total({"w": w, "b": 0.3}))(ws)
    np.testing.assert_allclose(found, transform(lambda w: local({"w": w, "b": 0.3}))(ws))


def test_pool_concat_under_vmap_and_jacobian(serial: pb.scale.Pool) -> None:
    rows = serial.concat(lambda w, shard: shard @ w, pb.scale.Shards(np.arange(8.0).reshape(4, 2), parts=2))
    ws = np.arange(6.0).reshape(3, 2)
    wanted = lambda w: np.arange(8.0).reshape(4, 2) @ w
    np.testing.assert_allclose(pb.vmap(rows)(ws), pb.vmap(wanted)(ws))
    np.testing.assert_allclose(pb.vmap(pb.jacobian(rows))(ws), pb.vmap(pb.jacobian(wanted))(ws))


def test_pool_sum_with_variables_tapes_and_optimizers(serial: pb.scale.Pool) -> None:
    total = serial.sum(functions.loss, SHARDS)
    w = pb.variable(PARAMS["w"], name="scale_w")
    grads = pb.variable_grads(lambda: total({"w": w, "b": 0.3})).grads
    np.testing.assert_allclose(grads["scale_w"].numpy(), pb.grad(local)(PARAMS)["w"])
    with pb.GradientTape() as tape:
        y = total({"w": w, "b": 0.3})
    np.testing.assert_allclose(tape.gradient(y, w).numpy(), pb.grad(local)(PARAMS)["w"])
    before = float(total({"w": w, "b": 0.3}).numpy())
    optimizer = pb.train.sgd(1e-3)
    for _ in range(5):
        optimizer.minimize(lambda: total({"w": w, "b": 0.3}))
    assert float(total({"w": w, "b": 0.3}).numpy()) < before


def test_pool_sum_vjp_with_aux_tree_and_second_order_tape(serial: pb.scale.Pool) -> None:
    total = serial.sum(functions.loss, SHARDS)

    def ours(p):
        return total(p) * 2.0, {"kept": [p["b"], total(p)]}

    y, pull, aux = pb.vjp(ours, PARAMS, has_aux=True)
    np.testing.assert_allclose(y, 2 * local(PARAMS))
    np.testing.assert_allclose(aux["kept"][1], local(PARAMS))
    np.testing.assert_allclose(pull(3.0)[0]["w"], 6.0 * pb.grad(local)(PARAMS)["w"])
    w = pb.variable(PARAMS["w"], name="scale_tape_w")
    with pb.GradientTape() as outer:
        with pb.GradientTape() as inner:
            value = total({"w": w, "b": 0.3})
        slope = inner.gradient(value, w)
        norm = (slope * slope).sum()
    wanted = pb.grad(lambda w: np.sum(pb.grad(lambda w: local({"w": w, "b": 0.3}))(w) ** 2))(PARAMS["w"])
    np.testing.assert_allclose(outer.gradient(norm, w).numpy(), wanted)


def test_pool_concat_joins_rows_with_derivatives_of_any_order(serial: pb.scale.Pool, processes: pb.scale.Pool) -> None:
    x = rng.normal(size=(7, 3))
    shards = pb.scale.Shards(x, parts=3)
    w, v = rng.normal(size=3), rng.normal(size=3)

    def wanted(w):
        return np.tanh(x @ w)

    for pool in (serial, processes):
        rows = pool.concat(functions.rows, shards)
        np.testing.assert_allclose(rows(w), wanted(w))
        np.testing.assert_allclose(pb.vjp(rows, w)[1](np.arange(7.0))[0], pb.vjp(wanted, w)[1](np.arange(7.0))[0])
        np.testing.assert_allclose(pb.jvp(rows, [w], [v])[1], pb.jvp(wanted, [w], [v])[1])
        np.testing.assert_allclose(
            pb.hvp(lambda w, rows=rows: np.sum(rows(w) ** 3), w, v), pb.hvp(lambda w: np.sum(wanted(w) ** 3), w, v)
        )
    with pytest.raises(pb.errors.WorkerError, match="loss must return one array"):
        serial.concat(functions.loss, SHARDS)(PARAMS)


def test_pool_sum_of_array_results(serial: pb.scale.Pool) -> None:
    x = np.arange(12.0).reshape(6, 2)
    total = serial.sum(functions.vector, pb.scale.Shards(x, parts=3))
    np.testing.assert_allclose(total(np.array([1.0, 2.0])), x.sum(axis=0) * [1, 2])
    np.testing.assert_allclose(pb.grad(total)(np.ones(2), dy=np.array([1.0, 10.0])), x.sum(axis=0) * [1, 10])


def test_pool_vjp_result_is_not_shared_between_calls(serial: pb.scale.Pool) -> None:
    for f, dy in ((functions.fail, 1.0), (functions.vector, np.ones(2))):
        _, pull = pb.vjp(serial.sum(f, pb.scale.Shards(np.ones((4, 1)), parts=2)), np.ones(2))
        pull(dy)[0][:] = 0.0
        np.testing.assert_array_equal(pull(dy)[0], [4.0, 4.0])


def test_pool_sum_of_processes_equals_serial_bitwise(serial: pb.scale.Pool, processes: pb.scale.Pool) -> None:
    one, two = (pb.value_and_grad(pool.sum(functions.loss, SHARDS))(PARAMS) for pool in (serial, processes))
    assert np.asarray(one.value).tobytes() == np.asarray(two.value).tobytes()
    assert flatten(one.grad).tobytes() == flatten(two.grad).tobytes()


@pytest.mark.parametrize("engine", ["ray", "dask"])
def test_missing_scale_engine_error_names_package(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises(pb.errors.MissingPackageError, match=rf"pullback\[{engine}\]"):
        pb.scale.Pool(engine)


def test_killed_worker_is_replaced(processes: pb.scale.Pool) -> None:
    total = processes.sum(functions.loss, SHARDS)
    before = pb.grad(total)(PARAMS)
    for worker in range(2):
        os.kill(processes.engine.workers[worker].process.pid, signal.SIGKILL)
        again = pb.grad(total)(PARAMS)
        assert flatten(before).tobytes() == flatten(again).tobytes()


def test_worker_error_names_shard_and_has_traceback(processes: pb.scale.Pool) -> None:
    total = processes.sum(functions.fail, pb.scale.Shards(np.arange(4.0), parts=2))
    with pytest.raises(
        pb.errors.WorkerError, match=r"shard rows 2 of 2: ValueError: this shard is broken\n(.|\n)*in fail"
    ):
        total(1.0)


def test_pool_nan_error_names_shard_op_and_line(serial: pb.scale.Pool) -> None:
    total = serial.sum(functions.make_nan, pb.scale.Shards(np.array([2.0, 0.5]), parts=2))
    with pytest.raises(pb.errors.NanError, match=r"shard rows 2 of 2: (.|\n)*log at scale_functions.py:\d+"):
        pb.grad(total)(1.0)


@pytest.mark.filterwarnings("error")
def test_large_gradients_are_finite_without_a_warning(serial: pb.scale.Pool) -> None:
    total = serial.sum(functions.vector, pb.scale.Shards(np.full((2, 1), 1e200), parts=2))
    np.testing.assert_allclose(pb.grad(lambda w: np.sum(total(w)))(np.ones(1)), [2e200])


def test_worker_that_always_crashes_raises() -> None:
    with pb.scale.Pool("processes", workers=1, start_timeout=600) as pool:
        total = pool.sum(functions.crash, pb.scale.Shards(np.ones(2), parts=1))
        with pytest.raises(
            pb.errors.WorkerError, match=r"worker 1 died 4 times in a row in crash at shard rows 1 of 1(.|\n)*in crash"
        ):
            total(1.0)


def test_scale_rejects_captured_variable(serial: pb.scale.Pool) -> None:
    w = pb.variable(2.0, name="captured_w")
    total = serial.sum(lambda p, x: np.sum(p * x) * w, pb.scale.Shards(np.arange(4.0), parts=2))
    for _ in range(2):
        with pytest.raises(pb.errors.WorkerError, match="CapturedError: the function reads the variable captured_w"):
            pb.variable_grads(lambda: total(w))
    frozen = pb.variable(2.0, trainable=False, name="frozen_w")
    total = serial.sum(lambda p, x: np.sum(p * x) * frozen, pb.scale.Shards(np.arange(4.0), parts=2))
    assert pb.grad(total)(1.0) == 12.0


def test_pool_map_shows_progress_bar(processes: pb.scale.Pool, capsys: pytest.CaptureFixture[str]) -> None:
    processes.map(functions.double, range(3), verbose=2)
    assert "map double" in capsys.readouterr().err


def test_large_arrays_do_not_block_pipes(processes: pb.scale.Pool) -> None:
    # more shards than workers, and more bytes in both directions than a pipe holds
    total = processes.sum(functions.vector, pb.scale.Shards(np.ones((5, 1)), parts=5))
    w = np.arange(200_000.0)
    np.testing.assert_array_equal(total(w), 5 * w)


def test_pool_map_keeps_order_and_error_names_item(processes: pb.scale.Pool) -> None:
    assert processes.map(functions.double, range(7)) == [2 * i for i in range(7)]
    with pytest.raises(pb.errors.WorkerError, match="item 0: ZeroDivisionError"):
        processes.map(functions.divide, [1, 0, 2])
    assert processes.map(functions.double, [4]) == [8]


def test_shards_of_files_are_loaded_by_workers(tmp_path: Path, processes: pb.scale.Pool) -> None:
    paths = []
    for i in range(3):
        paths.append(tmp_path / f"part{i}.npy")
        np.save(paths[-1], np.full((4, 2), float(i)))
    shards = pb.scale.Shards(paths)
    assert isinstance(shards.load(0), np.memmap)
    np.testing.assert_allclose(processes.sum(functions.vector, shards)(np.ones(2)), [12.0, 12.0])
    dataset = pb.data.Dataset.from_arrays({"x": np.arange(7.0)}).map(lambda row: row["x"] * 2)
    np.testing.assert_array_equal(pb.scale.Shards(dataset, parts=3).load(1), [6.0, 8.0])
    (tmp_path / "part.csv").write_text("a,b\n1,2\n3,4\n")
    np.testing.assert_array_equal(pb.scale.Shards([tmp_path / "part.csv"]).load(0), [[1, 2], [3, 4]])


def test_shards_of_parquet_files_are_dicts_of_columns(tmp_path: Path, serial: pb.scale.Pool) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    paths = [tmp_path / f"part{i}.parquet" for i in range(2)]
    for i, path in enumerate(paths):
        parquet.write_table(pyarrow.table({"x": [1.0 + i, 2.0], "y": [0.5, 1.5]}), path)
    total = serial.sum(lambda w, shard: np.sum(w * shard["x"] * shard["y"]), pb.scale.Shards(paths))
    assert pb.value_and_grad(total)(2.0) == (15.0, 7.5)


def test_pool_removes_folder_of_killed_program() -> None:
    lines = [
        "import os, runpy, signal",
        f"folder = runpy.run_path({folder.__file__!r})['Folder']('test')",
        "print(folder.path, flush=True)",
        "os.kill(os.getpid(), signal.SIGKILL)",
    ]
    program = subprocess.run([sys.executable, "-I", "-S", "-c", "\n".join(lines)], stdout=subprocess.PIPE, check=False)
    path = Path(program.stdout.decode().strip())
    assert path.name.startswith("pb-test-")
    for _ in range(600):
        if not path.exists():
            break
        time.sleep(0.1)
    assert not path.exists()


class ThreadProcess:
    """A worker's process, as a thread of this one."""

    exitcode = None

    def __init__(self, target, args, daemon: bool) -> None:
        end, crash_file = args
        self.thread = Thread(target=self.run, args=(target, end.dup(), crash_file), daemon=daemon)
        self.start, self.is_alive, self.join = self.thread.start, self.thread.is_alive, self.thread.join

    def run(self, target, end, crash_file: str) -> None:
        with end:
            target(end, crash_file)


@pytest.fixture
def thread_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """Let workers be threads."""
    files: list = []
    monkeypatch.setattr("faulthandler.enable", files.append)
    made = type("MadeProcess", (ThreadProcess,), {})
    monkeypatch.setattr("multiprocessing.get_context", lambda kind: SimpleNamespace(Process=made))
    yield made
    for file in files:
        file.close()


@pytest.mark.usefixtures("thread_processes")
def test_pool_worker_body_gives_results_of_serial_pool(serial: pb.scale.Pool) -> None:
    wanted = pb.value_and_grad(serial.sum(functions.loss, SHARDS))(PARAMS)
    large = pb.scale.Shards(np.ones((2, 1)), parts=2)
    with pb.scale.Pool("processes", workers=2) as pool:
        found = pb.value_and_grad(pool.sum(functions.loss, SHARDS))(PARAMS)
        rows = pb.grad(lambda w: np.sum(pool.sum(functions.vector, large)(w)))(np.ones(100_000))
        assert pool.map(len, ["a", "bc"], verbose=0) == [1, 2]
        assert pool.engine.describe() == {"nodes": 1}
    assert flatten(found.grad).tobytes() == flatten(wanted.grad).tobytes()
    np.testing.assert_array_equal(rows, np.full(100_000, 2.0))


def test_worker_that_does_not_start_or_ends_at_once(thread_processes: type, monkeypatch: pytest.MonkeyPatch) -> None:
    def end_at_once(self, target, args, daemon: bool) -> None:
        ThreadProcess.__init__(self, lambda end, crash_file: None, args, daemon)

    monkeypatch.setattr(thread_processes, "__init__", end_at_once)
    with pytest.raises(pb.errors.WorkerError, match="the process of worker 1 ended while it started"):
        pb.scale.Pool("processes", workers=1)

    release, killed = Event(), []

    def wait(self, target, args, daemon: bool) -> None:
        ThreadProcess.__init__(self, lambda end, crash_file: release.wait(60), args, daemon)
        self.join = lambda timeout=None: self.thread.join(0 if timeout else None)
        self.kill = lambda: (killed.append(self), release.set())

    monkeypatch.setattr(thread_processes, "__init__", wait)
    with pytest.raises(pb.errors.WorkerError, match=r"worker 1 did not start within 0 s \(start_timeout=\)"):
        pb.scale.Pool("processes", workers=1, start_timeout=0)
    assert len(killed) == 1


def test_shards_are_iterated_and_shown() -> None:
    shards = pb.scale.Shards(np.arange(8.0), parts=4)
    np.testing.assert_array_equal(np.concatenate([*shards]), np.arange(8.0))
    assert repr(shards) == "Shards(4: rows 1 of 4, rows 2 of 4, rows 3 of 4, ...)"


def test_function_that_cannot_be_sent_names_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(pb.errors.WorkerError, match=r"cannot be sent to a process: .*lambda.*or install cloudpickle"):
        dump(lambda: 1)


def test_environment_of_workers_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_SET_BEFORE", "1")
    monkeypatch.delenv("PULLBACK_NOT_SET", raising=False)
    with set_environment({"PULLBACK_SET_BEFORE": "2", "PULLBACK_NOT_SET": "3"}):
        assert (os.environ["PULLBACK_SET_BEFORE"], os.environ["PULLBACK_NOT_SET"]) == ("2", "3")
    assert os.environ["PULLBACK_SET_BEFORE"] == "1"
    assert "PULLBACK_NOT_SET" not in os.environ


def test_pipe_sends_short_and_long_parts() -> None:
    here, there = open_pipe()
    messages = [[b""], [b"x" * 70_000], [bytes(range(256)) * 8] * 40, [b"1"] * 20_000]
    try:
        for parts in messages:
            sender = Thread(target=here.send, args=(parts,))
            sender.start()
            assert [bytes(part) for part in there.receive()] == parts
            sender.join()
    finally:
        here.close()
        with pytest.raises(EOFError):
            there.receive()
        there.close()


def test_pool_sum_rejects_several_results(serial: pb.scale.Pool) -> None:
    total = serial.sum(lambda w, x: (np.sum(w * x), np.sum(x)), pb.scale.Shards(np.arange(4.0), parts=2))
    with pytest.raises(pb.errors.WorkerError, match="must return one number or array, got 2"):
        pb.grad(total)(1.0)


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda: pb.scale.Pool("slurm"), "engine must be one of"),
        (lambda: pb.scale.Pool("processes", workers=0), "workers must be 1 or more"),
        (lambda: pb.scale.Pool("serial", tree="oak"), "tree must be 'driver' or 'workers'"),
        (lambda: pb.scale.Pool("serial", held=0), "held must be 1 or more"),
        (lambda: pb.scale.Pool("serial", address="auto"), "address= is for"),
        (lambda: pb.scale.Shards(pb.data.Dataset.from_generator(list)), "must know its length"),
        (lambda: pb.scale.Shards(np.ones(3), parts=4), "parts must be from 1 to 3"),
        (lambda: pb.scale.Shards({"x": np.ones(3), "y": np.ones(2)}), "one number of rows"),
        (lambda: pb.scale.Shards([]), "no shards"),
        (lambda: pb.scale.Shards(["a.npy"], load=3), "load must be a function of a path, got int"),
        (lambda: pb.scale.Shards(["a.npy"], parts=2), "parts= splits arrays; each file is a shard of its own"),
        (lambda: pb.scale.Shards(np.ones(3), load=np.load), "load= is for paths, but arrays were given"),
        (lambda: pb.scale.Pool("serial").map(3, [1]), r"pool.map\(f, items\): f must be a function, got int"),
        (lambda: pb.scale.Shards(["a.bin"]).load(0), "Give load="),
        (lambda: pb.scale.Pool("serial").sum(3, SHARDS), "f must be a function"),
        (lambda: pb.scale.Pool("serial").sum(functions.loss, [1]), r"must be pb\.scale\.Shards"),
    ],
)
def test_scale_bad_arguments(make, answer: str) -> None:
    with pytest.raises((pb.errors.ArgumentError, pb.errors.DataError), match=answer):
        make()


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
def test_order_of_sums_does_not_depend_on_workers(workers: int) -> None:
    join = lambda a, b: f"({a}{b})"
    for count in range(1, 20):
        blocks = plan_blocks(count, workers)
        assert [i for block in blocks for i in range(*block)] == list(range(count))
        sums = [add_range(lambda i: f"{i} ", *block, join) for block in blocks]
        assert add_range(sums.__getitem__, 0, len(sums), join) == add_range(lambda i: f"{i} ", 0, count, join)


def test_scale_command_checks_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "check", "--engine", "serial"]) == 0
    assert "same bits as one process: yes" in capsys.readouterr().out
    assert main(["scale", "check", "--workers", "0"]) == 1
    assert capsys.readouterr().out.startswith("failed: Pool: workers must be")


def test_call_of_closed_pool_raises() -> None:
    with pb.scale.Pool("serial") as pool:
        total = pool.sum(functions.loss, SHARDS)
    with pytest.raises(pb.errors.WorkerError, match="the pool is closed"):
        total(PARAMS)
