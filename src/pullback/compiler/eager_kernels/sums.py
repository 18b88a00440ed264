"""Sums of large arrays of any shape along one axis.

The LLVM module exports ``run(x, z, outer, count, inner)``: the elements of ``x`` are those of an array of the shape
(outer, count, inner), and ``z`` gets their sums over the axis in the middle; the result is 1 if all of them are finite.
Long rows are summed in halves, columns 16 rows at a time, so that no sum loses more digits than NumPy's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from pullback.compiler.builder import FLOATS, code_of
from pullback.compiler.runtime.abi.layout import choose_address
from pullback.compiler.runtime.disk_cache import default_cache
from pullback.compiler.runtime.llvm import TranslatorError, get_code, llvm_available
from pullback.compiler.target import Target, get_target

__all__ = ["compile_sum"]

AVX2 = 32  # bytes of its vectors

VECTOR_BYTES = 64  # at least; several registers where these are shorter, so that their latencies overlap
CHAINS = 8  # vectors that are summed side by side
MOST_VECTORS = 128  # of a row that are not summed in halves
ROWS = 16  # that are added up before they are added to the sums of columns
NARROW = 64  # columns below which 16 rows are summed as one row of 16 times as many columns


def compile_sum(dtype: Any) -> Callable[[Any, Any, int, int, int], bool] | None:
    """Return a function of an array, of an array for the result, and of three lengths; None if there is none.

    The array is in order, of the shape that the lengths give, and is summed over the axis in the middle.  The function
    returns whether all sums are finite.

    >>> import numpy as np
    >>> f, z = compile_sum(np.dtype("f8")), np.ones(3)
    >>> f is None or (f(np.arange(6.0), z, 1, 2, 3) and z.tolist() == [3.0, 5.0, 7.0])
    True
    """
    target = get_target()
    if not llvm_available() or target.vector_bytes < AVX2:
        return None  # where it was not measured
    try:
        code, _ = get_code(emit_sums(code_of(dtype), target), ["run"], {}, default_cache())
    except TranslatorError:
        return None
    code.keep()
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)(code.addresses["run"])

    def call(x: Any, z: Any, outer: int, count: int, inner: int) -> bool:
        return bool(run(find_data(x), find_data(z), outer, count, inner))

    find_data = choose_address()
    return call


def emit_sums(dtype: str, target: Target) -> str:
    """Return the LLVM module for arrays of a dtype, ``"f4"`` or ``"f8"``."""
    number, size = FLOATS[dtype], int(dtype[1])
    width = max(VECTOR_BYTES, target.vector_bytes) // size
    vector, suffix = f"<{width} x {number}>", f"v{width}f{8 * size}"
    names = {
        "T": number, "S": str(size), "W": str(width), "V": vector, "M": suffix, "CHAINS": str(CHAINS),
        "MOST": str(MOST_VECTORS), "ROWS": str(ROWS), "NARROW": str(NARROW), "CELLS": str(ROWS * NARROW),
        "LANES": "<" + ", ".join(f"i64 {i}" for i in range(width)) + ">",
        "FIRST": "\n".join(f"  %a{k} = phi {vector} [zeroinitializer, %entry], [%b{k}, %loop]" for k in range(CHAINS)),
        "ADDED": "\n".join(
            f"  %i{k} = add i64 %i, {k}\n  %q{k} = getelementptr {vector}, ptr %x, i64 %i{k}\n"
            f"  %v{k} = load {vector}, ptr %q{k}, align {size}\n  %b{k} = fadd {vector} %a{k}, %v{k}"
            for k in range(CHAINS)
        ),
        "INFINITE": f"splat ({number} 0x7FF0000000000000)",
    }  # fmt: skip
    text = SUMS
    for name, value in names.items():
        text = text.replace(f"${name}$", value)
    return text


SUMS = """
declare $T$ @llvm.vector.reduce.fadd.$M$($T$, $V$)
declare $V$ @llvm.masked.load.$M$.p0(ptr, i32, <$W$ x i1>, $V$)
declare $V$ @llvm.fabs.$M$($V$)
declare i1 @llvm.vector.reduce.or.v$W$i1(<$W$ x i1>)
declare void @llvm.masked.store.$M$.p0($V$, ptr, i32, <$W$ x i1>)

define internal <$W$ x i1> @first_lanes(i64 %count) alwaysinline {
  %one = insertelement <$W$ x i64> poison, i64 %count, i64 0
  %all = shufflevector <$W$ x i64> %one, <$W$ x i64> poison, <$W$ x i32> zeroinitializer
  %mask = icmp slt <$W$ x i64> $LANES$, %all
  ret <$W$ x i1> %mask
}

; the sum of a multiple of $CHAINS$ vectors
define internal $V$ @chains(ptr %x, i64 %vectors) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
$FIRST$
$ADDED$
  %next = add i64 %i, $CHAINS$
  %more = icmp slt i64 %next, %vectors
  br i1 %more, label %loop, label %done
