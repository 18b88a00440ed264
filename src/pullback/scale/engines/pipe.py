"""A pipe between two processes: messages of several parts, which are not copied on their way.

``multiprocessing.Pipe`` copies a long message several times.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from functools import cache
from multiprocessing.connection import wait
from typing import Any

COUNT = struct.Struct("<Q")
FIRST_BYTES = 2**16  # that are read at once: all of a short message
BUFFER_BYTES = 2**22  # that the system is asked to hold between the processes


class Pipe:
    """One end of a pipe.  A message is read before the other end sends the next one."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, parts: Sequence[Any]) -> None:
        """Send a message: parts that are bytes, or buffers of them."""
        sizes = list(map(len, parts))
        head = _make_head(len(sizes)).pack(len(sizes), *sizes)
        if sum(sizes) < FIRST_BYTES:
            self.end.sendall(b"".join((head, *parts)))
            return
        for part in (head, *parts):
            self.end.sendall(part)

    def receive(self) -> list[memoryview]:
        """Return the parts of the next message; an EOFError if the other end is closed."""
        data: Any = self._read()
        while len(data) < COUNT.size:
            data += self._read()
        head = _make_head(*COUNT.unpack_from(data))
        while len(data) < head.size:
            data += self._read()
        sizes, start = head.unpack_from(data)[1:], head.size
        if (missing := start + sum(sizes) - len(data)) > 0:
            data = self._read_rest(data, missing)
        view, parts = memoryview(data), []
        for size in sizes:
            parts.append(view[start : start + size])
            start += size
        return parts

    def _read(self) -> bytes:
        data = self.end.recv(FIRST_BYTES)
        if not data:
            raise EOFError
        return data

    def _read_rest(self, begin: bytes, missing: int) -> bytearray:
        data = bytearray(len(begin) + missing)
        data[: len(begin)] = begin
        left = memoryview(data)[len(begin) :]
        while left:
            count = self.end.recv_into(left)
            if not count:
                raise EOFError
            left = left[count:]
        return data

    def has_message(self, timeout: float) -> bool:
        """Return whether there is something to read within some seconds."""
        return bool(wait([self.end], timeout))

    def close(self) -> None:
        """Close this end."""
        self.end.close()


@cache
def _make_head(count: int) -> struct.Struct:
    """Return what a message begins with: the number of its parts, and their lengths."""
    return struct.Struct(f"<{count + 1}Q")


def open_pipe() -> tuple[Pipe, Pipe]:
    """Return the two ends of a new pipe.

    >>> here, there = open_pipe()
    >>> here.send([b"one", b"two"])
    >>> [bytes(part) for part in there.receive()]
    [b'one', b'two']
    >>> here.close(), there.close()
    (None, None)
    """
    ends = socket.socketpair()
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    return Pipe(ends[0]), Pipe(ends[1])
