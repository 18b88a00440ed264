"""Event files of TensorBoard with scalars: a small writer, without TensorFlow."""

from __future__ import annotations

import os
import socket
import struct
import time
from functools import cache

POLYNOMIAL = 0x82F63B78  # of CRC-32C, reflected


class EventFile:
    """A file of events: numbers by name and step, each as a record with checksums."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}"
        self.path = os.path.join(folder, name)
        self._file = open(self.path, "wb")  # noqa: SIM115  # stays open between epochs
        self._write(_encode_bytes(3, b"brain.Event:2"))

    def add(self, name: str, value: float, step: int) -> None:
        """Write one number."""
        entry = _encode_bytes(1, name.encode()) + _encode_key(2, 5) + struct.pack("<f", value)
        self._write(_encode_key(2, 0) + _encode_integer(step) + _encode_bytes(5, _encode_bytes(1, entry)))

    def flush(self) -> None:
        """Write what is buffered to the disk."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, event: bytes) -> None:
        data = _encode_key(1, 1) + struct.pack("<d", time.time()) + event
        length = struct.pack("<Q", len(data))
        self._file.write(length + _checksum(length) + data + _checksum(data))


# ---- protocol buffers: a key is the number of a field and the kind of its value


def _encode_key(field: int, kind: int) -> bytes:
    return _encode_integer(field << 3 | kind)


def _encode_integer(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _encode_bytes(field: int, content: bytes) -> bytes:
    return _encode_key(field, 2) + _encode_integer(len(content)) + content


# ---- checksums


@cache
def _make_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def _checksum(data: bytes) -> bytes:
    """Return the CRC-32C of data, rotated and shifted as record files have it."""
    table, crc = _make_table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<I", masked)
