"""The random numbers of Philox4x64-10 at given places of the stream, equal to those of ``numpy.random.Philox``.

A block of the stream is a function of a key and of the block's number: four 64-bit words, each of which is one float64
or two float32, the lower half first.  CPUs multiply 64 by 64 bits in scalar registers only, so blocks are computed
one after the other, and a vector of neighbouring numbers is loaded from them.
"""

from __future__ import annotations

from pullback.compiler.builder import Helpers, Label, Value, define_function, splat, vector
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.errors import CompileError

ROUNDS = 10
MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
KEY_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
WORDS = {"f4": 3, "f8": 2}  # binary logarithm of the numbers in a block
DROPPED = {"f4": 8, "f8": 11}  # bits of a word that do not fit the mantissa of a float
PARAMS = "ptr %places, ptr %k0s, ptr %k1s"


def philox(b: MathBuilder, base: Value, place: Value, k0: Value, k1: Value, dtype: str) -> Value:
    """Return the numbers in [0, 1) at the places ``base + place`` of the stream with the key ``k0, k1``."""
    if base.dtype != "i8" or (k0.dtype, k1.dtype) != ("i8", "i8") or place.kind != "i":
        raise CompileError("the places and keys of random numbers are signed integers.")
    at = base + place.cast("i8")
    words = _load_word(b, at, k0, k1, dtype) if at.width == 1 else _load_words(b, at, k0, k1, dtype)
    kept = (words >> DROPPED[dtype]).cast(dtype)
    return kept * 2.0 ** (DROPPED[dtype] - words.bits)


def _load_word(b: MathBuilder, at: Value, k0: Value, k1: Value, dtype: str) -> Value:
    """Return the word at one place."""
    code, word = b.code, f"u{dtype[1]}"
    cell = code.allocate("[4 x i64]")
    block, offset = _split(b, at.name, dtype)
    _fill(b, cell, block, "1", k0.name, k1.name)
    return _read(b, cell, offset, word, 1)


def _split(b: MathBuilder, at: str, dtype: str) -> tuple[str, str]:
    """Return the number of the block that a place is in, and its position in the block."""
    power = WORDS[dtype]
    return b.code.op(f"ashr i64 {at}, {power}"), b.code.op(f"and i64 {at}, {2**power - 1}")


def _load_words(b: MathBuilder, at: Value, k0: Value, k1: Value, dtype: str) -> Value:
    """Return the words of all lanes: from consecutive blocks if they are neighbours, else each from its own block."""
    code, per, word, width = b.code, 2 ** WORDS[dtype], f"u{dtype[1]}", at.width
    cell = code.allocate(f"[{(width // per + 2) * 4} x i64]")
    first, key0, key1 = (code.op(f"extractelement {v!r}, i64 0") for v in (at, k0, k1))
    lanes = ", ".join(f"i64 {i}" for i in range(width))
    next_ones = at.like(code.op(f"add {at.type} {splat(code, first, 'i64', width)}, <{lanes}>"))
    same = at.compare("oeq", next_ones)
    for key, scalar in ((k0, key0), (k1, key1)):
        same = same & key.compare("oeq", key.like(splat(code, scalar, "i64", width)))
    apart = b.any_lane(~same)
    shared = dict(code.shared)
    run, each, on = code.block("run"), code.block("each"), code.block("on")
    code.branch(apart, each, run, unlikely=True)
    code.begin(run)
    block, offset = _split(b, first, dtype)
    blocks = code.op(f"udiv i64 {code.add(offset, str(width - 1 + per))}, {per}")
    _fill(b, cell, block, blocks, key0, key1)
    code.jump(on)
    code.begin(each)
    _fill_each(b, cell, at, k0, k1, dtype)
    code.jump(on)
    code.begin(on)
    code.shared.update(shared)  # it is computed before the branch
    return _read(b, cell, code.op(f"phi i64 [{offset}, %{run}], [0, %{each}]"), word, width)


def _read(b: MathBuilder, cell: str, offset: str, word: str, width: int) -> Value:
    code, type_ = b.code, f"i{8 * int(word[1])}"
    pointer = code.at(type_, cell, offset)
    return Value(code, code.op(f"load {vector(type_, width)}, ptr {pointer}, align {word[1]}"), word, width)


def _fill(b: MathBuilder, cell: str, block: str, blocks: str, k0: str, k1: str) -> None:
    """Emit a call that writes the words of consecutive blocks into memory."""
    b.code.add_helper("philox", _write_blocks)
    b.code.call_helper("philox", f"ptr {cell}, i64 {block}, i64 {blocks}, i64 {k0}, i64 {k1}")


