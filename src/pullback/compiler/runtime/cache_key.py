"""The cache key of a traced graph: a digest of everything that its machine code depends on.

It covers the graph as it was traced, the compiler (by its files), the CPU and the target, and NumPy, which computes
constants.  A graph with data that has no canonical text, such as a user's function, has no key: its program is not
stored.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.compiler.ir.graph import Graph, Node, fingerprint
from pullback.compiler.ir.kinds import MAP, OPAQUE, PIECES, VIEW
from pullback.compiler.runtime.disk_cache import NO_CACHE, Cache, NoCache, compute_digest
from pullback.compiler.runtime.llvm import describe_translator
from pullback.compiler.target import Options, Target
from pullback.core.lowering import matrices, windows
from pullback.core.op import REGISTRY, Op

PACKAGE = __name__.split(".")[0]
PACKAGES = ("compiler", "core", "numerics", "ops")  # whose files decide what becomes of a graph
PRIMITIVES = (int, float, complex, bool, str, bytes, type(None), type(...))
MAX_VERBATIM = 64  # bytes of data that are in the text as they are; of longer data, the digest


class NoCanonicalText(Exception):  # noqa: N818
    """A value has no text that identifies it in another process."""


def make_cache_key(cache: Cache | NoCache, graph: Graph, target: Target, options: Options) -> bytes | None:
    """Return the key of the program for a traced graph; None if it cannot be stored."""
    lines = None if cache is NO_CACHE else _describe(graph, target, options)
    return None if lines is None else cache.make_key("program", *lines)


def _describe(graph: Graph, target: Target, options: Options) -> list[str] | None:
    """Return everything that a program depends on as text; None if some of it is meaningful in this process only."""
    description = _describe_compiler()
    if description is None:
        return None
    lines = [description, describe_translator(target), repr((*options, target.has_blas))]
    try:
        return lines + _describe_graph(graph, {})
    except NoCanonicalText:
        return None


def _describe_graph(graph: Graph, seen: dict[Any, int]) -> list[str]:
    """Return a graph as lines: what nodes are, each once, and then numbers for each node; ``seen`` numbers host ops."""
    texts: dict[str, int] = {}
    types: dict[Any, int] = {}  # the numbers of texts about kinds, shapes and dtypes
    views: dict[Any, int] = {}  # and of those about data of views and elementwise ops
    numbers: list[int] = []
    for n in graph.nodes:
        like, data = (n.kind, n.shape, n.dtype), n.data
        type_number = types.get(like)
        if type_number is None:
            type_number = types[like] = _number_text(texts, f"{n.kind.name} {n.shape} {canonical_text(n.dtype)}")
        is_short = n.kind is VIEW or (n.kind is MAP and not data[1])
        key = data if n.kind is VIEW else id(data[0]) if is_short else None
        data_number = views.get(key) if is_short else None
        if data_number is None:
            data_number = _number_text(texts, _describe_data(n, seen))
            if is_short:
                views[key] = data_number
        numbers += (type_number, data_number, len(n.args))
        numbers += [a.number for a in n.args]
    ends = f"{[n.number for n in graph.inputs]} {[n.number for n in graph.outputs]}"
    return [*texts, np.array(numbers, np.int64).tobytes().hex(), ends]


def _number_text(texts: dict[str, int], text: str) -> int:
    return texts.setdefault(text, len(texts))


def _describe_data(n: Node, seen: dict[Any, int]) -> str:
    """Return the data of a node as text."""
    data = n.data
    if n.kind is OPAQUE and not isinstance(getattr(data[0], "lower", None), matrices | windows):
        # which ones are the same matters; what they do only where it is known to the compiler
        return f"{seen.setdefault(fingerprint(data), len(seen))} {_describe_host_op(data)}"
    if n.kind is MAP and not data[1]:
        return canonical_text(data[0])
    if n.kind.has_bodies:
        lines_of_bodies = [line for body in data.bodies for line in _describe_graph(body, seen)]
        return "\n".join([repr(data.settings), *lines_of_bodies])
    return repr(data) if n.kind is VIEW or n.kind is PIECES else canonical_text(data)


def _describe_host_op(data: tuple[Any, dict[str, Any]]) -> str:
    try:
        return canonical_text(data)
    except NoCanonicalText:
        return f"? {data[0].name!r}"


def canonical_text(x: Any) -> str:
    """Return a text that identifies a value: equal only for values that are used in the same way.

    >>> canonical_text((1, True, -0.0, np.float32(2.0)))
    "tuple(1,True,-0.0,'<f4'()00000040,)"
    """
    kind: Any = type(x)
    if kind in PRIMITIVES:
        return repr(x)
    if isinstance(x, np.ndarray | np.generic):
        data = x.tobytes()
        digest = data if len(data) <= MAX_VERBATIM else compute_digest(data)
        return f"{_name_dtype(x.dtype)!r}{x.shape}{digest.hex()}"
    if kind is Op and _is_own(x):
        return f"op {x.name}"
    if kind is dict:
        return f"dict({''.join(f'{canonical_text(k)}:{canonical_text(v)},' for k, v in x.items())})"
    if kind in (tuple, list) or (isinstance(x, tuple) and kind.__module__.split(".")[0] == PACKAGE):
        return f"{kind.__name__}({''.join(f'{canonical_text(y)},' for y in x)})"
    if kind is slice:
        return f"slice({canonical_text(x.start)},{canonical_text(x.stop)},{canonical_text(x.step)})"
    if isinstance(x, np.dtype):
        return f"dtype {_name_dtype(x)}"
    if kind is type and x.__module__ in ("builtins", "numpy"):
        return f"type {x.__module__}.{x.__qualname__}"
    raise NoCanonicalText(x)


def _is_own(op: Op) -> bool:
    """Return whether an op is this library's, so that its name identifies what it does."""
    home = op.function.__module__.split(".")
    return REGISTRY.get(op.name) is op and home[0] == PACKAGE and home[1] in PACKAGES


def _name_dtype(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype that the name determines."""
    name: str = dtype.str
    if dtype.kind not in "biufcSU":
        raise NoCanonicalText(dtype)
    return name


@lru_cache(1)
def _describe_compiler() -> str | None:
    """Return the version of the compiler, by size and time of its files; None if they cannot be read."""
    package = sys.modules[PACKAGE]
    folder = os.path.dirname(str(package.__file__))
    try:
        files = sorted(file for name in PACKAGES for file in _list_files(os.path.join(folder, name)))
    except OSError:
        return None
    return f"{package.__version__} {files} {sys.version} {np.__version__} {np.__file__}" if files else None


def _list_files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of the Python files in a directory and those below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                yield from _list_files(entry.path)
