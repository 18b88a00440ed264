"""Datasets: elements, order, how much is read, and resuming."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb
from pullback.errors import ArgumentError, DataError, ShapeError

Dataset = pb.data.Dataset
N = 23
X = np.arange(N * 3, dtype=np.float32).reshape(N, 3)
Y = np.arange(N)


def arrays() -> Any:
    return Dataset.from_arrays((X, Y))


def stream() -> Any:
    return Dataset.from_generator(lambda: zip(X, Y, strict=True))


def same(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(
        all(np.array_equal(x, y) for x, y in zip(one, other, strict=True)) for one, other in zip(a, b, strict=True)
    )


def labels(data: Any) -> list[int]:
    return [int(y) for element in data for y in np.atleast_1d(element[1])]


def by_label(batches: list[Any]) -> dict[int, Any]:
    return {int(y): x for xs, ys in batches for x, y in zip(np.atleast_1d(xs), np.atleast_1d(ys), strict=False)}


PIPELINES: dict[str, Callable[[Any], Any]] = {
    "rows": lambda d: d,
    "batch": lambda d: d.batch(4),
    "dropped": lambda d: d.batch(4, drop_remainder=True),
    "shuffled": lambda d: d.shuffle(7, seed=5).batch(4),
    "shuffled batches": lambda d: d.batch(4).shuffle(3, seed=5),
    "twice shuffled": lambda d: d.shuffle(7, seed=5).batch(4).shuffle(2, seed=5),
    "mapped": lambda d: d.map(lambda x, y: (x * 2, y)).shuffle(7, seed=1).batch(4),
    "mapped batches": lambda d: d.shuffle(7, seed=1).batch(4).map(lambda x, y: (x.sum(axis=1), y)),
    "taken": lambda d: d.shuffle(7, seed=1).take(10).batch(4),
    "skipped": lambda d: d.skip(3).shuffle(7, seed=1).batch(4).skip(1),
    "repeated": lambda d: d.shuffle(7, seed=1).repeat(3).batch(4),
    "repeated batches": lambda d: d.shuffle(7, seed=1).batch(4).repeat(2),
    "endless": lambda d: d.shuffle(7, seed=1).repeat().batch(4).take(15),
    "ahead": lambda d: d.shuffle(7, seed=1).batch(4).prefetch(2),
    "ahead of batches": lambda d: d.shuffle(7, seed=1).prefetch(2).batch(4),
    "batches of batches": lambda d: d.batch(2, drop_remainder=True).batch(3),
    "ahead, repeated": lambda d: d.prefetch(1).repeat(2).skip(5).batch(4).take(3).prefetch(3),
}


@pytest.fixture(params=["arrays", "stream", "csv", "parquet"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    if request.param == "arrays":
        return arrays
    if request.param == "stream":
        return stream
    together = lambda row, y: (np.stack([row["a"], row["b"], row["c"]]), y)
    if request.param == "csv":
        path = tmp_path / "rows.csv"
        lines = [f"{a},{b},{c},{y}" for (a, b, c), y in zip(X, Y, strict=True)]
        path.write_text("\n".join(["a,b,c,y", *lines]))
        return lambda: Dataset.from_csv(path, label="y", dtypes={"y": int}).map(together)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "rows.parquet", row_group_size=5)
    return lambda: Dataset.from_parquet(tmp_path / "rows.parquet", label="y").map(together)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_resume_at_every_position(source: Callable[[], Any], pipeline: str) -> None:
    made = lambda: PIPELINES[pipeline](source())
    data = made()
    epochs = [list(data), list(data)]
    assert epochs[0]
    assert all(map(len, epochs))
    for epoch, whole in enumerate(epochs):
        for k in sample(range(len(whole) + 1), 3, first=epoch):
            data = made()
            for _ in range(epoch):
                list(data)
            reader = iter(data)
            read = list(itertools.islice(reader, k))
            state = json.loads(json.dumps(data.state()))
            assert same(read, whole[:k])
            assert same(list(made().resume(state)), whole[k:]), f"epoch {epoch}, position {k}"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_len_equals_number_of_elements(pipeline: str) -> None:
    data = PIPELINES[pipeline](arrays())
    assert len(data) == len(list(data))


@pytest.mark.parametrize(
    "pipeline", ["rows", "batch", "dropped", "shuffled", "mapped", "mapped batches", "repeated", "ahead"]
)
def test_stream_has_same_elements_as_arrays(pipeline: str) -> None:
    a, b = (list(PIPELINES[pipeline](made())) for made in (arrays, stream))
    assert [(x.shape, x.dtype, np.shape(y), y.dtype) for x, y in a] == [
        (x.shape, x.dtype, np.shape(y), y.dtype) for x, y in b
    ]
    assert sorted(labels(a)) == sorted(labels(b))
    assert all(np.array_equal(np.ravel(x)[0], np.ravel(by_label(a)[y])[0]) for y, x in by_label(b).items())


# ---- order


@pytest.mark.parametrize("made", [arrays, stream])
def test_shuffle_order_depends_on_seed_and_epoch(made: Callable[[], Any]) -> None:
    data, again, other = (made().shuffle(N, seed=seed) for seed in (3, 3, 4))
    epochs = [labels(data) for _ in range(3)]
    assert epochs == [labels(again) for _ in range(3)]
    assert epochs[0] != labels(other)
    assert len({tuple(epoch) for epoch in [*epochs, list(range(N))]}) == 4
    assert all(sorted(epoch) == list(range(N)) for epoch in epochs)
    fixed = made().shuffle(N, seed=3, reshuffle_each_iteration=False)
    assert labels(fixed) == labels(fixed) == epochs[0]
    assert labels(made().shuffle(N, seed=3).repeat(3)) == [*epochs[0], *epochs[1], *epochs[2]]


def test_shuffle_without_seed_uses_global_seed_and_state_keeps_it() -> None:
    pb.random.seed(11)
    data, other = arrays().shuffle(), arrays().shuffle()
    first = labels(data)
    assert first != labels(other)
    pb.random.seed(11)
    assert first == labels(arrays().shuffle())
    state = data.state()
    assert labels(arrays().shuffle().resume(state)) == labels(data)


def test_shuffle_buffer_limits_displacement() -> None:
    places = labels(stream().shuffle(5, seed=0))
    assert places != sorted(places)
    assert all(y < place + 5 for place, y in enumerate(places))


def test_break_starts_next_epoch_and_state_follows_latest_reader() -> None:
    data = arrays().shuffle(seed=0).batch(4)
    whole = [list(data) for _ in range(3)]
    data = arrays().shuffle(seed=0).batch(4)
    for _ in data:
        break
    assert data.state() == {"epoch": 0, "position": 1, "length": 6, "seed_0": 0}
    assert same(list(data), whole[1])
    assert data.state() == {"epoch": 2, "position": 0, "length": 6, "seed_0": 0}
    one, two = iter(data), iter(data)
    assert same([next(one), next(one)], whole[2][:2])
    next(two)
    assert data.state()["epoch"] == 3
    assert data.state()["position"] == 1


# ---- elements


def test_trees_keep_structure_and_dtypes() -> None:
    data = Dataset.from_arrays({"x": X.astype(np.float64), "more": [pb.tensor(X), None], "y": [0.5] * N, "n": [1] * N})
    for made in (data.batch(2), data.map(lambda e: e).batch(2)):
        batch = next(iter(made))
        assert list(batch) == ["x", "more", "y", "n"]
        assert batch["more"][1] is None
        kinds = [batch["x"].dtype, batch["more"][0].dtype, batch["y"].dtype, batch["n"].dtype]
        assert kinds == [np.float64, np.float32, np.float32, np.int64]
        assert [batch["x"].shape, batch["y"].shape] == [(2, 3), (2,)]


def test_list_of_two_arrays_is_tree_of_two_leaves() -> None:
    columns = [np.arange(4.0), np.arange(4.0)]
    for data in (Dataset.from_arrays(columns), Dataset.from_arrays(columns).map(lambda e: e)):
        assert [x.shape for x in next(iter(data.batch(2)))] == [(2,), (2,)]


def test_from_generator_converts_lists_of_numbers_to_arrays() -> None:
    x, y, texts = next(iter(Dataset.from_generator(lambda: iter([([1.0, 2.0], True, "a")] * 3)).batch(3)))
    assert (x.shape, x.dtype, y.dtype, texts.tolist()) == ((3, 2), np.float32, np.bool_, ["a"] * 3)


# ---- laziness


def test_from_arrays_gives_read_only_views() -> None:
    x, _ = next(iter(arrays().batch(4)))
    assert np.shares_memory(x, X)
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    shuffled, _ = next(iter(arrays().shuffle(seed=0).batch(4)))
    shuffled += 1
    assert np.array_equal(X, np.arange(N * 3).reshape(N, 3))


@pytest.mark.parametrize(
    ("pipeline", "wanted", "most"),
    [
        (lambda d: d, 1, 1),
        (lambda d: d.batch(5), 2, 10),
        (lambda d: d.take(3), 9, 3),
        (lambda d: d.shuffle(10, seed=0), 2, 12),
        (lambda d: d.batch(5).map(lambda x: x).repeat().take(1), 9, 5),
        (lambda d: d.prefetch(3), 1, 5),
    ],
)
def test_stream_is_read_lazily(pipeline: Callable[[Any], Any], wanted: int, most: int) -> None:
    read = []

    def numbers() -> Iterator[int]:
        for i in range(10**9):
            read.append(i)
            yield i

    reader = iter(pipeline(Dataset.from_generator(numbers)))
    assert not read
    list(itertools.islice(reader, wanted))
    del reader
    assert len(read) <= most


def test_resume_skips_without_reading() -> None:
    touched = []
    data = lambda: arrays().map(lambda x, y: touched.append(int(y)) or y).batch(4).prefetch()
    whole = data()
    reader = iter(whole)
    next(reader), next(reader)
    state = whole.state()
    reader.close()
    touched.clear()
    next(iter(data().resume(state)))
    assert touched[0] == 8


# ---- prefetch


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "pullback-prefetch"]


def test_prefetch_uses_a_thread_and_ends_it() -> None:
    where = []
    data = arrays().map(lambda x, y: where.append(threading.current_thread()) or y).prefetch(1).prefetch(2)
    assert list(data) == list(range(N))
    assert threading.current_thread() not in where
    assert not threads()
    reader = iter(data)
    assert not threads()
    next(reader)
    assert threads()
    del reader
    assert not threads()
    for _ in data:
        break
    assert not threads()
    assert list(data.take(2)) == [0, 1]
    assert not threads()


def test_prefetch_raises_at_the_failing_element_and_ends_thread() -> None:
    def broken(x: Any, y: Any) -> Any:
        if y == 5:
            raise KeyError("five")
        return y

    got: list[int] = []
    data = arrays().map(broken).prefetch(2)
    with pytest.raises(KeyError, match="five") as caught:
        got.extend(data)
    assert "broken" in [entry.name for entry in caught.traceback]
    assert not threads()
    assert got == [0, 1, 2, 3, 4]
    assert data.state()["position"] == 5


def test_prefetch_thread_inherits_context_variables() -> None:
    with pb.default_dtype("float64"):
        assert next(iter(Dataset.from_generator(lambda: iter([1.0])).batch(1).prefetch())).dtype == np.float64


def test_prefetch_does_not_block_process_exit() -> None:
    code = "import pullback as pb; r = iter(pb.data.Dataset.from_arrays(list(range(99))).prefetch(1)); print(next(r))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("0\n", "", 0)


# ---- lengths


def test_endless_and_empty_datasets() -> None:
    endless = arrays().repeat()
    assert labels(endless.skip(N * 4 + 1).take(3)) == [1, 2, 3]
    assert repr(endless) == "Dataset(23 rows > repeat())"
    empty = Dataset.from_arrays(np.zeros((0, 2)))
    for data in (empty, empty.batch(3), empty.repeat(), empty.shuffle(seed=0).batch(2).prefetch(), arrays().take(0)):
        assert len(data) == 0
        assert list(data) == []
        assert data
    assert list(Dataset.from_generator(lambda: iter(())).repeat().batch(2)) == []
    assert list(arrays().repeat(0)) == []


# ---- CSV


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "file.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_from_csv_columns_labels_dtypes(tmp_path: Path) -> None:
    path = written(tmp_path, '\ufeffa, b ,city,ok\r\n1,,"Bern, CH",true\r\n\r\n2.5,3,Rome,0\r\n')
    data = Dataset.from_csv(path, label=["b", "ok"], dtypes={"city": str, "ok": bool})
    batch, label = next(iter(data.batch(5)))
    assert batch["city"].tolist() == ["Bern, CH", "Rome"]
    assert batch["a"].dtype == np.float32
    assert batch["a"].tolist() == [1.0, 2.5]
    assert np.isnan(label["b"][0])
    assert label["ok"].tolist() == [True, False]
    assert list(next(iter(Dataset.from_csv(path, columns=["b", "a"])))) == ["b", "a"]
    assert len(list(Dataset.from_csv(path, columns=["a"]).skip(1))) == 1


def test_from_csv_without_header_and_with_delimiter(tmp_path: Path) -> None:
    path = written(tmp_path, "1;2\n3;4\n")
    data = Dataset.from_csv(path, names=["x", "y"], delimiter=";", dtypes="int32")
    batch = next(iter(data.batch(2)))
    assert batch["x"].tolist() == [1, 3]
    assert batch["y"].dtype == np.int32
    with pytest.raises(ArgumentError, match=r"length of Dataset\(file.csv\) is not known before it was read"):
        len(data)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", {}, "file.csv is empty"),
        ("a,a\n1,2\n", {}, r"\['a'\] come more than once"),
        ("a,b\n1,2\n", {"label": "c"}, r"no column 'c'. The columns are \['a', 'b'\]"),
        ("a,b\n1,2\n", {"names": ["x"]}, "names has 1 names, but the first line has 2 cells"),
        ("a,b\n1,2\n3\n", {}, "line 3: expected 2 cells, got 1"),
        ("a,b\n1,2\n\n3,x\n", {}, r"line 4, column 'b': 'x' is not float32. .* dtypes=\{'b': str\}"),
        ("a,b\n1,2\n3,\n", {"dtypes": {"b": int}}, "line 3, column 'b': '' is not int64"),
        ("a,b\n1,2\n", {"dtypes": {"a": bool, "b": bool}}, "line 2, column 'b': '2' is not bool"),
        ("a,b\n1,2\n", {"dtypes": {"c": int}}, r"dtypes names \['c'\]"),
        ("a,b\n1,2\n", {"dtypes": complex}, "not complex128"),
    ],
)
def test_from_csv_errors(tmp_path: Path, text: str, arguments: Any, message: str) -> None:
    with pytest.raises((DataError, ArgumentError), match=message):
        list(Dataset.from_csv(written(tmp_path, text), **arguments))


# ---- Parquet


def test_from_parquet_reads_needed_columns_and_row_groups(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    columns = {
        "x": X[:, 0],
        "f": [None, *Y[1:].astype(float)],
        "n": [None, *Y[1:].tolist()],
        "s": ["a"] * N,
        "l": [[1]] * N,
    }
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path, row_group_size=5)
    data = Dataset.from_parquet(path, columns=["x", "f", "s"])
    assert len(data.batch(4)) == 6
    batches = list(data.batch(4))
    assert np.array_equal(np.concatenate([b["x"] for b in batches]), X[:, 0])
    assert [len(b["s"]) for b in batches] == [4, 4, 4, 4, 4, 3]
    assert np.isnan(batches[0]["f"][0])
    with pytest.raises(DataError, match=r"column 'n': expected numbers, .* got int64, with empty cells"):
        list(Dataset.from_parquet(path, columns=["n"]))
    with pytest.raises(DataError, match=r"column 'l': .* got list"):
        list(Dataset.from_parquet(path, columns=["l"]))
    with pytest.raises(DataError, match="no column 'z'"):
        Dataset.from_parquet(path, label="z")
    with pytest.raises(DataError, match=r"file.csv cannot be read as Parquet"):
        Dataset.from_parquet(written(tmp_path, "a,b\n"))


def test_from_parquet_without_pyarrow_raises_missing_package() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; import pullback as pb\n"
        "try: pb.data.Dataset.from_parquet('x.parquet')\n"
        "except pb.errors.MissingPackageError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("which is not installed. Install it with: pip install pyarrow\n")


# ---- errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Dataset(X), ArgumentError, "got ndarray. Use Dataset.from_arrays"),
        (lambda: Dataset.from_arrays((X, Y[:5])), ShapeError, r"same number of rows, got shapes \(23, 3\), \(5,\)"),
        (lambda: Dataset.from_arrays(3.0), ShapeError, "got a single number: 3.0"),
        (lambda: Dataset.from_arrays({}), DataError, "expected arrays or a tree of arrays, got {}"),
        (lambda: Dataset.from_arrays([[1], [2, 3]]), DataError, "ragged"),
        (lambda: Dataset.from_generator(iter([1])), ArgumentError, "without calling it"),
        (lambda: list(Dataset.from_generator(lambda: 3)), ArgumentError, "must return an iterator, got int"),
        (lambda: arrays().batch(0), ArgumentError, "batch: batch_size must be an integer of 1 or more, got 0"),
        (lambda: arrays().batch(2.5), ArgumentError, "got 2.5"),
        (lambda: arrays().batch(True), ArgumentError, "got True"),
        (lambda: arrays().shuffle(seed=-1), ArgumentError, "seed must be an integer of 0 or more"),
        (lambda: stream().shuffle(seed=1), ArgumentError, "Give its buffer_size"),
        (lambda: arrays().take(-1), ArgumentError, "take: count"),
        (lambda: arrays().prefetch(0), ArgumentError, "prefetch: buffer_size"),
        (lambda: arrays().map(3), ArgumentError, "map: expected a function, got int"),
        (lambda: len(arrays().repeat()), ArgumentError, "is inf"),
        (lambda: list(Dataset.from_generator(lambda: iter([X[0], X[0, :2]])).batch(2)), ShapeError, "element 1 of a"),
        (lambda: list(Dataset.from_generator(lambda: iter([(1,), (1, 2)])).batch(2)), DataError, "2 parts, element 0"),
        (lambda: arrays().resume(3), ArgumentError, "expected a dict with epoch"),
        (lambda: arrays().resume(arrays().take(3).state()), DataError, "state is of another dataset"),
        (lambda: arrays().resume(arrays().shuffle(seed=1).state()), DataError, "state is of another dataset"),
        (lambda: arrays().resume({"epoch": 0, "position": 24, "length": 23}), DataError, "24 is after the end, at 23"),
        (lambda: arrays().resume({"epoch": 0, "position": -1, "length": 23}), ArgumentError, "resume: position must"),
    ],
)
def test_dataset_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_filter_zip_concatenate_cache_and_lengths() -> None:
    even = arrays().filter(lambda x, y: y % 2 == 0)
    assert labels(even) == list(range(0, N, 2))
    with pytest.raises(TypeError, match="not known before it was read"):
        len(even)
    both = Dataset.zip({"a": arrays(), "b": Dataset.from_arrays(np.arange(5)).shuffle(seed=1)})
    assert len(both) == 5
    assert sorted(int(e["b"]) for e in both) == list(range(5))
    assert [int(e["a"][1]) for e in both] == list(range(5))
    joined = arrays().concatenate(stream())
    assert labels(joined) == [*range(N), *range(N)]
    assert sorted(labels(arrays().concatenate(arrays()).shuffle(seed=0).batch(7))) == sorted([*range(N), *range(N)])
    reads: list[int] = []
    kept = stream().map(lambda x, y: reads.append(1) or (x, y)).cache()
    assert labels(kept) == labels(kept) == list(range(N))
    assert len(reads) == N


@pytest.mark.parametrize("make", [arrays, stream])
def test_zip_concatenate_and_cache_resume_from_state(make) -> None:
    def build() -> Any:
        data = (
            Dataset.zip((make(), make().shuffle(4, seed=2)))
            .filter(lambda a, b: a[1] % 3 > 0)
            .concatenate(Dataset.zip((make(), make())))
        )
        return data.cache()

    whole = list(build())
    for at in (0, 3, 20):
        data = build()
        reader = iter(data)
        for _ in range(at):
            next(reader)
        rest = list(build().resume(data.state()))
        assert [int(a[1]) for a, _ in rest] == [int(a[1]) for a, _ in whole[at:]]


def test_padded_batch() -> None:
    data = Dataset.from_generator(lambda: [(np.ones(n), n) for n in (1, 3, 2)])
    first, second = data.padded_batch(2, padding_values=-1)
    np.testing.assert_array_equal(first[0], [[1, -1, -1], [1, 1, 1]])
    np.testing.assert_array_equal(second[1], [2])
    assert data.padded_batch(2, padded_shapes=([4], [])).to_array()[1][0].shape == (1, 4)
    assert len(data.padded_batch(2, drop_remainder=True).to_array()) == 1
    with pytest.raises(ShapeError, match="larger than"):
        data.padded_batch(2, padded_shapes=([2], [])).to_array()


def test_map_in_processes_keeps_order() -> None:
    made = Dataset.from_arrays(np.arange(9)).map(np.square, workers=2)
    assert [int(x) for x in made] == [i * i for i in range(9)]
    with pytest.raises(ArgumentError, match="can be pickled"):
        arrays().map(lambda x, y: x, workers=2)


def test_map_error_reports_ended_worker_process() -> None:
    with pytest.raises(DataError, match=r"worker process ended .* __name__"):
        list(Dataset.from_arrays(np.arange(2)).map(os._exit, workers=1))


def test_padded_batch_keeps_values_of_all_elements_and_of_padding() -> None:
    mixed = pb.data.Dataset.from_generator(lambda: [np.array([1, 2]), np.array([0.5])])
    assert [batch.tolist() for batch in mixed.padded_batch(2)] == [[[1.0, 2.0], [0.5, 0.0]]]
    words = pb.data.Dataset.from_generator(lambda: [np.array(["a", "b"]), np.array(["longer"])])
    assert next(iter(words.padded_batch(2, padding_values="")))[1].tolist() == ["longer", ""]
    whole = pb.data.Dataset.from_generator(lambda: [np.array([1, 2]), np.array([3])])
    with pytest.raises(ArgumentError, match=r"padding_values=0\.5 is no int64"):
        list(whole.padded_batch(2, padding_values=0.5))
    with pytest.raises(ShapeError, match=r"elements have rank 1, padded_shapes \[3, 3\]"):
        list(whole.padded_batch(2, padded_shapes=[3, 3]))
    floats = pb.data.Dataset.from_arrays(np.ones((2, 1), np.float32))
    assert next(iter(floats.padded_batch(2, padded_shapes=[2], padding_values=0.1)))[0, 1] == np.float32(0.1)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Dataset.from_arrays(X).filter(3), ArgumentError, "filter: expected a function, got int."),
        (lambda: Dataset.from_arrays(X).concatenate(X), ArgumentError, "concatenate: expected a dataset, got ndarray."),
        (lambda: Dataset.zip((Dataset.from_arrays(X), 3)), ArgumentError, "zip: expected datasets in a tuple, list or"),
        (
            lambda: next(iter(Dataset.from_arrays(X).padded_batch(2, padded_shapes=([3], [3])))),
            ArgumentError,
            "padded_batch: elements have 1 parts, padded_shapes 2.",
        ),
        (
            lambda: next(iter(pb.data.generator(lambda: iter([X[0], X])).padded_batch(2))),
            ShapeError,
            "padded_batch: elements of one batch have ranks [1, 2]; one rank is needed.",
        ),
    ],
)
def test_dataset_stages_reject_arguments_and_elements(make: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind) as error:
        make()
    assert message in str(error.value)


def test_repr_of_map_in_processes() -> None:
    assert repr(Dataset.from_arrays(X).map(abs, workers=2)) == f"Dataset({N} rows > map(workers=2))"
