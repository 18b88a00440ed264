"""Dtype policies: those of NumPy's dtypes, those that are refused, and files of Keras that name a refused one."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback import layers


def test_global_policy_sets_dtype_of_new_layers() -> None:
    pb.train.set_global_policy("float64")
    try:
        layer = layers.dense(1)
        layer.build_for([(2,)])
        assert (layer.variables[0].dtype, pb.train.global_policy()) == (np.float64, "float64")
    finally:
        pb.train.set_global_policy("float32")
    assert layers.dense(1).dtype is None


@pytest.mark.parametrize(
    ("name", "why"),
    [("bfloat16", "NumPy has no bfloat16"), ("mixed_bfloat16", "NumPy has no bfloat16"),
     ("mixed_float16", "a CPU gains nothing by mixed precision")],
)  # fmt: skip
def test_unsupported_dtype_policies_raise(name: str, why: str) -> None:
    for call in (pb.train.set_global_policy, lambda dtype: layers.dense(1, dtype=dtype)):
        with pytest.raises(pb.errors.ArgumentError, match=f"'{name}': {why}.*There are float16, float32 and float64"):
            call(name)
    assert pb.train.global_policy() == "float32"


@pytest.mark.parametrize("name", ["mixed_float16", "mixed_bfloat16"])
def test_keras_file_with_mixed_precision_loads_in_float32(tmp_path: Path, name: str) -> None:
    pytest.importorskip("h5py")
    model = pb.sequential([layers.dense(3, input_shape=[2]), layers.dense(1)])
    model.save(tmp_path / "plain.keras")
    policy = f'{{"module": "keras", "class_name": "DTypePolicy", "config": {{"name": "{name}"}}}}'
    with zipfile.ZipFile(tmp_path / "plain.keras") as plain, zipfile.ZipFile(tmp_path / "mixed.keras", "w") as mixed:
        for part in plain.namelist():
            data = plain.read(part)
            if part == "config.json":
                data = data.replace(b'"config": {"lora_rank"', b'"config": {"dtype": %s, "lora_rank"' % policy.encode())
                assert name.encode() in data
            mixed.writestr(part, data)
    again, x = pb.load_layers_model(tmp_path / "mixed.keras"), np.array([[1.0, 2.0]], np.float32)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert again.predict(x).dtype == np.float32
