"""Save and load trees of arrays: one safetensors file, with the structure as JSON in its header and no pickle.

The only module that imports safetensors.
"""

from __future__ import annotations

import json
import os
import secrets
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from pullback.core.context import bind
from pullback.core.convert import as_array
from pullback.core.tape import constant
from pullback.core.tensor import Tensor
from pullback.core.tree import get_branches, map_leaves
from pullback.core.variable import Variable, index_by_name
from pullback.errors import ArgumentError, CheckpointError, DataError
from pullback.names.packages import import_package
from pullback.train.data.stages import is_python_number_list
from pullback.typing import Array, TensorLike, Tree

StrPath = str | os.PathLike[str]
FORMAT = 1
HEADER = "pullback"  # the key of our JSON in the header of the file
SCALARS = (bool, int, float, str)  # written into the JSON itself; NumPy scalars are written as arrays
DTYPES = {
    "float64", "float32", "float16", "bool",
    "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
}  # fmt: skip
NEED, EXTRA = "pb.train.save and pb.train.load need safetensors", "pullback[train]"
STALE = 3600  # seconds after which an unfinished file was left by a process that was killed


# ---- save


def save(path: StrPath, tree: Tree) -> None:
    """Write variables, or a tree of variables, arrays and numbers, to a safetensors file.

    Variables alone, or in a list, are stored by their names, everything else by its path in the tree, as in
    ``"layers/0/kernel"``.  The file is replaced atomically: after a crash there is the old one or the whole new one.

    path: the file.
    tree: a tree of arrays.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "step.safetensors")
    ...     pb.train.save(path, {"weights": np.ones((2, 1)), "step": 7})
    ...     pb.train.load(path)
    {'weights': array([[1.],
           [1.]]), 'step': 7}
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(
            f"save(path, tree): path must be text or a path, got {type(path).__name__}; it comes first."
        )
    tensors: dict[str, Any] = {}
    stored = _as_tree("save", tree)
    structure = _describe(stored, "", tensors)
    _collect_leaves("save", stored)
    sums = {name: zlib.crc32(x) for name, x in tensors.items()}
    header = {"format": FORMAT, "tree": structure, "crc32": sums}
    content = import_package("safetensors.numpy", NEED, EXTRA).save(tensors, metadata={HEADER: json.dumps(header)})
    write_atomically(Path(os.fspath(path)), content)


def _as_tree(subject: str, tree: Tree) -> Tree:
    """Return the tree to store: of a model its variables, of variables alone or in a list a dict by name."""
    named, variables = getattr(tree, "named_variables", None), getattr(tree, "variables", None)
    if get_branches(tree) is None and callable(named):
        return named()
    if get_branches(tree) is None and isinstance(variables, list | tuple):
        return _as_tree(subject, list(variables))
    if isinstance(tree, Variable):
        tree = [tree]
    if isinstance(tree, list | tuple) and tree and all(isinstance(v, Variable) for v in tree):
        return index_by_name(tree, subject)
    return tree


def _list_branches(tree: Tree) -> list[tuple[Any, Any]] | None:
    """Return the children of a node with their keys; None for a leaf."""
    parts = None if is_python_number_list(tree) else get_branches(tree)
    if parts is None:
        return None
    if isinstance(tree, dict):
        return list(tree.items())
    fields = getattr(tree, "__dataclass_fields__", {})
    names = getattr(tree, "_fields", None) or [name for name in fields if fields[name].init]
    return list(zip(names, parts[0], strict=True)) if names else list(enumerate(parts[0]))


def _describe(tree: Tree, where: str, tensors: dict[str, Any]) -> Any:
    """Return the structure of a tree as JSON data; its arrays are added to ``tensors``."""
    if tree is None:
        return None
    if type(tree) in SCALARS:
        return {"number": tree}
    children = _list_branches(tree)
    if children is None:
        name = where or "value"
        tensors[name] = _as_storable(tree, name)
        return {"tensor": name}
    for key, _ in children:
        if type(key) not in (str, int):
            raise DataError(f"save: keys must be text or integers, got {key!r}{f' in {where!r}' if where else ''}.")
    below = [(key, _describe(child, f"{where}/{key}" if where else str(key), tensors)) for key, child in children]
    if isinstance(tree, list | tuple) and not hasattr(tree, "_fields"):
        return {"list" if isinstance(tree, list) else "tuple": [child for _, child in below]}
    return {"dict": below}


def _as_full_array(x: Any, subject: str) -> Array:
    """Return a leaf as an array; Python numbers in a list keep all their digits."""
    array = as_array(x, subject=subject)
    return np.array(x) if is_python_number_list(x) else array


def _as_storable(x: Any, name: str) -> Array:
    array = _as_full_array(x, f"save: {name!r}")
    if array.dtype.name not in DTYPES:
        raise DataError(f"save: {name!r} has dtype {array.dtype}, which safetensors does not hold. Cast it first.")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside ``path`` and rename it to ``path`` when all of it is on the disk."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"save: there is no folder '{path.parent}'. Make it first.")
    for left in path.parent.glob(f".{escape(path.name)}.*.unfinished"):
        if time.time() - left.stat().st_mtime > STALE:
            left.unlink(missing_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.unfinished")
    try:
        with open(unfinished, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    if os.name == "posix":  # the rename is on the disk when the folder is
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# ---- load


def load(path: StrPath, into: Tree = None, names: Mapping[str, str] | None = None) -> Any:
    """Read what ``save`` wrote, or any safetensors file; with ``into``, load it into those variables or that tree.

    Every name, shape and dtype of ``into`` must match, or nothing is assigned and the error lists the differences.
    Variables are assigned; arrays are replaced in the tree that is returned.  ``names`` maps names in the file to
    names in ``into``.

    path: the file.
    into: the variables or the tree to load into.
    names: names in ``into`` by names in the file.

    >>> import os, tempfile
    >>> w, b = pb.variable([1.0, 2.0], name="w1"), pb.variable(0.5, name="b1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     pb.train.save(path, [w, b])
    ...     _ = w.assign([0.0, 0.0])
    ...     pb.train.load(path, into=[w, b])
    [Variable([1., 2.], dtype=float32, name='w1'), Variable(0.5, dtype=float32, name='b1')]
    """
    where = os.path.basename(os.fspath(path))
    tensors, structure = _read(path)
    if into is None:
        if names is not None:
            raise ArgumentError("load: names maps names in the file to names in into, which is missing.")
        return tensors if structure is None else _rebuild(structure, tensors, where)
    found = dict(tensors) if structure is None else dict(_iterate_leaves(_rebuild(structure, tensors, where)))
    return assign_all(f"load: {where}", _rename("load", found, names), into, casts=False)


def load_weights(
    into: Tree,
    weights: Sequence[Any] | Mapping[str, Any],
    names: Sequence[str] | Mapping[str, str] | None = None,
) -> Tree:
    """Load a list of weights, as Keras's ``get_weights()`` returns, or a dict by name, into variables or a tree.

    ``names`` are their names in ``into``: for a list one name each, for a dict a map of its names; without it a list
    goes in order.  Floats of another width are cast.  Nothing is assigned unless everything matches.

    into: the variables or the tree to load into.
    weights: arrays by name.
    names: names in ``into`` by names in the file.

    >>> kernel, bias = pb.variable(np.zeros((2, 1)), name="kernel"), pb.variable(np.zeros(1), name="bias")
    >>> pb.train.load_weights([kernel, bias], [np.array([3.0]), np.array([[1.0], [2.0]])], ["bias", "kernel"])
    [Variable([[1.], [2.]], dtype=float64, name='kernel'), Variable([3.], dtype=float64, name='bias')]
    >>> weights = {"dense/kernel:0": np.array([[5.0], [6.0]]), "dense/bias:0": np.array([7.0])}
    >>> _ = pb.train.load_weights([kernel, bias], weights, {"dense/kernel:0": "kernel", "dense/bias:0": "bias"})
    >>> bias
    Variable([7.], dtype=float64, name='bias')
    """
    if isinstance(weights, Mapping):
        found = _rename("load_weights", dict(weights), names)
    elif isinstance(weights, list | tuple):
        if isinstance(names, Mapping) or (names is not None and len(names) != len(weights)):
            received = "a map" if isinstance(names, Mapping) else f"{len(names)} names"
            raise ArgumentError(
                f"load_weights: names must be a list of {len(weights)}, one for each weight, got {received}."
            )
        called = list(_collect_leaves("load_weights", _as_tree("load_weights", into)) if names is None else names)
        if len(called) != len(weights) or len(set(called)) != len(called):
            raise CheckpointError(
                f"load_weights: {len(weights)} weights for {len(called)} places: {', '.join(called)}. "
                "Give one name for each weight in names=[...]."
            )
        found = dict(zip(called, weights, strict=True))
    else:
        raise ArgumentError(f"load_weights: weights must be a list or a dict by name, got {type(weights).__name__}.")
    found = {name: as_array(x, subject=f"load_weights: {name!r}") for name, x in found.items()}
    return assign_all("load_weights", found, into, casts=True)


def _read(path: StrPath) -> tuple[dict[str, Any], Any]:
    """Return the arrays of a file by name, and the structure if ``save`` wrote it."""
    safetensors, where = import_package("safetensors", NEED, EXTRA), os.path.basename(os.fspath(path))
    if not os.path.isfile(path):
        raise FileNotFoundError(f"load: there is no file {os.fspath(path)!r}.")
    try:
        with safetensors.safe_open(os.fspath(path), framework="np") as file:
            header = (file.metadata() or {}).get(HEADER)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = None if header is None else json.loads(header)
        sums = {} if metadata is None else metadata["crc32"]
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"load: {where} is not a whole safetensors file with dtypes of NumPy ({error}). "
            "It was cut short, changed, or is a file of another kind; load an earlier one."
        ) from None
    if metadata is not None and metadata.get("format") != FORMAT:
        raise CheckpointError(f"load: {where} has format {metadata.get('format')}, this version reads {FORMAT}.")
    if wrong := sorted(name for name, crc in sums.items() if name not in tensors or zlib.crc32(tensors[name]) != crc):
        raise CheckpointError(f"load: {where} is damaged: {', '.join(wrong)} is not what was written.")
    return tensors, None if metadata is None else metadata["tree"]


def _rebuild(structure: Any, tensors: dict[str, Any], where: str) -> Tree:
    """Return the tree that the JSON describes.  Named tuples and dataclasses were written as dicts."""
    if structure is None:
        return None
    ((kind, inside),) = structure.items()
    if kind == "number":
        return inside
    if kind == "tensor":
        return tensors[inside][()]
    if kind == "dict":
        return {key: _rebuild(child, tensors, where) for key, child in inside}
    items = [_rebuild(child, tensors, where) for child in inside]
    return tuple(items) if kind == "tuple" else items


def _iterate_leaves(tree: Tree, where: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over the leaves with their names in a file."""
    if tree is None:
        return
    children = None if type(tree) in SCALARS else _list_branches(tree)
    if children is None:
        yield where or "value", tree
        return
    for key, child in children:
        yield from _iterate_leaves(child, f"{where}/{key}" if where else str(key))


def _collect_leaves(subject: str, tree: Tree) -> dict[str, Any]:
    """Return the leaves by their names; raise an error if two are the same."""
    places: dict[str, Any] = {}
    for name, leaf in _iterate_leaves(tree):
        if name in places:
            raise DataError(f"{subject}: two parts of the tree are both called {name!r}. Rename a key.")
        places[name] = leaf
    return places


def _rename(subject: str, found: dict[str, Any], names: object) -> dict[str, Any]:
    if names is None:
        return found
    if not isinstance(names, Mapping):
        raise ArgumentError(f"{subject}: names must be a map of names to names, got {type(names).__name__}.")
    if unknown := sorted(set(names) - set(found)):
        raise CheckpointError(f"{subject}: names has {', '.join(unknown)}; the file has: {', '.join(sorted(found))}.")
    renamed = {names.get(name, name): x for name, x in found.items()}
    if len(renamed) != len(found):
        raise ArgumentError(f"{subject}: names gives two weights the same name.")
    return renamed


# ---- assign

_skipped: ContextVar[list[str] | None] = ContextVar("_skipped", default=None)


def skip_mismatches() -> AbstractContextManager[list[str]]:
    """In this block, weights that do not fit are left out, and listed, where they are an error otherwise."""
    return bind(_skipped, [])


def raise_mismatches() -> AbstractContextManager[None]:
    """In this block, weights that do not fit are an error, also where they are left out otherwise."""
    return bind(_skipped, None)


def report_mismatch(before: str, subject: str) -> None:
    """Raise an error that says ``subject`` does not fit, after ``before``; where mismatches are skipped, note it."""
    skipped = _skipped.get()
    if skipped is None:
        raise CheckpointError(f"{before}{subject}")
    skipped.append(subject)


def assign_all(subject: str, found: dict[str, Any], into: Tree, casts: bool) -> Tree:
    """Assign variables and replace arrays, after checking that all names, shapes and dtypes match."""
    tree = _as_tree(subject, into)
    places = _collect_leaves(subject, tree)
    both = sorted(places.keys() & found.keys())
    different = {name: why for name in both if (why := _find_mismatch(places[name], found[name], casts))}
    parts = {
        "missing": sorted(places.keys() - found.keys()),
        "extra": sorted(found.keys() - places.keys()),
        "different": [f"{name} ({why})" for name, why in different.items()],
    }
    if any(parts.values()):
        differences = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in parts.items() if names)
        report_mismatch(f"{subject} does not fit, so nothing was assigned. ", f"{differences}.")
    fits = found.keys() - different.keys()
    new = iter([_fill(place, found[name]) if name in fits else place for name, place in places.items()])
    return map_leaves(lambda _: next(new), into, whole=is_python_number_list) if tree is into else into


