"""Real clusters: Ray and Dask give the bits of one process, also when workers, nodes or the program are killed."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from exhaustive import ALL

import pullback as pb

sys.path.insert(0, str(Path(__file__).parent))
import scale_functions as functions

PACKAGES = {"processes": "multiprocessing", "ray": "ray", "dask": "distributed"}
TIMEOUT = 300.0  # of a start: the machine may be busy
rng = np.random.default_rng(0)
DATA = {"x": rng.normal(size=(60, 4)), "y": rng.normal(size=60)}
PARAMS = {"w": rng.normal(size=4), "b": 0.3}
SHARDS = pb.scale.Shards(DATA, parts=5)
long = pytest.mark.skipif(not ALL, reason="minutes: script/test --all")


def get_bits(total) -> bytes:
    value, grads = pb.value_and_grad(total)(PARAMS)
    return b"".join(np.asarray(x).tobytes() for x in (value, *grads.values()))


def make_model():
    pb.random.seed(3)
    model = pb.sequential([pb.layers.dense(4, activation="tanh", input_shape=[4]), pb.layers.dense(1)])
    model.compile(pb.train.adam(0.01), "mse", metrics=["mae"], run_eagerly=True)
    return model


def fit(pool: pb.scale.Pool, epochs: int = 2, **options) -> bytes:
    model = make_model()
    shards = pb.scale.Shards((DATA["x"], DATA["y"][:, None]), parts=5)
    history = model.fit(shards, pool=pool, epochs=epochs, batch_size=20, verbose=0, **options).history
    return b"".join(v.numpy().tobytes() for v in model.variables) + repr(history).encode()


@pytest.fixture(scope="module")
def wanted() -> tuple[bytes, bytes]:
    with pb.scale.Pool("serial") as pool:
        return get_bits(pool.sum(functions.loss, SHARDS)), fit(pool)


@pytest.mark.parametrize("engine", [pytest.param("ray", marks=long), "dask"])  # 15 and 8 s of CPU
def test_cluster_results_equal_single_process_bitwise(engine: str, wanted: tuple[bytes, bytes]) -> None:
    pytest.importorskip(PACKAGES[engine])
    with pb.scale.Pool(engine, workers=2, start_timeout=TIMEOUT) as pool:
        total = pool.sum(functions.loss, SHARDS)
        assert get_bits(total) == wanted[0]
        assert fit(pool) == wanted[1]
        assert pool.engine.describe()["addresses"] == "127.0.0.1"
        pids = set(pool.map(functions.find_pid, range(8)))
        assert os.getpid() not in pids
        broken = pool.sum(functions.fail, pb.scale.Shards(np.arange(4.0), parts=2))
        with pytest.raises(pb.errors.WorkerError, match="shard rows 2 of 2: ValueError: this shard is broken"):
            broken(1.0)
        os.kill(pids.pop(), signal.SIGKILL)
        pool.tree = "workers"
        assert get_bits(total) == wanted[0]
        w = np.arange(50_000.0)  # more than goes with a call
        doubled = pool.sum(functions.vector, pb.scale.Shards(np.ones((4, 1)), parts=4))
        np.testing.assert_array_equal(pb.grad(doubled)(w, dy=np.ones_like(w)), np.full_like(w, 4.0))
        if engine == "ray":
            with pytest.raises(pb.errors.WorkerError, match=r"within 1 s \(start_timeout=\): the cluster has 2 CPUs"):
                pb.scale.Pool("ray", workers=3, start_timeout=1.0)
            assert get_bits(total) == wanted[0]
            with pytest.raises(pb.errors.ArgumentError, match=r"connected to the Ray at 127\.0\.0\.1:\d+"):
                pb.scale.Pool("ray", workers=1, address="127.0.0.1:1")


# ---- minutes


def find_workers(engine: str) -> list[int]:
    """Return the processes of workers that descend from this one."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(re.sub(r".*\) \S+ ", "", (folder / "stat").read_text()).split()[0])
            names[int(folder.name)] = (folder / "cmdline").read_text()
        except (OSError, ValueError):
            continue

    def is_mine(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and parents[pid] > 1 and is_mine(parents[pid]))

    mark = "ray::Worker" if engine == "ray" else "spawn_main"
    found = [pid for pid, name in names.items() if mark in name and is_mine(pid)]
    # Dask does not replace a worker that dies while it starts
    return [pid for pid in found if engine != "dask" or time.time() - Path(f"/proc/{pid}").stat().st_ctime > 15]


