"""Object code on disk: found again, never believed when it could be another's, and nobody's trouble when it fails."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler import cache as caches
from pullback.compiler.cache import Cache, default_cache
from pullback.compiler.image import possible

KEY = Cache("", 0).key("question")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(str(tmp_path / "kept"), 1 << 20)


def only_file(cache: Cache) -> Path:
    (path,) = Path(cache.path).iterdir()
    return path


def test_what_is_kept_is_found(cache: Cache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, b"answer")
    assert cache.get(KEY) == b"answer"
    assert cache.get(cache.key("another question")) is None
    assert Cache(cache.path, 1 << 20).get(KEY) == b"answer"


def test_keys_differ_where_questions_do() -> None:
    c = Cache("", 0)
    assert len({c.key("ab", "c"), c.key("a", "bc"), c.key("abc"), c.key("ab", "c", "")}) == 4


@pytest.mark.skipif(os.name == "nt", reason="permissions of another kind")
def test_nobody_else_may_read_it(cache: Cache) -> None:
    cache.put(KEY, b"answer")
    assert stat.S_IMODE(os.stat(cache.path).st_mode) == 0o700
    assert stat.S_IMODE(only_file(cache).stat().st_mode) == 0o600


DAMAGE = {
    "cut short": lambda b: b[:-1],
    "empty": lambda b: b"",
    "only the head": lambda b: b[:72],
    "longer": lambda b: b + b"!",
    "a bit of the body": lambda b: b[:-2] + bytes([b[-2] ^ 1]) + b[-1:],
    "a bit of the sum": lambda b: b[:50] + bytes([b[50] ^ 1]) + b[51:],
    "a bit of the key": lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:],
    "another kind of file": lambda b: b"pullbacX" + b[8:],
    "noise": lambda b: os.urandom(len(b)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_not_believed_and_is_replaced(cache: Cache, damage: Any) -> None:
    cache.put(KEY, b"the answer")
    path = only_file(cache)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(KEY) is None
    assert not path.exists()
    cache.put(KEY, b"the answer")
    assert cache.get(KEY) == b"the answer"


def test_an_answer_to_another_question_is_not_believed(cache: Cache) -> None:
    cache.put(KEY, b"answer")
    path = only_file(cache)
    other = cache.key("another question")
    path.rename(cache._file(other))
    assert cache.get(other) is None


@pytest.mark.skipif(os.name == "nt", reason="permissions of another kind")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_believed(cache: Cache, mode: int) -> None:
    cache.put(KEY, b"answer")
    only_file(cache).chmod(mode)
    assert cache.get(KEY) is None


@pytest.mark.skipif(os.name == "nt", reason="permissions of another kind")
def test_a_directory_that_others_may_write_is_not_used(cache: Cache) -> None:
    cache.put(KEY, b"answer")
    os.chmod(cache.path, 0o770)
    assert cache.get(KEY) is None
    cache.put(cache.key("more"), b"answer")
    assert len(list(Path(cache.path).iterdir())) == 1


@pytest.mark.skipif(os.name == "nt", reason="no such owners")
def test_what_another_user_left_is_not_believed(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(KEY, b"answer")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert cache.get(KEY) is None


@pytest.mark.skipif(os.name == "nt", reason="no such links")
def test_a_link_is_not_followed(cache: Cache, tmp_path: Path) -> None:
    cache.put(KEY, b"answer")
    path = only_file(cache)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get(KEY) is None


@pytest.mark.parametrize("call", ["open", "replace", "makedirs", "lstat", "scandir", "utime", "unlink"])
def test_no_failure_of_the_disk_is_raised(cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    cache.put(KEY, b"answer")

    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caches.os, call, full)
    cache.written = cache.most
    cache.put(cache.key("more"), b"answer")
    assert cache.get(KEY) in (None, b"answer")
    monkeypatch.undo()
    assert cache.get(KEY) == b"answer"
    assert not [p for p in Path(cache.path).iterdir() if p.suffix != ".code" and call != "unlink" and call != "replace"]


def test_those_not_used_for_the_longest_time_go_first(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "kept"), 10_000)
    keys = [cache.key(str(i)) for i in range(9)]
    for age, key in enumerate(keys):
        cache.put(key, bytes(1000))
        os.utime(cache._file(key), (1000 + age, 1000 + age))
    assert cache.get(keys[0])  # used again: now the newest
    cache.put(cache.key("large"), bytes(3000))
    left = [key for key in keys if cache.get(key)]
    assert keys[0] in left
    assert keys[-1] in left
    assert keys[1] not in left
    assert sum(p.stat().st_size for p in Path(cache.path).iterdir()) <= 10_000
    cache.put(cache.key("larger than all"), bytes(20_000))
    assert cache.get(cache.key("larger than all")) is None


def test_the_environment_says_where_and_how_much(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PULLBACK_CACHE_SIZE", "1.5")
    assert (default_cache().path, default_cache().most) == (str(tmp_path), 3 << 19)
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    assert default_cache().get(default_cache().key("x")) is None
    assert caches.described() == "not kept on disk"


# ---- programs


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("PULLBACK_CACHE", raising=False)
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def answer(**options: Any) -> Any:
    return pb.compile(lambda x: x * 2.0 + 1.25, **options)(np.arange(5.0))


def test_a_program_is_loaded_where_it_was_kept(kept: Path) -> None:
    first = answer()
    files = {p: p.read_bytes() for p in kept.iterdir()}
    assert files
    program = pb.compile(lambda x: x * 2.0 + 1.25).lower(np.arange(5.0))
    assert "codegen" not in program.stats
    np.testing.assert_array_equal(answer(), first)
    assert {p: p.read_bytes() for p in kept.iterdir()} == files


def test_a_program_may_ask_not_to_be_kept(kept: Path) -> None:
    np.testing.assert_array_equal(answer(cache=False), [1.25, 3.25, 5.25, 7.25, 9.25])
    assert "codegen" in pb.compile(lambda x: x * 2.0 + 1.25, cache=False).lower(np.arange(5.0)).stats


def test_a_damaged_program_is_compiled_again(kept: Path) -> None:
    first = answer()
    for path in kept.iterdir():
        path.write_bytes(path.read_bytes()[:-40] + bytes(40))
    program = pb.compile(lambda x: x * 2.0 + 1.25).lower(np.arange(5.0))
    assert "codegen" in program.stats
    np.testing.assert_array_equal(answer(), first)


def test_a_place_that_cannot_be_written_is_no_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "file" / "below"))
    np.testing.assert_array_equal(answer(), [1.25, 3.25, 5.25, 7.25, 9.25])


CHILD = """
import sys, numpy as np, pullback as pb
for i in range(6):
    f = pb.compile(pb.value_and_grad(lambda x: pb.sum(x * x * float(i + 1))))
    assert f(np.ones(4)).value == 4.0 * (i + 1)
print("llvmlite.binding" in sys.modules)
"""


def test_several_processes_at_once(kept: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for child in children:
        _, problem = child.communicate(timeout=120)
        assert child.returncode == 0, problem
    assert all(p.suffix == ".code" for p in kept.iterdir())


@pytest.mark.skipif(not possible(), reason="images are for ELF on x86-64")
def test_llvm_is_not_imported_for_what_is_kept(kept: Path) -> None:
    said = [
        subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=120, check=True).stdout
        for _ in "12"
    ]
    assert said == ["True\n", "False\n"]
