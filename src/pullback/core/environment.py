"""What a traced function means besides its arguments: the default dtype, overridden gradients, strong_zero and so on.

A compiled program is kept by ``environment()`` too.  Its native entry runs no Python that could compute it; it reads a
word instead, which is 0 exactly while every thread has the environment that the program was traced in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from ctypes import addressof, c_int64
from threading import Lock

__all__: list[str] = []

Read = Callable[[], Hashable]
_parts: list[tuple[Read, Read]] = []
_words: dict[Hashable, c_int64] = {}  # by the environment of the programs that read it
_lock = Lock()
_blocks = 0  # that are open, in all threads


def add_part(here: Read, everywhere: Read = lambda: None) -> None:
    """Make something part of the environment: what it is in this context, and outside of all blocks.

    Both give None where nothing is different from what it is when the process starts.
    """
    _parts.append((here, everywhere))


def get_environment() -> tuple[Hashable, ...]:
    """Return everything that differs, in this context, from what it is when the process starts."""
    return tuple([value for here, _ in _parts if (value := here()) is not None])


def process_environment() -> tuple[Hashable, ...]:
    """Return the environment of a thread that has entered no block."""
    return tuple([value for _, everywhere in _parts if (value := everywhere()) is not None])


def change_blocks(count: int) -> None:
    """Count a block that changes the environment of its thread: it begins (1) or ends (-1)."""
    global _blocks
    with _lock:
        _blocks += count
        _set_words()


def change_process() -> None:
    """Note that the environment of the process has changed."""
    with _lock:
        _set_words()


def word_of(env: Hashable) -> int:
    """Return the address of the word that is 0 while ``env`` is the environment of every thread."""
    with _lock:
        if env not in _words:
            _words[env] = c_int64()
            _set_words()
        return addressof(_words[env])


def _set_words() -> None:
    now = process_environment()
    for env, word in _words.items():
        word.value = _blocks + (env != now)
