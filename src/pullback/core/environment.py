"""The environment of a traced function: settings that its results depend on besides its arguments.

These are the default dtype, overridden gradients, ``strong_zero`` and so on.  They are part of the key of a compiled
program.  Its native entry runs no Python that could compare them; it reads a word in memory instead, which is 0 exactly
while every thread has the environment that the program was traced in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from ctypes import addressof, c_int64
from threading import Lock

Read = Callable[[], Hashable]
_parts: list[tuple[Read, Read]] = []
_words: dict[Hashable, c_int64] = {}  # the word of each environment that a program was traced in
_lock = Lock()
_blocks = 0  # the number of open blocks, in all threads


def add_part(read: Read, read_process: Read = lambda: None) -> None:
    """Add a setting to the environment: functions that return its value in this context, and outside all blocks.

    Both return None where the value is the one at the start of the process.
    """
    _parts.append((read, read_process))


def get_environment() -> tuple[Hashable, ...]:
    """Return all settings that differ, in this context, from those at the start of the process."""
    return tuple([value for read, _ in _parts if (value := read()) is not None])


def process_environment() -> tuple[Hashable, ...]:
    """Return the environment of a thread that has entered no block."""
    return tuple([value for _, read_process in _parts if (value := read_process()) is not None])


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
