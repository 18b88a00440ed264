"""Saving and loading trees: the same values and structure, or an error that lists every difference."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exhaustive import ALL

import pullback as pb
from pullback.errors import ArgumentError, CheckpointError, DataError, TracedValueError

pytest.importorskip("safetensors")
Pair = namedtuple("Pair", "left right")


@dataclass
class Layer:
    kernel: Any
    bias: Any


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict | list | tuple):
        keys = list(a) if isinstance(a, dict) else range(len(a))
        its = list(b) if isinstance(b, dict) else range(len(b))
        return type(a) is type(b) and list(keys) == list(its) and all(same(a[k], b[k]) for k in keys)
    if isinstance(a, np.ndarray | np.generic):
        equal = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        return bool(equal) and a.dtype.name == b.dtype.name and a.shape == b.shape
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(
    "tree",
    [
        np.arange(6.0).reshape(2, 3),
        np.float32(3.5),
        {"a": np.zeros((0, 3)), "b": [np.int8([1, 2]), (np.True_, None)], 3: {}},
        {"T": np.arange(6.0).reshape(2, 3).T, "strided": np.arange(10)[::3], "wide": np.arange(3, dtype=">f8")},
        {"nan": np.array([np.nan, np.inf, -0.0]), "half": np.float16([1.5])},
        {"step": 7, "rate": 0.1, "name": "é/日", "done": False, "big": 2**80, "inf": float("inf"), "none": None},
        (np.ones(2), [], {"layers": [{"w": np.ones((2, 2))}, {"w": np.zeros(1, np.uint64)}]}),
        [None, None],
    ],
)
def test_save_load_roundtrip_of_trees(path: Path, tree: Any) -> None:
    pb.train.save(path, tree)
    assert same(pb.train.load(path), tree)
    assert same(pb.train.load(path, into=tree), tree)
    assert os.listdir(path.parent) == [path.name]


def test_load_gives_dicts_for_dataclasses_and_named_tuples(path: Path) -> None:
    tree = Pair(Layer(np.ones(2), pb.tensor([1.0])), [2.0, 3.0])
    pb.train.save(path, tree)
    loaded = pb.train.load(path)
    assert same(loaded["left"], {"kernel": np.ones(2), "bias": np.ones(1, np.float32)})
    made = pb.train.load(path, into=Pair(Layer(np.zeros(2), pb.tensor([0.0])), [0.0, 0.0]))
    assert isinstance(made, Pair)
    assert isinstance(made.left, Layer)
    assert isinstance(made.left.bias, pb.Tensor)
    assert made.left.kernel.tolist() == [1, 1]
    assert made.right.tolist() == [2, 3]


def test_lists_of_numbers_keep_their_digits(path: Path) -> None:
    tree = {"floats": [0.1, 0.2], "integers": [[2**24 + 1, 2**60 + 1]], "flags": [True, False]}
    pb.train.save(path, tree)
    wanted = {name: np.array(numbers) for name, numbers in tree.items()}
    assert same(pb.train.load(path), wanted)
    assert same(pb.train.load(path, into=tree), wanted)
    with pytest.raises(DataError, match="'big' has dtype object"):
        pb.train.save(path, {"big": [2**80]})
    with pytest.raises(DataError, match="save: 'ragged'"):
        pb.train.save(path, {"ragged": [[1.0], [1.0, 2.0]]})


def test_load_into_variables_matches_by_name(path: Path) -> None:
    w, b = pb.variable([[1.0, 2.0]], name="saving/w"), pb.variable(3, name="saving/b", dtype="int32")
    pb.train.save(path, [w, b])
    w.assign([[0.0, 0.0]])
    b.assign(0)
    given = (b, w)
    assert pb.train.load(path, into=given) is given
    assert (w.numpy().tolist(), int(b)) == ([[1, 2]], 3)
    assert sorted(pb.train.load(path)) == ["saving/b", "saving/w"]

    class Model:
        def __init__(self) -> None:
            self.variables = [w, b]

    w.assign([[0.0, 0.0]])
    model = Model()
    assert pb.train.load(path, into=model) is model
    assert w.numpy().tolist() == [[1, 2]]
    pb.train.save(path, model)
    assert sorted(pb.train.load(path)) == ["saving/b", "saving/w"]
    pb.train.save(path, w)
    assert pb.train.load(path, into=w) is w


def test_load_into_tree_assigns_variables_in_place(path: Path) -> None:
    tree = {"w": pb.variable([1.0]), "slots": [np.ones(2), pb.tensor(2.0)], "step": 3}
    pb.train.save(path, tree)
    other = {"step": 0, "slots": [np.zeros(2), pb.tensor(0.0)], "w": pb.variable([0.0])}
    made = pb.train.load(path, into=other)
    assert made["w"] is other["w"]
    assert float(other["w"][0]) == 1
    assert made["step"] == 3
    assert made["slots"][0].tolist() == [1, 1]
    assert other["slots"][0].tolist() == [0, 0]
    assert float(made["slots"][1]) == 2


def test_optimizer_state_resumes_from_file(path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)

    def trained(saved: Any = None) -> Any:
        """Train two epochs of four steps and save after the sixth, or resume after it."""
        w, optimizer = pb.variable(np.zeros(3, np.float32), name="fit/w"), pb.train.adam(0.1)
        data = pb.data.Dataset.from_arrays((x, x @ np.float32([1, -2, 3]))).shuffle(seed=4).batch(6).prefetch()
        if saved is not None:
            w.assign(saved["w"])
            optimizer.load_state_dict(saved["optimizer"], [w])
            data.resume(saved["data"])
        while data.state()["epoch"] < 2:
            for xs, ys in data:
                optimizer.minimize(lambda xs=xs, ys=ys: pb.mean((xs @ w - ys) ** 2), [w])
                if saved is None and optimizer.iterations == 6:
                    pb.train.save(path, {"w": w, "optimizer": optimizer.state_dict(), "data": data.state()})
        assert optimizer.iterations == 8
        return w.numpy()

    whole = trained()
    saved = pb.train.load(path)
    assert not np.array_equal(saved["w"], whole)
    assert np.array_equal(trained(saved), whole)


# ---- differences


def test_load_lists_all_differences_and_assigns_nothing(path: Path) -> None:
    pb.train.save(path, {"a": np.ones(2), "b": np.ones((2, 3)), "c": np.ones(1), "n": 3, "x": np.ones(1)})
    a = pb.variable(np.zeros(2))
    into = {"a": a, "b": np.zeros((3, 2)), "c": np.zeros(1, np.float32), "n": "text", "y": np.zeros(1), "z": 1}
    with pytest.raises(CheckpointError) as caught:
        pb.train.load(path, into=into)
    assert str(caught.value) == (
        "load: model.safetensors does not fit, so nothing was assigned. missing: y, z; extra: x; different: "
        "b (shape (2, 3), expected (3, 2)), c (dtype float64, expected float32), n (int, expected str)."
    )
    assert a.numpy().tolist() == [0, 0]


def test_load_with_names_map(path: Path) -> None:
    pb.train.save(path, {"dense": {"kernel": np.ones(2)}, "b": np.zeros(1)})
    into = {"w": np.zeros(2), "b": np.ones(1)}
    made = pb.train.load(path, into, names={"dense/kernel": "w"})
    assert made["w"].tolist() == [1, 1]
    with pytest.raises(CheckpointError, match=r"names has kernel; the file has: b, dense/kernel"):
        pb.train.load(path, into, names={"kernel": "w"})
    with pytest.raises(ArgumentError, match="two weights the same name"):
        pb.train.load(path, into, names={"dense/kernel": "b"})
    with pytest.raises(ArgumentError, match="into, which is missing"):
        pb.train.load(path, names={"dense/kernel": "w"})


def test_load_foreign_safetensors_file(path: Path) -> None:
    import safetensors.numpy

    safetensors.numpy.save_file({"model.w": np.ones(2), "model.b": np.zeros(1)}, path)
    assert sorted(pb.train.load(path)) == ["model.b", "model.w"]
    into = [pb.variable(np.zeros(2), name="model.w"), pb.variable(np.ones(1), name="model.b")]
    pb.train.load(path, into)
    assert into[0].numpy().tolist() == [1, 1]
    assert into[1].numpy().tolist() == [0]


# ---- load_weights


def test_load_weights_by_order_or_name() -> None:
    kernel, bias = pb.variable(np.zeros((2, 1), np.float32), name="k"), pb.variable(np.zeros(1, np.float32), name="b")
    weights = [np.array([[1.0], [2.0]]), np.array([3.0])]  # float64, which is cast
    for weighed, names in [
        (weights, None),
        (weights[::-1], ["b", "k"]),
        ({"x": weights[0], "b": weights[1]}, {"x": "k"}),
    ]:
        kernel.assign(np.zeros((2, 1), np.float32))
        pb.train.load_weights([kernel, bias], weighed, names)
        assert (kernel.numpy().tolist(), bias.numpy().tolist()) == ([[1], [2]], [3])
    with pytest.raises(CheckpointError, match=r"different: b \(shape \(2, 1\), expected \(1,\)\), k"):
        pb.train.load_weights([kernel, bias], weights[::-1])
    with pytest.raises(CheckpointError, match="1 weights for 2 places: k, b"):
        pb.train.load_weights([kernel, bias], weights[:1])
    with pytest.raises(CheckpointError, match=r"different: b \(dtype complex128, expected float32\)"):
        pb.train.load_weights([kernel, bias], [weights[0], np.array([1j])])
    with pytest.raises(ArgumentError, match="names must be a list of 2, one for each weight, got 1 names"):
        pb.train.load_weights([kernel, bias], weights, ["k"])
    with pytest.raises(ArgumentError, match="names must be a list of 2, one for each weight, got a map"):
        pb.train.load_weights([kernel, bias], weights, {"k": "k"})
    with pytest.raises(ArgumentError, match="names must be a map"):
        pb.train.load_weights([kernel, bias], {"k": weights[0]}, ["k"])
    with pytest.raises(ArgumentError, match="a list or a dict by name, got ndarray"):
        pb.train.load_weights([kernel, bias], weights[0])


# ---- save errors


@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        ({"a": np.array(["text"])}, DataError, "'a' has dtype <U4, which safetensors does not hold"),
        ({"a": {"b": np.ones(1, np.longdouble)}}, DataError, "'a/b' has dtype"),
        (np.ones(2, complex), DataError, "'value' has dtype complex128"),
        ({"a": object()}, DataError, "save: 'a'"),
        ({(1, 2): 1.0}, DataError, r"keys must be text or integers, got \(1, 2\)"),
        ({"a": {"b": 1.0}, "a/b": 2.0}, DataError, "two parts of the tree are both called 'a/b'"),
    ],
)
def test_save_error_keeps_previous_file(path: Path, tree: Any, error: Any, message: str) -> None:
    pb.train.save(path, {"former": 1})
    with pytest.raises(error, match=message):
        pb.train.save(path, tree)
    assert pb.train.load(path) == {"former": 1}
    assert os.listdir(path.parent) == [path.name]


def test_save_traced_tensor_raises(path: Path) -> None:
    with pytest.raises(TracedValueError):
        pb.grad(lambda x: pb.train.save(path, {"x": x}))(1.0)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_save_file_permissions_follow_umask(path: Path) -> None:
    pb.train.save(path, 1)
    (path.parent / "other").touch()
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode


def test_save_into_missing_folder_and_load_of_missing_file_raise(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder"):
        pb.train.save(path.parent / "none" / "x", 1)
    with pytest.raises(FileNotFoundError, match="no file"):
        pb.train.load(path)


# ---- damaged files


def test_load_damaged_file_raises(path: Path) -> None:
    pb.train.save(path, {"w": np.arange(100.0), "b": np.ones(3)})
    whole = path.read_bytes()
    for end in (0, 5, 60, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(CheckpointError, match=r"not a whole safetensors file .* load an earlier one"):
            pb.train.load(path)
    path.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    with pytest.raises(CheckpointError, match=r"damaged: [wb] is not what was written"):
        pb.train.load(path)
    path.write_text("not a model")
    with pytest.raises(CheckpointError, match="not a whole"):
        pb.train.load(path)
    path.write_bytes(whole.replace(b'\\"format\\": 1', b'\\"format\\": 9'))
    with pytest.raises(CheckpointError, match="has format 9, this version reads 1"):
        pb.train.load(path)


def test_save_that_fails_keeps_previous_file_and_no_temporary_one(path: Path, monkeypatch: Any) -> None:
    pb.train.save(path, {"step": 1})
    left, fresh = (path.with_name(f".{path.name}.{name}.unfinished") for name in ("old", "new"))
    for file in (left, fresh):
        file.write_text("")
    os.utime(left, (time.time() - 7200,) * 2)

    def full(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        pb.train.save(path, {"step": 2})
    assert pb.train.load(path) == {"step": 1}
    assert sorted(os.listdir(path.parent)) == sorted([path.name, fresh.name])


WRITER = """
import sys, numpy as np, pullback as pb
for step in range(10**9):
    pb.train.save(sys.argv[1], {"step": step, "w": np.full(200_000, float(step)), "b": np.full(7, step)})
    if step < 2: print(step, flush=True)