def _find_mismatch(place: Any, x: Any, casts: bool) -> str:
    """Return why ``x`` does not fit this leaf; an empty text if it does."""
    if type(place) in SCALARS or type(x) in SCALARS:
        same = type(x) is type(place) or (type(x) is int and type(place) is float)
        return "" if same else f"{_describe_value(x)}, expected {_describe_value(place)}"
    expected = _as_full_array(place, "load")
    if x.shape != expected.shape:
        return f"shape {x.shape}, expected {expected.shape}"
    fits = np.can_cast(x.dtype, expected.dtype, "same_kind" if casts or is_python_number_list(place) else "equiv")
    return "" if fits else f"dtype {x.dtype}, expected {expected.dtype}"


def _describe_value(x: TensorLike) -> str:
    return type(x).__name__ if type(x) in SCALARS else f"an array of shape {np.shape(x)}"


def _fill(place: Any, x: Any) -> Any:
    """Return the leaf with its new value: a variable is assigned to, anything else is replaced."""
    if type(place) in SCALARS:
        return type(place)(x)
    array = np.asarray(x, _as_full_array(place, "load").dtype)
    if isinstance(place, Variable):
        return place.assign(array)
    if isinstance(place, Tensor):
        return constant(array[()])
    return array if isinstance(place, np.ndarray) else array[()]
