"""Link object files without LLVM's linker: from an object file to an image that can be loaded at any address.

Importing LLVM takes longer than loading a program.  So the disk cache stores an image: the sections of an object file
one after the other, with all references between them resolved.  Functions outside it are called through a table of
addresses at its beginning, which is filled in when the image is loaded.  This is done for ELF on x86-64; elsewhere
LLVM's linker is used.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from typing import Any, NamedTuple

X86_64 = 62
RELATIVE, CALL, BY_TABLE = (2,), (4,), (9, 41, 42)  # kinds of relocations: PC32; PLT32; GOTPCREL and its shorter forms
SYMBOL, SECTION = struct.Struct("<IBBHQQ"), struct.Struct("<IIQQQQIIQQ")  # Elf64_Sym and Elf64_Shdr
STUB = 8  # bytes of a jump to an address in the table, one for each import
READ, WRITE, RUN = 1, 2, 4  # protections of memory


class Image(NamedTuple):
    """Position-independent code, with its exported and imported functions."""

    code: bytes
    exports: dict[str, int]  # functions by name, and where each begins
    imports: list[str]  # functions outside; the table at the beginning is filled with their addresses


def has_loader() -> bool:
    """Return whether images can be linked and run here."""
    return sys.platform == "linux" and sys.byteorder == "little" and os.uname().machine == "x86_64"


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


def link_object(code: bytes) -> Image | None:
    """Return the image of an object file; None if it has something that an image cannot have."""
    try:
        return _link_object(code)
    except (struct.error, LookupError, ValueError, OverflowError):  # it ends too early, or what it names is not there
        return None


def _link_object(code: bytes) -> Image | None:
    if code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", code, 18)[0] != X86_64:
        return None
    sections = _read_sections(code)
    symbols, named = _read_symbols(code, sections)
    imports = [n for n, s in zip(named, symbols, strict=True) if n and s[3] == 0]
    places = _place_sections(code, sections, (8 + STUB) * len(imports))
    if places is None:
        return None
    out = _copy_sections(code, sections, places, len(imports))
    sizes = [s.size for s in sections]
    relocations = [s for s in sections if s.kind == 4 and s.info in places]
    if not all(_relocate(out, code, s, places, sizes, symbols, named, imports) for s in relocations):
        return None
    image = Image(bytes(out), _list_exports(symbols, named, places), imports)
    return image if _is_whole(image) else None


def _read_symbols(code: bytes, sections: list[_Section]) -> tuple[list[Any], list[str]]:
    """Return the symbols of an object file, and their names."""
    (table,) = (s for s in sections if s.kind == 2)
    symbols = [SYMBOL.unpack_from(code, table.offset + i) for i in range(0, table.size, SYMBOL.size)]
    names = code[sections[table.link].offset :]
    return symbols, [names[s[0] : names.index(b"\0", s[0])].decode() for s in symbols]


def _list_exports(symbols: list[Any], named: list[str], places: dict[int, int]) -> dict[str, int]:
    """Return where each global function begins."""
    return {
        n: places[s[3]] + s[4] for n, s in zip(named, symbols, strict=True) if n and s[1] >> 4 == 1 and s[3] in places
    }


def _place_sections(code: bytes, sections: list[_Section], at: int) -> dict[int, int] | None:
    """Return where each section that is loaded begins, from ``at`` on; None if one cannot be part of an image."""
    places: dict[int, int] = {}
    for number, s in enumerate(sections):
        if s.flags & 2 and s.size and s.name != ".eh_frame":  # it is for unwinding the stack, which is not done here
            if s.flags & 1 or s.kind != 1 or s.align > mmap.PAGESIZE or s.offset + s.size > len(code):
                return None
            places[number] = at = -(-at // max(s.align, 1)) * max(s.align, 1)
            at += s.size
    return places


def _copy_sections(code: bytes, sections: list[_Section], places: dict[int, int], imports: int) -> bytearray:
    """Return the image before relocation: a table of addresses, a stub for each import, and the sections."""
    ends = [start + sections[number].size for number, start in places.items()]
    out = bytearray(max(ends, default=(8 + STUB) * imports))
    for i in range(imports):
        stub = 8 * imports + STUB * i
        out[stub : stub + 6] = b"\xff\x25" + struct.pack("<i", 8 * i - (stub + 6))
    for number, start in places.items():
        s = sections[number]
        out[start : start + s.size] = code[s.offset : s.offset + s.size]
    return out


def _is_whole(image: Image) -> bool:
    """Return whether the code has room for the table, and every exported function begins after it."""
    table, size = 8 * len(image.imports), len(image.code)
    return table <= size and all(table <= at < size for at in image.exports.values())


def _read_sections(code: bytes) -> list[_Section]:
    start = struct.unpack_from("<Q", code, 40)[0]
    size, count, names_at = struct.unpack_from("<HHH", code, 58)
    raw = [SECTION.unpack_from(code, start + i * size) for i in range(count)]
    names = code[raw[names_at][4] :]
    return [
        _Section(names[r[0] : names.index(b"\0", r[0])].decode(), r[1], r[2], r[4], r[5], r[6], r[7], r[8]) for r in raw
    ]


def _relocate(
    out: bytearray, code: bytes, s: _Section, places: dict[int, int], sizes: list[int], symbols: Any, named: list[str],
    imports: list[str],
) -> bool:  # fmt: skip
    """Write the relocations of one section; False if one has an unknown kind."""
    for place, info, addend in struct.iter_unpack("<QQq", code[s.offset : s.offset + s.size]):
        kind, number = info & 0xFFFFFFFF, info >> 32
        at = places[s.info] + place
        home, value = symbols[number][3], symbols[number][4]
        if home == 0 and kind in CALL:
            target = 8 * len(imports) + STUB * imports.index(named[number])
        elif home == 0 and kind in BY_TABLE:
            target = 8 * imports.index(named[number])
        elif home in places and kind in (*RELATIVE, *CALL):
            target = places[home] + value
        else:
            return False
        if place + 4 > sizes[s.info]:
            return False
        struct.pack_into("<i", out, at, target + addend - at)
    return True


def pack_image(image: Image) -> bytes:
    """Return an image as bytes."""
    facts = [f"{name} {at}" for name, at in image.exports.items()]
    head = "\n".join([str(len(facts)), *facts, *image.imports]).encode()
    return struct.pack("<I", len(head)) + head + image.code


def unpack_image(data: bytes) -> Image:
    """Return the image that ``pack_image`` made bytes of; ValueError if they are no image."""
    try:
        (length,) = struct.unpack_from("<I", data)
        count, *facts = data[4 : 4 + length].decode().split("\n")
        exports = dict(f.split(" ") for f in facts[: int(count)])
        image = Image(data[4 + length :], {n: int(at) for n, at in exports.items()}, facts[int(count) :])
    except struct.error:
        raise ValueError("no image: it is too short") from None
    if not _is_whole(image):
        raise ValueError("no image: it names places that it does not have")
    return image


class Loaded:
    """An image in executable memory, which is freed with this object; ``addresses`` has those of its functions."""

    def __init__(self, image: Image, imports: dict[str, int]) -> None:
        size = -(-max(len(image.code), 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=READ | WRITE)
        table = struct.pack(f"<{len(image.imports)}Q", *(imports[name] for name in image.imports))
        self.memory[: len(image.code)] = table + image.code[len(table) :]
        held = ctypes.c_char.from_buffer(self.memory)
        base = ctypes.addressof(held)
        del held
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if protect(base, size, READ | RUN):  # never writable and executable at once
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")
        self.addresses = {name: base + at for name, at in image.exports.items()}
