"""The disk cache of object code: hits, damaged and foreign files, eviction, disk errors, and loading of images."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler import target
from pullback.compiler.runtime import disk_cache, llvm
from pullback.compiler.runtime.abi.object_loader import Image, Loaded, has_loader, link_object, pack_image
from pullback.compiler.runtime.disk_cache import Cache, get_default_cache
from pullback.compiler.target import get_own_target
from pullback.settings import SAFE

needs_cache = pytest.mark.skipif(SAFE in os.environ, reason="the disk cache is off")

KEY = Cache("", 0).make_key("graph")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(str(tmp_path / "kept"), 1 << 20)


def only_file(cache: Cache) -> Path:
    (path,) = Path(cache.path).glob("*.code*")
    return path


def test_cache_get_returns_stored_bytes(cache: Cache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, b"answer")
    assert cache.get(KEY) == b"answer"
    assert cache.get(cache.make_key("another graph")) is None
    assert Cache(cache.path, 1 << 20).get(KEY) == b"answer"


def test_cache_keys_differ_by_parts() -> None:
    c = Cache("", 0)
    assert len({c.make_key("ab", "c"), c.make_key("a", "bc"), c.make_key("abc"), c.make_key("ab", "c", "")}) == 4


@pytest.mark.skipif(os.name == "nt", reason="permissions of another kind")
def test_cache_files_are_private(cache: Cache) -> None:
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
def test_cache_replaces_damaged_file(cache: Cache, damage: Any) -> None:
    cache.put(KEY, b"the answer")
    path = only_file(cache)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(KEY) is None
    assert not path.exists()
    cache.put(KEY, b"the answer")
    assert cache.get(KEY) == b"the answer"


def test_cache_rejects_file_of_another_key(cache: Cache) -> None:
    cache.put(KEY, b"answer")
    path = only_file(cache)
    other = cache.make_key("another graph")
    path.rename(cache._find_path(other))
    assert cache.get(other) is None


@pytest.mark.skipif(os.name == "nt", reason="permissions of another kind")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_cache_rejects_file_others_may_write(cache: Cache, mode: int) -> None:
    cache.put(KEY, b"answer")
    only_file(cache).chmod(mode)
    assert cache.get(KEY) is None


@pytest.mark.skipif(os.name == "nt", reason="permissions of another kind")
def test_cache_rejects_directory_others_may_write(cache: Cache) -> None:
    cache.put(KEY, b"answer")
    os.chmod(cache.path, 0o770)
    assert cache.get(KEY) is None
    cache.put(cache.make_key("more"), b"answer")
    assert len(list(Path(cache.path).glob("*.code*"))) == 1


@pytest.mark.skipif(os.name == "nt", reason="no such owners")
def test_cache_rejects_file_of_another_user(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(KEY, b"answer")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert cache.get(KEY) is None


@pytest.mark.skipif(os.name == "nt", reason="no such links")
def test_cache_does_not_follow_links(cache: Cache, tmp_path: Path) -> None:
    cache.put(KEY, b"answer")
    path = only_file(cache)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get(KEY) is None


@pytest.mark.parametrize("call", ["open", "replace", "makedirs", "lstat", "scandir", "utime", "unlink"])
def test_cache_ignores_disk_errors(cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    cache.put(KEY, b"answer")

    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    cache.written = cache.most
    cache.put(cache.make_key("more"), b"answer")
    assert cache.get(KEY) in (None, b"answer")
    monkeypatch.undo()
    assert cache.get(KEY) == b"answer"
    if call not in ("unlink", "replace"):
        assert not [p for p in Path(cache.path).glob("*.code*") if p.suffix != ".code"]


def test_cache_evicts_least_recently_used(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "kept"), 10_000)
    keys = [cache.make_key(str(i)) for i in range(9)]
    for age, key in enumerate(keys):
        cache.put(key, bytes(1000))
        os.utime(cache._find_path(key), (1000 + age, 1000 + age))
    assert cache.get(keys[0])  # used again: now the newest
    cache.put(cache.make_key("large"), bytes(3000))
    left = [key for key in keys if cache.get(key)]
    assert keys[0] in left
    assert keys[-1] in left
    assert keys[1] not in left
    assert sum(p.stat().st_size for p in Path(cache.path).glob("*.code*")) <= 10_000
    cache.put(cache.make_key("larger than all"), bytes(20_000))
    assert cache.get(cache.make_key("larger than all")) is None


def test_cache_measures_directory_at_most_hourly_for_small_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = []
    monkeypatch.setattr(Cache, "shrink", lambda self, most: measured.append(most))
    for i in range(3):  # three processes
        Cache(str(tmp_path), 10_000).put(KEY, bytes(10 + i))
    assert len(measured) == 1
    os.utime(tmp_path / "measured", (1000, 1000))
    Cache(str(tmp_path), 10_000).put(KEY, bytes(10))
    assert len(measured) == 2
    Cache(str(tmp_path), 10_000).put(KEY, bytes(1000))  # a process that writes much does in any case
    assert len(measured) == 3


@needs_cache
def test_cache_directory_and_size_from_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PULLBACK_CACHE", raising=False)
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PULLBACK_CACHE_SIZE", "1.5")
    assert (get_default_cache().path, get_default_cache().most) == (str(tmp_path), 3 << 19)
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    assert get_default_cache().get(get_default_cache().make_key("x")) is None
    assert disk_cache.describe_cache() == "not kept on disk"


# ---- programs


@pytest.fixture
def cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("PULLBACK_CACHE", raising=False)
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def answer(**options: Any) -> Any:
    return pb.compile(lambda x: x * 2.0 + 1.25, **options)(np.arange(5.0))


@needs_cache
def test_program_is_loaded_from_cache(cache_dir: Path) -> None:
    first = answer()
    files = {p: p.read_bytes() for p in cache_dir.glob("*.code*")}
    assert files
    program = pb.compile(lambda x: x * 2.0 + 1.25).lower(np.arange(5.0))
    assert "codegen" not in program.stats
    np.testing.assert_array_equal(answer(), first)
    assert {p: p.read_bytes() for p in cache_dir.glob("*.code*")} == files


def test_compile_without_cache(cache_dir: Path) -> None:
    np.testing.assert_array_equal(answer(cache=False), [1.25, 3.25, 5.25, 7.25, 9.25])
    assert "codegen" in pb.compile(lambda x: x * 2.0 + 1.25, cache=False).lower(np.arange(5.0)).stats


@needs_cache
def test_cache_recompiles_damaged_program(cache_dir: Path) -> None:
    first = answer()
    for path in cache_dir.glob("*.code*"):
        path.write_bytes(path.read_bytes()[:-40] + bytes(40))
    program = pb.compile(lambda x: x * 2.0 + 1.25).lower(np.arange(5.0))
    assert "codegen" in program.stats
    np.testing.assert_array_equal(answer(), first)


def test_cache_in_unwritable_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "file" / "below"))
    np.testing.assert_array_equal(answer(), [1.25, 3.25, 5.25, 7.25, 9.25])


CHILD = """
import sys, numpy as np, pullback as pb
for i in range(3):
    f = pb.compile(pb.value_and_grad(lambda x: pb.sum(x * x * float(i + 1))))
    assert f(np.ones(4)).value == 4.0 * (i + 1)
