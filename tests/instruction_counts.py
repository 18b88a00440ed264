"""Instructions and stack accesses per element in the innermost loops of some kernels, read from assembly.

The assembly is for other CPUs than the one that this runs on, so the figures depend on LLVM alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pullback as pb
from pullback.compiler.pipeline import lower
from pullback.compiler.runtime.llvm import compile_assembly, get_llvm_version
from pullback.compiler.schedule.fuse import Kernel
from pullback.compiler.target import ARM, X86, Options, Target

TABLE = Path(__file__).parent / "compiler" / "codegen" / "instruction_counts.json"
TRIPLES = {"neon": "aarch64-unknown-linux-gnu"}
TARGETS = {
    t.isa: t._replace(triple=TRIPLES.get(t.isa, "x86_64-unknown-linux-gnu"))
    for t in (*X86, *ARM)
    if t.isa in ("avx2", "avx512", "neon")
}
LABEL = re.compile(r"^(\.?L?\w+):")
LATCH = re.compile(r"^\t(?:j(?!mp)\w+|b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,)\s+(\.L\w+)")
STACK = re.compile(r"\(%r[sb]p[,)]|\[(?:sp|x29)[,\]]")


def chain(x: Any) -> Any:
    y = np.sin(x) * np.exp(-x * x)
    return np.sum(np.tanh(y) * np.log(1.0 + y * y))


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    y = x - np.mean(x, axis=-1, keepdims=True)
    return y / np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + 1e-5)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def polynomial(x: Any) -> Any:
    return np.sum(x * (1.0 + x * (0.5 + x * (0.25 + x * 0.125))))


KERNELS: dict[str, tuple[Callable[..., Any], tuple[int, ...], str]] = {
    "chain of functions, f4": (pb.grad(chain), (4096,), "f4"),
    "chain of functions, f8": (pb.grad(chain), (4096,), "f8"),
    "exp, f4": (np.exp, (4096,), "f4"),
    "exp, f8": (np.exp, (4096,), "f8"),
    "polynomial, f4": (pb.value_and_grad(polynomial), (4096,), "f4"),
    "gelu, f4": (gelu, (4096,), "f4"),
    "softmax of rows, f4": (softmax, (64, 1024), "f4"),
    "softmax of short rows, f4": (softmax, (64, 8), "f4"),
    "layer norm, f4": (layer_norm, (64, 1024), "f4"),
    "maximum of rows, f4": (lambda x: np.max(x, axis=1), (64, 1024), "f4"),
    "sum over rows, f4": (lambda x: np.sum(x * x, axis=0), (64, 1024), "f4"),
    "sum over a middle axis, f4": (lambda x: np.sum(x, axis=1), (16, 64, 64), "f4"),
    "rolled, f4": (lambda x: np.roll(x, 3) - x, (4096,), "f4"),
    "products of strided slices, f4": (lambda x: np.sum(x[::3] * x[1::3] * x[2::3]), (4096 * 3,), "f4"),
    "products of strided slices, f8": (lambda x: np.sum(x[::2] * x[1::2]), (4096 * 2,), "f8"),
    "exchanged columns, f4": (lambda x: np.stack([x[:, 2], x[:, 0], x[:, 1]], -1), (4096, 3), "f4"),
    "stacked, f4": (lambda x: np.stack([x[i] for i in (3, 1, 4, 5, 9, 2, 6)]), (10, 512), "f4"),
}


def count(name: str, target: Target) -> tuple[float, float]:
    """Return the instructions and the stack accesses per element of a kernel's innermost loops."""
    f, shape, dtype = KERNELS[name]
    traced = pb.compile(f, backend="numpy").lower(np.ones(shape, dtype)).traced
    stages = lower(traced, target, Options())
    (step,) = [s for s in stages.scheduled if isinstance(s.source, Kernel)]
    assembly = compile_assembly(stages.module.text, target, stages.module.longest_block)
    body = assembly[assembly.index("\nk0:") : assembly.index(".Lfunc_end", assembly.index("\nk0:"))]
    lines = [line for line in body.splitlines() if (line.startswith("\t") and line[1] != ".") or LABEL.match(line)]
    found = [line for start, stop in find_innermost_loops(lines) for line in lines[start:stop] if line[0] == "\t"]
    width = step.plan.loops.plan.width
    return round(len(found) / width, 3), round(sum(map(bool, map(STACK.search, found))) / width, 3)


def find_innermost_loops(lines: list[str]) -> list[tuple[int, int]]:
    """Return the ranges of lines that end in a conditional jump back to where they begin, and have no such in them.

    What is computed rarely lies elsewhere, and jumps back without a condition.
    """
    places = {match[1]: i for i, line in enumerate(lines) if (match := LABEL.match(line))}
    latches = [(i, match[1]) for i, line in enumerate(lines) if (match := LATCH.match(line))]
    loops = [(places[label], i + 1) for i, label in latches if places.get(label, i) < i]
    return [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]


def write_table() -> None:
    """Measure all kernels and write the table."""
    found = {name: {isa: count(name, t) for isa, t in TARGETS.items()} for name in KERNELS}
    rows = [f"  {json.dumps(name)}: {json.dumps(figures)}" for name, figures in found.items()]
    head = f'  "LLVM": {json.dumps(get_llvm_version())}'
    TABLE.write_text("{\n" + ",\n".join([head, *rows]) + "\n}\n")
