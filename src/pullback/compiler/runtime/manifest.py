"""The manifest of a program: what is needed to run its machine code, as plain data.

It is kept on disk as text, beside the object code, so that another process that traces the same graph need not run
the compiler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Graph
from pullback.compiler.ir.kinds import CONSTANT, KINDS, Kind
from pullback.compiler.runtime.disk_cache import compute_digest

MAX_CONSTANT_BYTES = 1 << 20  # of constants that are kept, of those that are not in the graph as it was traced


class ArraySlot(NamedTuple):
    """An array that the program is given, or makes."""

    kind: Kind
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


class HostOpRecord(NamedTuple):
    """An op that NumPy runs: its node in the traced graph, or else in the legalized one, and its slots."""

    traced: int  # number of the node in the traced graph; -1 if it is not there
    legalized_number: int  # that of the node in the legalized graph
    reads: list[int]  # slots of its operands
    parts: list[tuple[int, int]]  # the slot of each result that is used, and its place; -1 for the only one


class Segment(NamedTuple):
    """A segment of machine code, or a host op between segments."""

    name: str
    slots: list[int]
    host_op: HostOpRecord | None


class HeldArray(NamedTuple):
    """An array that the program holds: that of a node of the traced graph, or these bytes."""

    slot: int
    traced: int
    bytes: str


@dataclass(frozen=True)
class Manifest:
    """What is needed to run the machine code of a program."""

    code: str = ""  # the key under which that is kept
    imports: tuple[str, ...] = ()  # names of the library functions that it calls
    segments: tuple[Segment, ...] = ()  # in the order in which they are run
    slots: tuple[ArraySlot, ...] = ()
    inputs: tuple[int, ...] = ()  # slots
    outputs: tuple[int, ...] = ()  # slots
    constants: tuple[HeldArray, ...] = ()
    arena: int = 0  # bytes
    blocks: tuple[tuple[int, int], ...] = ()  # of the arena, if pages that cannot be accessed lie between them
    releases_gil: bool = False  # while it runs: it takes long enough for other threads to gain by it
    described: tuple[str, ...] = ()  # what each step does, in a line
    flags_rare: bool = False  # its code has no slow paths, and tells where one is needed


class Contents(NamedTuple):
    """What a program consists of besides machine code."""

    manifest: Manifest
    constants: dict[int, Any]  # arrays, by slot
    host_ops: tuple[tuple[Any, dict[str, Any]], ...]  # op and parameters of each, in order

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in vars(self.manifest).items())


def pack_contents(contents: Contents, traced: Graph) -> bytes | None:
    """Return a manifest as text, with the constants.

    None if these are too large, or of a dtype that cannot be written.
    """
    manifest, arrays, _ = contents
    if any(s.dtype.kind not in "biufc" for s in manifest.slots):
        return None
    numbers = {_fingerprint(n.data): n.number for n in traced.nodes if n.kind is CONSTANT} if arrays else {}
    found = [(slot, numbers.get(_fingerprint(x), -1), x) for slot, x in arrays.items()]
    if sum(x.nbytes for _, at, x in found if at < 0) > MAX_CONSTANT_BYTES:
        return None
    manifest = replace(
        manifest, constants=tuple(HeldArray(i, at, "" if at >= 0 else x.tobytes().hex()) for i, at, x in found)
    )
    slots = [(s.kind.name, s.shape, s.dtype.str) for s in manifest.slots]
    return json.dumps({**vars(manifest), "slots": slots}, separators=(",", ":")).encode()


def _fingerprint(x: Any) -> Any:
    return x.shape, x.dtype.str, compute_digest(x.tobytes())


def unpack_contents(data: bytes, traced: Graph, get_legalized: Callable[[], Graph]) -> Contents:
    """Return the contents of a program that was packed; ValueError or LookupError if they are not of this graph."""
    manifest = _unpack_manifest(data)
    return Contents(manifest, _unpack_constants(manifest, traced), _find_host_ops(manifest, traced, get_legalized))


def _unpack_constants(manifest: Manifest, traced: Graph) -> dict[int, Any]:
    found = {}
    for slot, at, text in manifest.constants:
        _, shape, dtype = manifest.slots[slot]
        if at < 0:
            found[slot] = (np.frombuffer(bytes.fromhex(text), dtype) if text else np.zeros(0, dtype)).reshape(shape)
        elif traced.nodes[at].kind is CONSTANT and (traced.nodes[at].shape, traced.nodes[at].dtype) == (shape, dtype):
            found[slot] = traced.nodes[at].data
        else:
            raise ValueError("no manifest of this graph")
    return found


def _find_host_ops(
    manifest: Manifest, traced: Graph, get_legalized: Callable[[], Graph]
) -> tuple[tuple[Any, dict[str, Any]], ...]:
    wanted = [s.host_op for s in manifest.segments if s.host_op is not None]
    legalized = get_legalized() if any(h.traced < 0 for h in wanted) else None
    nodes = [
        traced.nodes[h.traced] if legalized is None or h.traced >= 0 else legalized.nodes[h.legalized_number]
        for h in wanted
    ]
    return tuple(n.data for n in nodes)


def _unpack_manifest(data: bytes) -> Manifest:
    try:
        found = json.loads(data)
        if found.keys() != {f.name for f in fields(Manifest)}:
            raise ValueError("no manifest: there is something else in it")
        found["slots"] = tuple(
            ArraySlot(KINDS[kind], tuple(shape), np.dtype(dtype)) for kind, shape, dtype in found["slots"]
        )
        found["segments"] = tuple(
            Segment(a, b, HostOpRecord(*c) if c is not None else None) for a, b, c in found["segments"]
        )
        found["constants"] = tuple(HeldArray(*c) for c in found["constants"])
        manifest = Manifest(**found)
        named = [
            *manifest.inputs,
            *manifest.outputs,
            *(c.slot for c in manifest.constants),
            *(i for s in manifest.segments for i in s.slots),
        ]
        if not all(0 <= i < len(manifest.slots) for i in named):
            raise ValueError("no manifest: it names slots that it does not have")
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"no manifest: {error}") from None
    return manifest