@long
@pytest.mark.parametrize("engine", ["processes", "ray", "dask"])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_cluster_results_do_not_depend_on_number_of_workers(engine: str, workers: int) -> None:
    pytest.importorskip(PACKAGES[engine])
    with pb.scale.Pool("serial") as pool:
        wanted = get_bits(pool.sum(functions.loss, SHARDS)), fit(pool, epochs=10)  # 30 steps
    with pb.scale.Pool(engine, workers=workers, start_timeout=TIMEOUT) as pool:
        assert (get_bits(pool.sum(functions.loss, SHARDS)), fit(pool, epochs=10)) == wanted


class Killer(pb.callbacks.Callback):
    """Kills a worker at a random moment in or after each of ten steps, and measures the steps."""

    def __init__(self, engine: str) -> None:
        self.engine, self.random, self.killed = engine, random.Random(0), 0
        self.timer: threading.Timer | None = None
        self.steps, self.slowest, self.began = 0, 0.0, 0.0
        self.chosen = set(self.random.sample(range(1, 30), 10))

    def on_batch_begin(self, batch, logs):
        self.steps, self.began = self.steps + 1, time.perf_counter()
        if self.steps - 1 in self.chosen:
            self.timer = threading.Timer(self.random.uniform(0.0, 0.02), self.kill)
            self.timer.start()

    def on_batch_end(self, batch, logs):
        self.slowest = max(self.slowest, time.perf_counter() - self.began)
        if self.timer is not None:
            self.timer.join()  # a quick fit would end before all are killed
            self.timer = None

    def kill(self):
        while not (found := find_workers(self.engine)):
            time.sleep(0.01)  # the one that was killed before is being replaced
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.random.choice(found), signal.SIGKILL)
        self.killed += 1