print("llvmlite.binding" in sys.modules)
"""


@needs_cache
def test_cache_shared_by_processes(cache_dir: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for child in children:
        _, problem = child.communicate(timeout=600)
        assert child.returncode == 0, problem
    assert all(p.suffix == ".code" for p in cache_dir.glob("*.code*"))


@needs_cache
@pytest.mark.skipif(not has_loader(), reason="images are for ELF on x86-64")
def test_cache_hit_does_not_import_llvm(cache_dir: Path) -> None:
    printed = [
        subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=600, check=True).stdout
        for _ in "12"
    ]
    assert printed == ["True\n", "False\n"]


# ---- object code as an image


PROGRAM = "define double @twice(double %x) {\n  %y = fadd double %x, %x\n  ret double %y\n}\n"
OUTSIDE = (
    "declare double @cbrt(double)\n@there = external global double\ndefine double @twice(double %x) {\n"
    "  %t = load double, ptr @there\n  %y = call double @cbrt(double %x)\n"
    "  %z = fmul double %y, %t\n  ret double %z\n}\n"
)
# A table of addresses that must be written when it is loaded: an image has none.
ABSOLUTE = "@table = constant [1 x ptr] [ptr @twice]\n" + PROGRAM
WRITABLE = "@count = global double 2.0\n" + PROGRAM.replace("fadd double %x, %x", "fmul double %x, 2.0")


def twice(made: llvm.LoadedCode) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(made.addresses["twice"])


@needs_cache
@pytest.mark.skipif(not has_loader(), reason="images are for ELF on x86-64")
def test_loaded_object_image_gives_right_results() -> None:
    two = ctypes.c_double(2.0)
    for text, expected in ((PROGRAM, 54.0), (OUTSIDE, 6.0)):
        made, _ = llvm.get_code(text, ["twice"], {"there": ctypes.addressof(two)})
        assert isinstance(made.held, Loaded)
        assert twice(made)(27.0) == pytest.approx(expected)


@pytest.mark.parametrize("text", [ABSOLUTE, WRITABLE])
def test_unsupported_object_is_linked_by_llvm(text: str, cache: Cache) -> None:
    for _ in range(2):  # as it is made, and as it is kept
        made, _ = llvm.get_code(text, ["twice"], {}, cache)
        assert not isinstance(made.held, Loaded)
        assert twice(made)(1.5) == 3.0


def test_unloadable_image_is_linked_by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(llvm, "Loaded", type("Refusing", (), {"__new__": refuse}))
    made, _ = llvm.get_code(PROGRAM, ["twice"], {})
    assert twice(made)(1.5) == 3.0


@pytest.mark.skipif(not has_loader(), reason="images are for ELF on x86-64")
def test_link_object_rejects_truncated_and_changed_files() -> None:
    code, _ = llvm.compile_object(OUTSIDE)
    assert link_object(code) is not None
    assert all(link_object(code[:n]) is None for n in range(0, len(code) - 64, 7))
    random = np.random.default_rng(0)
    for _ in range(2000):  # an image or nothing, whatever it says of itself
        at, value = random.integers(len(code)), random.integers(256)
        changed = bytearray(code)
        changed[at] = value
        image = link_object(bytes(changed))
        assert image is None or all(0 <= place < len(image.code) for place in image.exports.values())


BODIES = {
    "empty": b"",
    "neither": b"?" + bytes(100),
    "too short": b"I\x01",
    "no image": b"I" + bytes(100),
    "beyond the end": b"I" + pack_image(Image(b"\xc3", {"twice": 0}, [])).replace(b"twice 0", b"twice 9"),
    "in the table": b"I" + pack_image(Image(bytes(16), {"twice": 3}, ["cbrt"])),
    "not the function": b"I" + pack_image(Image(b"\xc3", {"thrice": 0}, [])),
    "an unknown one": b"I" + pack_image(Image(bytes(8) + b"\xc3", {"twice": 8}, ["no_such_function"])),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_cache_recompiles_invalid_image(cache: Cache, body: bytes) -> None:
    llvm.get_code(PROGRAM, ["twice"], {}, cache)
    (path,) = Path(cache.path).glob("*.code*")
    key = path.read_bytes()[8:40]
    cache.put(key, body)
    made, spent = llvm.get_code(PROGRAM, ["twice"], {}, cache)
    assert "codegen" in spent
    assert twice(made)(1.5) == 3.0
    assert cache.get(key) != body


@pytest.mark.skipif(not has_loader(), reason="images are for ELF on x86-64")
def test_code_memory_is_not_writable() -> None:
    made, _ = llvm.get_code(PROGRAM, ["twice"], {})
    at = made.addresses["twice"]
    ranges = [line.split(" ", 2)[:2] for line in Path("/proc/self/maps").read_text().splitlines()]
    (rights,) = [r for where, r in ranges if int(where.split("-")[0], 16) <= at < int(where.split("-")[1], 16)]
    assert rights.startswith("r-x")


def test_broken_llvm_falls_back_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise llvm.TranslatorError("compile: llvmlite is installed, but could not be used: a reason")

    monkeypatch.setattr(llvm, "get_translator", fail)
    np.testing.assert_array_equal(answer(cache=False), [1.25, 3.25, 5.25, 7.25, 9.25])
    with pytest.raises(pb.errors.CompileError, match="could not be used: a reason"):
        answer(cache=False, backend="llvm")


@pytest.mark.parametrize("text", ["", "flags\t: fpu\n"])
def test_cache_key_has_cpu_features_without_cpuinfo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    def describe() -> str:
        return llvm.describe_translator.__wrapped__(get_own_target())

    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(target, "CPUINFO", str(tmp_path / "cpuinfo"))
    monkeypatch.setattr(llvm, "has_loader", lambda: True)
    assert (text.strip() or "\n".join(llvm.get_translator(get_own_target()).cpu)) in describe()
    monkeypatch.setattr(target, "CPUINFO", str(tmp_path / "absent"))
    assert "\n".join(llvm.get_translator(get_own_target()).cpu) in describe()


@pytest.mark.parametrize(("value", "expected"), [("inf", 256 << 20), ("nan", 256 << 20), ("x", 256 << 20), ("0", 0)])
def test_invalid_cache_size_uses_default(monkeypatch: pytest.MonkeyPatch, value: str, expected: int) -> None:
    monkeypatch.setenv("PULLBACK_CACHE_SIZE", value)
    assert disk_cache.get_limit() == expected


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files")
def test_cache_does_not_block_on_pipe(cache: Cache) -> None:
    cache.put(KEY, b"answer")
    path = only_file(cache)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.get(KEY) is None


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("darwin", {"HOME": "/users/me"}, "/users/me/Library/Caches/pullback"),
        ("linux", {"HOME": "/home/me"}, "/home/me/.cache/pullback"),
        ("linux", {"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/pullback"),
        ("win32", {"HOME": "/home/me", "LOCALAPPDATA": "/local"}, "/local/pullback"),
        ("win32", {"HOME": "/home/me"}, "/home/me/AppData/Local/pullback"),
    ],
)  # fmt: skip
@pytest.mark.skipif(os.name != "posix", reason="its home is not in HOME")
def test_cache_directory_of_platforms(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PULLBACK_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert disk_cache.get_directory() == expected


@needs_cache
def test_nothing_is_kept_without_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PULLBACK_CACHE", "PULLBACK_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert disk_cache.describe_cache() == "not kept on disk"


@needs_cache
def test_describe_cache_counts_files(cache_dir: Path) -> None:
    assert disk_cache.describe_cache() == f"{cache_dir}: 0 files, 0.0 of at most 256 MB"
    get_default_cache().put(KEY, bytes(3 << 20))
    assert disk_cache.describe_cache() == f"{cache_dir}: 1 files, 3.0 of at most 256 MB"


def test_cache_ignores_unreadable_file(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(KEY, b"code")

    def fail(handle: int) -> Any:
        raise OSError("no such device")

    monkeypatch.setattr(os, "fstat", fail)
    assert cache.get(KEY) is None
    monkeypatch.undo()
    assert cache.get(KEY) == b"code"


def test_llvm_is_not_available_without_llvmlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert not llvm.llvm_available.__wrapped__()


def test_unusable_llvm_raises_translator_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(target: Any) -> Any:
        raise OSError("no shared library")

    monkeypatch.setattr(llvm, "Translator", fail)
    with pytest.raises(llvm.TranslatorError, match="llvmlite is installed, but could not be used: no shared library"):
        llvm.get_translator.__wrapped__(get_own_target())