done:
  %c0 = fadd $V$ %b0, %b1
  %c1 = fadd $V$ %b2, %b3
  %c2 = fadd $V$ %b4, %b5
  %c3 = fadd $V$ %b6, %b7
  %d0 = fadd $V$ %c0, %c1
  %d1 = fadd $V$ %c2, %c3
  %sum = fadd $V$ %d0, %d1
  ret $V$ %sum
}

define internal $V$ @halves(ptr %x, i64 %vectors) {
entry:
  %is_short = icmp sle i64 %vectors, $MOST$
  br i1 %is_short, label %short, label %long
short:
  %whole = call $V$ @chains(ptr %x, i64 %vectors)
  ret $V$ %whole
long:
  %half = lshr i64 %vectors, 1
  %up = add i64 %half, 63
  %first = and i64 %up, -64
  %rest = sub i64 %vectors, %first
  %second = getelementptr $V$, ptr %x, i64 %first
  %a = call $V$ @halves(ptr %x, i64 %first)
  %b = call $V$ @halves(ptr %second, i64 %rest)
  %sum = fadd $V$ %a, %b
  ret $V$ %sum
}

define internal $T$ @short_row(ptr %x, i64 %count) alwaysinline {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %a = phi $T$ [0.0, %entry], [%b, %loop]
  %q = getelementptr $T$, ptr %x, i64 %i
  %v = load $T$, ptr %q
  %b = fadd $T$ %a, %v
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret $T$ %b
}

define internal $T$ @long_row(ptr %x, i64 %count) alwaysinline {
entry:
  %vectors = udiv i64 %count, $W$
  %chained = and i64 %vectors, -$CHAINS$
  %is_long = icmp ne i64 %chained, 0
  br i1 %is_long, label %long, label %singles
long:
  %most = call $V$ @halves(ptr %x, i64 %chained)
  br label %singles
singles:
  %first = phi $V$ [zeroinitializer, %entry], [%most, %long]
  br label %test
test:
  %i = phi i64 [%chained, %singles], [%next, %single]
  %a = phi $V$ [%first, %singles], [%b, %single]
  %more = icmp slt i64 %i, %vectors
  br i1 %more, label %single, label %tail
single:
  %q = getelementptr $V$, ptr %x, i64 %i
  %v = load $V$, ptr %q, align $S$
  %b = fadd $V$ %a, %v
  %next = add i64 %i, 1
  br label %test
tail:
  %left = urem i64 %count, $W$
  %end = getelementptr $V$, ptr %x, i64 %vectors
  %mask = call <$W$ x i1> @first_lanes(i64 %left)
  %last = call $V$ @llvm.masked.load.$M$.p0(ptr %end, i32 $S$, <$W$ x i1> %mask, $V$ zeroinitializer)
  %all = fadd $V$ %a, %last
  %sum = call reassoc $T$ @llvm.vector.reduce.fadd.$M$($T$ 0.0, $V$ %all)
  ret $T$ %sum
}

define internal void @rows(ptr %x, ptr %z, i64 %rows, i64 %count) {
entry:
  %is_short = icmp slt i64 %count, $W$
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %joined]
  %start = mul i64 %i, %count
  %q = getelementptr $T$, ptr %x, i64 %start
  br i1 %is_short, label %short, label %long
short:
  %a = call $T$ @short_row(ptr %q, i64 %count)
  br label %joined
long:
  %b = call $T$ @long_row(ptr %q, i64 %count)
  br label %joined
joined:
  %sum = phi $T$ [%a, %short], [%b, %long]
  %to = getelementptr $T$, ptr %z, i64 %i
  store $T$ %sum, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %loop, label %done
done:
  ret void
}

; adds some rows, which are $ROWS$ at most, to the sums of columns
define internal void @add_rows(ptr %x, ptr %z, i64 %rows, i64 %inner) {
entry:
  br label %loop
loop:
  %j = phi i64 [0, %entry], [%after, %added]
  %left = sub i64 %inner, %j
  %is_whole = icmp sge i64 %left, $W$
  %p = getelementptr $T$, ptr %x, i64 %j
  %to = getelementptr $T$, ptr %z, i64 %j
  br i1 %is_whole, label %whole, label %part
whole:
  %before = load $V$, ptr %to, align $S$
  br label %step
step:
  %i = phi i64 [0, %whole], [%next, %step]
  %a = phi $V$ [zeroinitializer, %whole], [%b, %step]
  %at = mul i64 %i, %inner
  %q = getelementptr $T$, ptr %p, i64 %at
  %v = load $V$, ptr %q, align $S$
  %b = fadd $V$ %a, %v
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %step, label %store
store:
  %sum = fadd $V$ %before, %b
  store $V$ %sum, ptr %to, align $S$
  br label %added
part:
  %mask = call <$W$ x i1> @first_lanes(i64 %left)
  %some = call $V$ @llvm.masked.load.$M$.p0(ptr %to, i32 $S$, <$W$ x i1> %mask, $V$ zeroinitializer)
  br label %small
small:
  %k = phi i64 [0, %part], [%then, %small]
  %c = phi $V$ [zeroinitializer, %part], [%d, %small]
  %there = mul i64 %k, %inner
  %r = getelementptr $T$, ptr %p, i64 %there
  %u = call $V$ @llvm.masked.load.$M$.p0(ptr %r, i32 $S$, <$W$ x i1> %mask, $V$ zeroinitializer)
  %d = fadd $V$ %c, %u
  %then = add i64 %k, 1
  %again = icmp slt i64 %then, %rows
  br i1 %again, label %small, label %keep
keep:
  %both = fadd $V$ %some, %d
  call void @llvm.masked.store.$M$.p0($V$ %both, ptr %to, i32 $S$, <$W$ x i1> %mask)
  br label %added
added:
  %after = add i64 %j, $W$
  %goes_on = icmp slt i64 %after, %inner
  br i1 %goes_on, label %loop, label %done
done:
  ret void
}