"""


def test_checkpoint_loads_after_writer_was_killed(path: Path) -> None:
    random = np.random.default_rng(0)
    for _ in range(200 if ALL else 2):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline(), writer.stdout.readline()
            time.sleep(random.uniform(0, 0.05))
            writer.kill()
        saved = pb.train.load(path)
        assert saved["step"] >= 1
        assert np.all(saved["w"] == saved["step"])
        assert np.all(saved["b"] == saved["step"])


def test_save_without_safetensors_raises_missing_package() -> None:
    code = (
        "import sys; sys.modules['safetensors'] = None; import pullback as pb\n"
        "for f in (lambda: pb.train.save('x', 1), lambda: pb.train.load('x')):\n"
        "    try: f()\n"
        "    except pb.errors.MissingPackageError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.endswith("pip install 'pullback[train]'") for line in lines)


def test_saving_under_an_unknown_suffix_raises(tmp_path: Path) -> None:
    model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
    for save, known in ((model.save, r"\.safetensors, \.keras"), (model.save_weights, r"\.safetensors, \.h5")):
        with pytest.raises(ArgumentError, match=rf"ends in '\.foo', which is no known format. Known are {known}"):
            save(tmp_path / "x.foo")
    assert not list(tmp_path.iterdir())


def test_sequential_model_is_saved_in_a_program_without_functional_models(tmp_path: Path) -> None:
    code = (
        "import sys, pullback as pb\n"
        "model = pb.sequential([pb.layers.dense(units=2, input_shape=[3])])\n"
        "for name in ('m.keras', 'm.h5', 'm'): model.save(sys.argv[1] + '/' + name)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_model_file_without_training_or_model(tmp_path: Path) -> None:
    model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
    model.compile(pb.train.adam(lambda step: 0.1), "mse")
    model.save(path := tmp_path / "model.safetensors")
    assert pb.load_model(path).optimizer is None
    model.save_checkpoint(path)
    with pytest.raises(CheckpointError, match=r"load_model: model.safetensors holds variables, but not the model"):
        pb.load_model(path)
    with pytest.raises(ArgumentError, match=r"save\(path, tree\): path must be text or a path, got dict"):
        pb.train.save({}, path)  # type: ignore[arg-type]


def test_model_file_with_unknown_class_raises(path: Path) -> None:
    class Gone(pb.layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    pb.sequential([Gone(input_shape=[2])]).save(path)
    Gone.registry.pop("Gone")
    with pytest.raises(CheckpointError, match=r"'Gone', which is not known here. Import, or define, its class before"):
        pb.load_model(path)
