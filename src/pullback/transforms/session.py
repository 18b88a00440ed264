"""A session: open a tape, run a function on it, seed its results, walk back, and collect the gradients.

``pull`` does the last three, ``pull_again`` does them for a record that is used again.  ``grad`` has the same written
out for its one result, because it must be quick for the smallest functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

from pullback.core import hooks
from pullback.core.callers import reveal
from pullback.core.interpreter import new_level
from pullback.core.memory import node_of
from pullback.core.tape import TAPED, Tape, add_cotangent, walk_again
from pullback.core.tensor import LATER, Tensor
from pullback.core.variable import get_trace, is_watched, watch_below
from pullback.transforms.gates import open_gate
from pullback.transforms.recording import Recording

T = TypeVar("T")
UNCHANGED = nullcontext()
MIN_ROLLED_NODES = 100  # fewer are differentiated quickly one by one


def run_session(entry: str, body: Callable[..., T], xs: Any, dy: Any = None, call: Any = None) -> T:
    """Return ``body(tape, xs, dy, call)`` for a new tape, which is closed afterwards; observers know it as ``entry``.

    The body is a function of its own, so that none of its locals holds a tensor when the tape is closed.
    """
    if hooks.blocks and (observer := hooks.find("run_call")) is not None:
        observed: T = observer.run_call(entry, run_session, entry, body, xs, dy, call)
        return observed
    tape = Tape.open()
    try:
        return body(tape, xs, dy, call)
    except Exception as error:
        reveal(error)
        raise
    finally:
        tape.close()


def open_tape() -> AbstractContextManager[Tape]:
    """Return a context manager with a tape that is closed at its end."""
    tape = Tape.open()
    return _hold(tape, tape.close)


def open_recording() -> AbstractContextManager[Recording]:
    """Return a context manager with a tape whose nodes stay; afterwards its tensors are constants."""
    tape = Recording(new_level())
    return _hold(tape, tape.pause)


@contextmanager
def _hold(tape: T, end: Callable[[], None]) -> Iterator[T]:
    """Yield a tape, and call ``end`` after the block; tracebacks of the block's errors show the user's frames."""
    try:
        yield tape
    except Exception as error:
        reveal(error)
        raise
    finally:
        end()


def roll_long_tape(tape: Tape) -> None:
    """Put one node for all on a tape instead of many equal steps, if a program is being compiled."""
    if len(tape.nodes) >= MIN_ROLLED_NODES and not hooks.blocks and get_trace() is not None:
        LATER["roll_steps"](tape)


def pull(tape: Tape, results: list[Any], cotangents: Sequence[Any], leaves: Sequence[Any] = ()) -> list[Any]:
    """Seed results with cotangents, walk back, and return those of the leaves, None for one that is not reached.

    ``results`` is emptied: a reference to a large tensor would keep its buffer from being recycled.
    """
    if tape.above:
        roll_long_tape(tape)
    _seed(tape, results, cotangents)
    results.clear()
    tape.walk()
    return [open_gate(node_of(t).g) if type(t) in TAPED else None for t in leaves]


def _seed(tape: Tape, results: Sequence[Any], cotangents: Sequence[Any]) -> None:
    for z, g in zip(results, cotangents, strict=True):
        if tape.holds(z) and g is not None:
            value = z.read().beneath()
            add_cotangent(node_of(z), value.embed(g) if isinstance(value, Tensor) else g)


def pull_again(
    nodes: list[Tensor],
    level: int,
    seeds: Iterable[tuple[Any, Any]],
    leaves: Iterable[Tensor],
    collect: Callable[[], T],
    *,
    keep: bool = True,
    transposed: bool = False,
) -> T:
    """Seed nodes of a tape with cotangents, walk back, and return ``collect()``.

    The nodes stay, without their cotangents.  ``keep`` and ``transposed`` are those of ``walk_again``.
    """
    with watch_below(level) if is_watched() else UNCHANGED:
        try:
            for node, g in seeds:
                if node is not None and g is not None:
                    add_cotangent(node, g)
            walk_again(nodes, keep, transposed)
            return collect()
        finally:
            for r in (*nodes, *leaves):
                r.g = None