define internal void @columns(ptr %x, ptr %z, i64 %count, i64 %inner) {
entry:
  br label %clear
clear:
  %j = phi i64 [0, %entry], [%after, %clear]
  %to = getelementptr $T$, ptr %z, i64 %j
  store $T$ 0.0, ptr %to
  %after = add i64 %j, 1
  %is_left = icmp slt i64 %after, %inner
  br i1 %is_left, label %clear, label %loop
loop:
  %i = phi i64 [0, %clear], [%next, %loop]
  %left = sub i64 %count, %i
  %is_last = icmp slt i64 %left, $ROWS$
  %rows = select i1 %is_last, i64 %left, i64 $ROWS$
  %at = mul i64 %i, %inner
  %q = getelementptr $T$, ptr %x, i64 %at
  call void @add_rows(ptr %q, ptr %z, i64 %rows, i64 %inner)
  %next = add i64 %i, $ROWS$
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; few columns: $ROWS$ rows are one with $ROWS$ times as many columns, whose sums are added up in the end
define internal void @narrow(ptr %x, ptr %z, ptr %cells, i64 %count, i64 %inner) {
entry:
  %wide = mul i64 %inner, $ROWS$
  %groups = udiv i64 %count, $ROWS$
  %rest = urem i64 %count, $ROWS$
  call void @columns(ptr %x, ptr %cells, i64 %groups, i64 %wide)
  %has_rest = icmp ne i64 %rest, 0
  br i1 %has_rest, label %more, label %join
more:
  %done_rows = mul i64 %groups, %wide
  %from = getelementptr $T$, ptr %x, i64 %done_rows
  %others = mul i64 %rest, %inner
  call void @add_rows(ptr %from, ptr %cells, i64 1, i64 %others)
  br label %join
join:
  call void @columns(ptr %cells, ptr %z, i64 $ROWS$, i64 %inner)
  ret void
}

define internal i64 @is_finite(ptr %z, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %before = phi <$W$ x i1> [zeroinitializer, %entry], [%odd, %loop]
  %left = sub i64 %count, %i
  %mask = call <$W$ x i1> @first_lanes(i64 %left)
  %q = getelementptr $T$, ptr %z, i64 %i
  %v = call $V$ @llvm.masked.load.$M$.p0(ptr %q, i32 $S$, <$W$ x i1> %mask, $V$ zeroinitializer)
  %size = call $V$ @llvm.fabs.$M$($V$ %v)
  %is_odd = fcmp uge $V$ %size, $INFINITE$
  %odd = or <$W$ x i1> %before, %is_odd
  %next = add i64 %i, $W$
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  %some = call i1 @llvm.vector.reduce.or.v$W$i1(<$W$ x i1> %odd)
  %result = select i1 %some, i64 0, i64 1
  ret i64 %result
}

define i64 @run(ptr %x, ptr %z, i64 %outer, i64 %count, i64 %inner) {
entry:
  %cells = alloca [$CELLS$ x $T$], align 64
  %is_row = icmp eq i64 %inner, 1
  br i1 %is_row, label %of_rows, label %of_columns
of_rows:
  call void @rows(ptr %x, ptr %z, i64 %outer, i64 %count)
  %ok = call i64 @is_finite(ptr %z, i64 %outer)
  ret i64 %ok
of_columns:
  %each = mul i64 %count, %inner
  %few = icmp slt i64 %inner, $NARROW$
  %many = icmp sge i64 %count, $NARROW$
  %is_narrow = and i1 %few, %many
  br label %loop
loop:
  %i = phi i64 [0, %of_columns], [%next, %joined]
  %at = mul i64 %i, %each
  %q = getelementptr $T$, ptr %x, i64 %at
  %to_at = mul i64 %i, %inner
  %to = getelementptr $T$, ptr %z, i64 %to_at
  br i1 %is_narrow, label %narrow, label %wide
narrow:
  call void @narrow(ptr %q, ptr %to, ptr %cells, i64 %count, i64 %inner)
  br label %joined
wide:
  call void @columns(ptr %q, ptr %to, i64 %count, i64 %inner)
  br label %joined
joined:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %outer
  br i1 %more, label %loop, label %done
done:
  %size = mul i64 %outer, %inner
  %all = call i64 @is_finite(ptr %z, i64 %size)
  ret i64 %all
}
"""
