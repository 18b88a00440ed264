"""HDF5 files: arrays and text by path; the only module that imports h5py.

Links to other files, cycles and arrays that are larger than what the file holds are refused before they are read.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pullback.errors import CheckpointError
from pullback.names.packages import import_package
from pullback.typing import Array

MAGIC = b"\x89HDF\r\n\x1a\n"
NEEDED = ("model_config", "training_config", "keras_version", "layer_names", "weight_names")  # attributes, and numbered
SMALLEST_SHARE = 1 / 64  # of an array's bytes that must be in the file: weights compress no better
DEEPEST = 64  # groups in each other
SMALL = 1 << 16  # bytes that are read without a check


class Hdf5Content(NamedTuple):
    """The arrays of a file by path, and the text attributes of its groups, by path and name."""

    arrays: dict[str, Array]
    attributes: dict[str, dict[str, list[str]]]

    def get_text(self, name: str) -> str | None:
        """Return an attribute of the file itself."""
        found = self.attributes.get("", {}).get(name)
        return None if found is None else "".join(found)


def _import_h5py() -> Any:
    return import_package("h5py", "Files of Keras (.keras, .h5) need h5py", "pullback[keras]")


# ---- read


def read_hdf5(source: Path | bytes, where: str) -> Hdf5Content:
    """Return what a file, or the bytes of one, holds."""
    h5py = _import_h5py()
    length = source.stat().st_size if isinstance(source, Path) else len(source)
    try:
        with h5py.File(source if isinstance(source, Path) else io.BytesIO(source), "r") as file:
            return _read_file(h5py, file, where, length)
    except CheckpointError:
        raise
    except (
        OSError,
        RuntimeError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        MemoryError,
        ArithmeticError,
    ) as error:
        raise CheckpointError(
            f"load: {where} is not a whole HDF5 file ({str(error)[:200]}). It was cut short, changed, or is "
            "something else."
        ) from None


def _read_file(h5py: Any, file: Any, where: str, length: int) -> Hdf5Content:
    content = Hdf5Content({}, {})
    datasets = []
    for path, found in _walk(h5py, file, "", where, set()):
        if isinstance(found, h5py.Dataset):
            _check_dataset(found, path, where)
            datasets.append((path, found))
        else:
            content.attributes[path] = _read_attributes(found, where, length)
    needed = sum(one.nbytes for _, one in datasets)
    if needed * SMALLEST_SHARE > length:
        raise CheckpointError(f"load: {where} says that it holds {needed} bytes of arrays, but has {length}.")
    for path, one in datasets:
        content.arrays[path] = np.asarray(one[()])
    return content


def _walk(h5py: Any, group: Any, above: str, where: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Iterate over groups and arrays, the group itself first; each may be at one path only."""
    address = h5py.h5o.get_info(group.id).addr
    if address in seen or above.count("/") > DEEPEST:
        raise CheckpointError(f"load: {where} has a group that is inside itself, or groups that are nested too deeply.")
    seen.add(address)
    yield above, group
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise CheckpointError(f"load: {where} has a link {name!r} to another place, which is not followed.")
        found = group[name]
        path = f"{above}/{name}" if above else name
        if isinstance(found, h5py.Group):
            yield from _walk(h5py, found, path, where, seen)
        elif isinstance(found, h5py.Dataset):
            yield path, found


def _check_dataset(dataset: Any, path: str, where: str) -> None:
    """Raise an error for an array that is not numbers, or whose values are in another file or missing."""
    if dataset.dtype.kind not in "fiubc":
        raise CheckpointError(f"load: {where}: {path} has dtype {dataset.dtype}, expected numbers.")
    stored = dataset.id.get_storage_size()
    if dataset.external or dataset.is_virtual:
        raise CheckpointError(f"load: {where}: the values of {path} are in another file, which is not read.")
    if dataset.nbytes > SMALL and stored < dataset.nbytes * SMALLEST_SHARE:
        raise CheckpointError(
            f"load: {where}: {path} has {dataset.nbytes} bytes, of which {stored} are in the file; it is not read."
        )


def _read_attributes(group: Any, where: str, length: int) -> dict[str, list[str]]:
    """Return the attributes of a group that models have, as lists of texts."""
    found: dict[str, list[str]] = {}
    for name in sorted(group.attrs.keys(), key=lambda name: (len(name), name)):
        base_name = name.rstrip("0123456789")
        if base_name not in NEEDED:
            continue
        found_id = group.attrs.get_id(name)
        if math.prod(found_id.shape) * found_id.dtype.itemsize > length:
            raise CheckpointError(f"load: {where}: the attribute {name} is larger than the file.")
        texts = np.ravel(np.asarray(group.attrs[name], dtype=object)).tolist()
        found.setdefault(base_name, []).extend(x.decode() if isinstance(x, bytes) else str(x) for x in texts)
    return found


# ---- write


def encode_hdf5(arrays: Mapping[str, Array], attributes: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the bytes of a file with these arrays by path, and attributes of groups by path and name."""
    h5py, target = _import_h5py(), io.BytesIO()
    with h5py.File(target, "w") as file:
        for path, values in attributes.items():
            group = file.require_group(path) if path else file
            for name, value in values.items():
                _write_attribute(group, name, value)
        for path, x in arrays.items():
            file.create_dataset(path, data=x)
    return target.getvalue()


def _write_attribute(group: Any, name: str, value: str | list[str]) -> None:
    """Write a text, or a list of texts in parts that fit into the header of a group."""
    if isinstance(value, str):
        group.attrs[name] = value
        return
    texts = [x.encode() for x in value]
    size = max(1, 60_000 // max(map(len, texts), default=1))
    parts = [texts[i : i + size] for i in range(0, len(texts), size)] or [[]]
    for i, part in enumerate(parts):
        group.attrs[name if len(parts) == 1 else f"{name}{i}"] = (
            np.array(part, dtype="S") if part else np.zeros(0, "S1")
        )
