"""Programs whose machine code is in memory: linked from LLVM text, or loaded from the disk cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

from pullback.compiler.ir.graph import Graph
from pullback.compiler.runtime.disk_cache import Cache, NoCache
from pullback.compiler.runtime.llvm import LoadedCode, TranslatorError, get_code, load_code, make_code_key
from pullback.compiler.runtime.manifest import Contents, Manifest, pack_contents, unpack_contents
from pullback.compiler.runtime.threads import get_pool
from pullback.compiler.target import Target, find_blas


class Linked(NamedTuple):
    """A program that can be run: its contents, and its machine code if it has any."""

    contents: Contents
    loaded: LoadedCode | None
    stats: dict[str, float]  # milliseconds

    @property
    def addresses(self) -> dict[str, int]:
        """The addresses of its functions."""
        return self.loaded.addresses if self.loaded is not None else {}


def link(text: str, longest_block: int, contents: Contents, target: Target, cache: Cache | NoCache) -> Linked:
    """Return a program with the machine code for LLVM text, which is compiled unless ``cache`` has it.

    ``longest_block``: the instructions of its longest basic block.
    """
    manifest = contents.manifest
    names = _list_functions(manifest)
    if not names:
        return Linked(contents, None, {})
    key, imports = make_code_key(text, cache, target=target), _find_imports(manifest)
    code, stats = get_code(text, names, imports, cache, target=target, longest_block=longest_block, key=key)
    return Linked(contents._replace(manifest=replace(manifest, code=key.hex())), code, stats)


def load(cache: Cache | NoCache, key: bytes | None, traced: Graph, get_legalized: Callable[[], Graph]) -> Linked | None:
    """Return the program that is kept under a key; None if anything of it is missing or damaged."""
    begin = perf_counter()
    data = cache.get(key) if key is not None else None
    if data is None:
        return None
    try:
        contents = unpack_contents(data, traced, get_legalized)
        code = bytes.fromhex(contents.manifest.code)
    except (ValueError, LookupError):
        return None
    names = _list_functions(contents.manifest)
    loaded = load_code(code, names, _find_imports(contents.manifest), cache) if names else None
    if names and loaded is None:
        return None
    return Linked(contents, loaded, {"load": (perf_counter() - begin) * 1e3})


def store(cache: Cache | NoCache, key: bytes | None, linked: Linked, traced: Graph) -> None:
    """Keep the contents of a program under a key; its machine code is kept by ``link``."""
    if key is not None and (data := pack_contents(linked.contents, traced)) is not None:
        cache.put(key, data)


def _list_functions(manifest: Manifest) -> list[str]:
    return [s.name for s in manifest.segments if s.name]


def _find_imports(manifest: Manifest) -> dict[str, int]:
    """Return the addresses of the library functions that a program calls."""
    wanted = [k for k in manifest.imports if k != "parallel"]
    if not {*wanted} <= find_blas().keys():
        raise TranslatorError(
            "compile: this program has matrix products for OpenBLAS, which is not in NumPy's own package here."
        )
    found = {k: find_blas()[k] for k in wanted}
    return found | get_pool() if "parallel" in manifest.imports else found