def _fill_each(b: MathBuilder, cell: str, at: Value, k0: Value, k1: Value, dtype: str) -> None:
    """Emit a call that writes the word of each lane into memory, each from its own block."""
    code, name = b.code, f"philox_each_{dtype}"
    cells = [code.allocate(f"[{v.width} x i64]") for v in (at, k0, k1)]
    for v, to in zip((at, k0, k1), cells, strict=True):
        code.line(f"store {v!r}, ptr {to}, align 64")
    code.add_helper("philox", _write_blocks)
    code.add_helper(name, lambda: _write_each(name, dtype))
    code.call_helper(name, f"{', '.join(f'ptr {c}' for c in cells)}, ptr {cell}, i64 {at.width}")


def _write_blocks() -> Helpers:
    """Return the function that computes blocks, by ten rounds of two multiplications with their halves exchanged."""
    lines, words, keys = [], ["%number", "0", "0", "0"], ["%k0", "%k1"]
    for r in range(ROUNDS):
        halves = []
        for i, m in enumerate(MULTIPLIERS):
            wide, whole, high, low = (f"%{name}{r}_{i}" for name in ("wide", "whole", "high", "low"))
            lines += [
                f"{wide} = zext i64 {words[2 * i]} to i128",
                f"{whole} = mul i128 {wide}, {m}",
                f"{low} = trunc i128 {whole} to i64",
                f"%up{r}_{i} = lshr i128 {whole}, 64",
                f"{high} = trunc i128 %up{r}_{i} to i64",
            ]
            halves.append((high, low))
        (high0, low0), (high1, low1) = halves
        lines += [
            f"%a{r} = xor i64 {high1}, {words[1]}", f"%x{r} = xor i64 %a{r}, {keys[0]}",
            f"%b{r} = xor i64 {high0}, {words[3]}", f"%y{r} = xor i64 %b{r}, {keys[1]}",
        ]  # fmt: skip
        words = [f"%x{r}", low1, f"%y{r}", low0]
        lines += [f"%k{i}_{r} = add i64 {keys[i]}, {step}" for i, step in enumerate(KEY_STEPS)]
        keys = [f"%k0_{r}", f"%k1_{r}"]
    for i, w in enumerate(words):
        lines += [f"%p{i} = getelementptr i64, ptr %to, i64 {i}", f"store i64 {w}, ptr %p{i}, align 8"]
    head = "define internal void @philox(ptr %out, i64 %block, i64 %blocks, i64 %k0, i64 %k1) noinline nounwind {"
    lines = [
        "br label %loop", Label("loop:"), "%i = phi i64 [0, %entry], [%next, %loop]",
        "%before = add i64 %block, %i", "%number = add i64 %before, 1",  # NumPy counts before it computes a block
        "%at = shl i64 %i, 2", "%to = getelementptr i64, ptr %out, i64 %at",
        *lines,
        "%next = add nuw nsw i64 %i, 1", "%more = icmp ult i64 %next, %blocks", "br i1 %more, label %loop, label %done",
        Label("done:"),
    ]  # fmt: skip
    return {"philox": define_function(head, lines)}, set()


def _write_each(name: str, dtype: str) -> Helpers:
    """Return the function that computes a block for each lane, and takes one word of it."""
    word, power = f"i{8 * int(dtype[1])}", WORDS[dtype]
    head = f"define internal void @{name}({PARAMS}, ptr %out, i64 %lanes) noinline nounwind cold {{"
    lines = [
        "%cell = alloca [4 x i64], align 32", "br label %loop",
        Label("loop:"), "%i = phi i64 [0, %entry], [%next, %loop]",
        *(
            line
            for v in ("places", "k0s", "k1s")
            for line in (f"%{v}_i = getelementptr i64, ptr %{v}, i64 %i", f"%{v}_v = load i64, ptr %{v}_i, align 8")
        ),
        f"%block = ashr i64 %places_v, {power}", f"%rest = and i64 %places_v, {2**power - 1}",
        "call void @philox(ptr %cell, i64 %block, i64 1, i64 %k0s_v, i64 %k1s_v)",
        f"%from = getelementptr {word}, ptr %cell, i64 %rest", f"%w = load {word}, ptr %from, align {dtype[1]}",
        f"%to = getelementptr {word}, ptr %out, i64 %i", f"store {word} %w, ptr %to, align {dtype[1]}",
        "%next = add nuw nsw i64 %i, 1", "%more = icmp ult i64 %next, %lanes", "br i1 %more, label %loop, label %done",
        Label("done:"),
    ]  # fmt: skip
    return {name: define_function(head, lines)}, set()