@long
@pytest.mark.parametrize("engine", ["processes", "ray", "dask"])
@pytest.mark.parametrize("workers", [2, 4])
def test_ten_killed_workers_do_not_change_results(
    engine: str, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(PACKAGES[engine])
    with pb.scale.Pool("serial") as pool:
        wanted = fit(pool, epochs=10)
    killer = Killer(engine)
    with pb.scale.Pool(engine, workers=workers, start_timeout=TIMEOUT) as pool:
        assert fit(pool, epochs=10, callbacks=[killer]) == wanted
    assert killer.steps == 30
    assert killer.killed == 10
    with capsys.disabled():
        print(f"\n{engine}, {workers} workers: the slowest of 30 steps took {killer.slowest:.2f} s")


@pytest.fixture
def ray_nodes() -> Iterator[object]:
    """A cluster of three nodes on this machine, each with one CPU for workers."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(3):
            cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        cluster.shutdown()


@long
@pytest.mark.parametrize("tree", ["driver", "workers"])
def test_ray_node_killed_does_not_change_results(ray_nodes, wanted: tuple[bytes, bytes], tree: str) -> None:
    with pb.scale.Pool("ray", workers=1, start_timeout=TIMEOUT) as pool:
        assert pool.map(abs, [-1]) == [1]  # on a cluster of its own, whose token the other one does not have
    with pb.scale.Pool("ray", workers=2, address=ray_nodes.address, start_timeout=TIMEOUT, tree=tree) as pool:
        total = pool.sum(functions.loss, SHARDS)
        assert get_bits(total) == wanted[0]
        pids = set(pool.map(functions.find_pid, range(8)))
        parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids}
        assert len(parents) == 2  # raylets
        os.kill(parents.pop(), signal.SIGKILL)
        assert get_bits(total) == wanted[0]
        assert fit(pool) == wanted[1]
        assert set(pool.map(functions.find_pid, range(8))) != pids


DRIVER = """
import os, signal, sys
sys.path.insert(0, {folder!r})
import pullback as pb, test_engines

class StopAt(pb.callbacks.Callback):
    steps = 0
    def on_batch_end(self, batch, logs):
        self.steps += 1
        if {dies} and self.steps == 12:
            self.model.save_checkpoint({path!r})
        if {dies} and self.steps == 13:
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    with pb.scale.Pool({engine!r}, workers=2, start_timeout=300.0) as pool:
        sys.stdout.buffer.write(test_engines.fit(pool, epochs=10, callbacks=[StopAt()], resume={path!r}))
"""


@long
@pytest.mark.parametrize("engine", ["processes", "ray", "dask"])
def test_killed_training_resumes_from_checkpoint(engine: str, tmp_path: Path) -> None:
    pytest.importorskip(PACKAGES[engine])
    with pb.scale.Pool("serial") as pool:
        wanted = fit(pool, epochs=10)
    folder, path = str(Path(__file__).parent), str(tmp_path / "model.npz")
    where = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PULLBACK_MARK": path}
    outputs, pids = [], []
    for dies in (True, False):
        script = tmp_path / "driver.py"
        script.write_text(DRIVER.format(folder=folder, dies=dies, path=path, engine=engine))
        command = [sys.executable, str(script)]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=where)
        out, errors = program.communicate(timeout=600)
        assert program.returncode == (-signal.SIGKILL if dies else 0), errors.decode()
        outputs.append(out)
        pids.append(program.pid)
    assert outputs[1] == wanted
    for _ in range(600):  # what Ray started sees within seconds that its parent is gone
        left = [p for p in Path("/proc").glob("[0-9]*") if f"PULLBACK_MARK={path}" in read(p / "environ")]
        if not left:
            break
        time.sleep(0.1)
    assert not [read(p / "cmdline") for p in left]
    assert not [folder for pid in pids for folder in Path("/tmp").glob(f"pb-*-{pid}-*")]


def read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@long
@pytest.mark.parametrize("engine", ["processes", "ray", "dask"])
def test_pool_function_that_always_crashes_raises(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(PACKAGES[engine])
    answer = r"died 4 times in a row in crash at shard rows [12] of 2(.|\n)*scale_functions.py\", line \d+ in crash"
    with pb.scale.Pool(engine, workers=2, start_timeout=TIMEOUT) as pool:
        total = pool.sum(functions.crash, pb.scale.Shards(np.ones(4), parts=2))
        began = time.perf_counter()
        with pytest.raises(pb.errors.WorkerError, match=answer):
            total(1.0)
        took = time.perf_counter() - began
    with capsys.disabled():
        print(f"\n{engine}: the error came {took:.1f} s after the call")


@long
@pytest.mark.parametrize("engine", ["processes", "ray", "dask"])
def test_workers_map_files_instead_of_reading_them(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(PACKAGES[engine])
    rows, paths = 1_000_000, [tmp_path / f"part{i}.npy" for i in range(4)]
    for path in paths:
        np.lib.format.open_memmap(path, "w+", np.float32, (rows, 100))[:, 0] = 1.0
    with pb.scale.Pool(engine, workers=2, start_timeout=TIMEOUT) as pool:
        total = pool.sum(functions.half_square, pb.scale.Shards(paths))
        grad = pb.grad(total)(np.ones(100, np.float32))
        assert grad[0] == pytest.approx(4 * rows)
        used = pool.map(functions.find_anonymous, range(8))
    with capsys.disabled():
        print(f"\n{engine}: at most {max(used) / 1e6:.0f} MB of anonymous memory")
    assert max(used) < 150e6


@long
@pytest.mark.parametrize("engine", ["ray", "dask"])
def test_example_runs_on_clusters(engine: str) -> None:
    pytest.importorskip(PACKAGES[engine])
    example = Path(__file__).parents[2] / "examples" / "scale_out.py"
    command = [sys.executable, str(example), "--quick", "--engine", engine]
    made = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert made.returncode == 0, made.stderr
    assert "weights:" in made.stdout
