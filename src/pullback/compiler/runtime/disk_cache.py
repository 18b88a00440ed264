"""The disk cache of object code, so that a program is compiled once and not once per process.

Its contents are executed, so only files that this library wrote are used: the directory and the file must belong to the
user and be writable by no one else, and the file must contain its own cache key and a checksum.  Anything else is a
miss.  Nothing here raises: without a disk, or with a full one, programs are compiled again.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress

from pullback.settings import is_enabled

try:
    from _blake2 import blake2b  # what hashlib gives too, after some milliseconds of import
except ImportError:
    from hashlib import blake2b

MAGIC = b"pullback"
FORMAT = b"image 1"
MAX_BYTES = 256 << 20
OTHERS = stat.S_IWGRP | stat.S_IWOTH
SUFFIX = ".code"
READING = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))  # no link, and no pipe
STALE_SECONDS = 3600.0  # after which a file that was never finished is no longer being written
MEASURED = "measured"  # the file whose time is that at which the directory was last measured
MEASURED_SECONDS = 3600.0  # in which processes that write little do not measure it: 10,000 files take 60 ms


def get_directory() -> str:
    """Return the cache directory: ``PULLBACK_CACHE_DIR``, or one among the user's caches."""
    chosen = os.environ.get("PULLBACK_CACHE_DIR")
    if chosen:
        return chosen
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "pullback")


def get_limit() -> int:
    """Return how many bytes may be kept: ``PULLBACK_CACHE_SIZE`` megabytes."""
    with suppress(ValueError, OverflowError):
        return int(float(os.environ.get("PULLBACK_CACHE_SIZE", "")) * (1 << 20))
    return MAX_BYTES


def compute_digest(*parts: bytes) -> bytes:
    """Return a digest of several texts, which differs also if bytes move from one to the next."""
    total = blake2b(digest_size=32)
    for part in parts:
        total.update(len(part).to_bytes(8, "little") + part)
    return total.digest()


class Cache:
    """Files by key, in one directory."""

    def __init__(self, path: str, most: int) -> None:
        self.path, self.most = path, most
        self.written: int | None = None  # bytes since the directory was measured; None before the first write

    def make_key(self, *parts: str) -> bytes:
        """Return the key for texts that describe all that the entry depends on."""
        return compute_digest(FORMAT, *(p.encode() for p in parts))

    def _find_path(self, key: bytes) -> str:
        return os.path.join(self.path, key.hex()[:40] + SUFFIX)

    def _is_ours(self, found: os.stat_result) -> bool:
        owner = getattr(os, "geteuid", lambda: found.st_uid)()
        return found.st_uid == owner and (os.name == "nt" or not found.st_mode & OTHERS)

    def get(self, key: bytes) -> bytes | None:
        """Return what was kept under a key; None if it is missing or damaged."""
        path = self._find_path(key)
        try:
            status = os.lstat(self.path)
            if not stat.S_ISDIR(status.st_mode) or not self._is_ours(status):
                return None
            handle = os.open(path, os.O_RDONLY | READING)
        except (OSError, ValueError):
            return None
        try:
            with open(handle, "rb") as file:
                found = os.fstat(handle)
                data = file.read() if stat.S_ISREG(found.st_mode) and self._is_ours(found) else b""
        except OSError:
            return None
        head, body = data[:72], data[72:]
        if head != MAGIC + key + compute_digest(key, body):
            with suppress(OSError):
                os.unlink(path)
            return None
        with suppress(OSError):
            os.utime(path)  # the oldest go first, when the cache is full
        return body

    def put(self, key: bytes, body: bytes) -> None:
        """Keep ``body`` under a key; a concurrent reader finds all of it or nothing."""
        path = self._find_path(key)
        own = f"{path}.{os.getpid()}.{id(body)}"
        try:
            os.makedirs(self.path, 0o700, exist_ok=True)
            if not self._is_ours(os.lstat(self.path)):
                return
            if self.written is None:
                self.written = 0 if self._is_measured() else self.most
            if self.written + len(body) > self.most // 16:
                self.shrink(self.most - len(body))
                self._note_measured()
                self.written = 0
            if len(body) > self.most:
                return
            handle = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            try:
                with open(handle, "wb") as file:
                    file.write(MAGIC + key + compute_digest(key, body) + body)
                os.replace(own, path)
                self.written += len(body)
            except OSError:
                os.unlink(own)
        except (OSError, ValueError):
            return

    def _is_measured(self) -> bool:
        """Return whether this or another process measured the directory lately."""
        try:
            then, now = os.lstat(os.path.join(self.path, MEASURED)).st_mtime, os.lstat(self.path).st_mtime
        except OSError:
            return False
        return 0 <= now - then < MEASURED_SECONDS

    def _note_measured(self) -> None:
        with suppress(OSError):
            handle = os.open(os.path.join(self.path, MEASURED), os.O_WRONLY | os.O_CREAT | READING, 0o600)
            os.close(handle)
            os.utime(os.path.join(self.path, MEASURED))

    def list_entries(self) -> list[tuple[float, int, str]]:
        """Return time of last use, size and path of every file, unfinished ones too."""
        found = []
        with suppress(OSError), os.scandir(self.path) as files:
            for file in files:
                if SUFFIX in file.name:
                    with suppress(OSError):
                        status = file.stat(follow_symlinks=False)
                        found.append((status.st_mtime, status.st_size, file.path))
        return sorted(found)

    def shrink(self, most: int) -> None:
        """Remove the least recently used files until no more than ``most`` bytes are left."""
        found = self.list_entries()
        now = max((when for when, _, _ in found), default=0.0)
        total = sum(size for _, size, _ in found)
        for when, size, path in found:
            unfinished = not path.endswith(SUFFIX)
            if (unfinished and now - when > STALE_SECONDS) or (total > most and not unfinished):
                with suppress(OSError):
                    os.unlink(path)
                total -= size


class NoCache:
    """A cache that keeps nothing."""

    def make_key(self, *parts: str) -> bytes:
        return b""

    def get(self, key: bytes) -> bytes | None:
        return None

    def put(self, key: bytes, body: bytes) -> None:
        pass


NO_CACHE = NoCache()
_caches: dict[tuple[str, int], Cache] = {}


def get_default_cache() -> Cache | NoCache:
    """Return the cache that the environment sets; one that keeps nothing if it is switched off."""
    if not is_enabled("disk cache"):
        return NO_CACHE
    place = get_directory(), get_limit()
    if not os.path.isabs(place[0]) and "PULLBACK_CACHE_DIR" not in os.environ:  # a user without a home directory
        return NO_CACHE
    return _caches.setdefault(place, Cache(*place))


def describe_cache() -> str:
    """Return a line on where the cache is and how large."""
    cache = get_default_cache()
    if isinstance(cache, NoCache):
        return "not kept on disk"
    found = cache.list_entries()
    size, most = sum(size for _, size, _ in found) / (1 << 20), cache.most / (1 << 20)
    return f"{cache.path}: {len(found)} files, {size:.1f} of at most {most:.0f} MB"
