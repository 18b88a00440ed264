"""Random programs with views and in-place writes: one text, which NumPy and pullback run alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

Shape = tuple[int, ...]
SIZE = 6  # of the argument


def program(seed: int) -> str:
    """Return the text of ``f(x)``, of a vector of ``SIZE`` numbers, which returns one number."""
    return Program(seed).text()


def load(text: str, zeros: Callable[[Shape], Any]) -> Callable[[Any], Any]:
    """Return the function of a program; ``zeros`` makes the arrays that it writes into."""
    space: dict[str, Any] = {"np": np, "zeros": zeros, "bump": bump}
    exec(text, space)
    f: Callable[[Any], Any] = space["f"]
    return f


def bump(a: Any, value: Any) -> None:
    a += value


class Program:
    """Lines of a program, with the shape of every array in it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.shapes: dict[str, Shape] = {}
        self.count = 0

    def text(self) -> str:
        self.make("y", "x * 1.0", (6,))
        self.make("M", "np.reshape(x * 1.5, (2, 3)) * np.reshape(x, (2, 3))", (2, 3))
        for _ in range(self.random.randrange(3, 14)):
            self.step()
        terms = [
            f"{0.3 + 0.17 * i:.2f} * np.sum(np.sin({name}) * {name})" for i, (name, _) in enumerate(self.shapes.items())
        ]
        lines = [*self.lines, "return " + " + ".join(terms)]
        return "def f(x):\n" + "\n".join(f"    {line}" for line in lines)

    def make(self, name: str, expression: str, shape: Shape) -> None:
        self.lines.append(f"{name} = {expression}")
        self.shapes[name] = shape

    def fresh(self) -> str:
        self.count += 1
        return f"a{self.count}"

    def number(self, least: float = -1.5) -> str:
        return f"{self.random.uniform(least, 1.5):.2f}"

    def basic(self, shape: Shape) -> tuple[str, Shape]:
        """Return an index that gives a view, and the shape of that."""
        parts = []
        for n in shape:
            kind = self.random.random()
            if kind < 0.3 and n:
                parts.append(str(self.random.randrange(-n, n)))
            elif kind < 0.5:
                parts.append(":")
            else:
                a, b = (self.random.choice(["", *map(str, range(-n, n + 1))]) for _ in range(2))
                parts.append(f"{a}:{b}:{self.random.choice(['', '', '2', '-1', '-2'])}")
        if self.random.random() < 0.15:
            parts = parts[: self.random.randrange(len(parts) + 1)] or ["..."]
        if self.random.random() < 0.1 and "..." not in parts:
            parts.append("None")
        index = ", ".join(parts)
        return index, np.empty(shape)[eval(f"np.s_[{index}]")].shape

    def advanced(self, shape: Shape) -> tuple[str, Shape]:
        """Return an index that gives a copy: a mask, or positions."""
        if self.random.random() < 0.4:
            mask = np.array([self.random.random() < 0.5 for _ in range(int(np.prod(shape)))]).reshape(shape)
            return f"np.array({mask.tolist()})", (int(mask.sum()),)
        positions = [self.random.randrange(-shape[0], shape[0]) for _ in range(self.random.randrange(1, 4))]
        return str(positions), (len(positions), *shape[1:])

    def value(self, shape: Shape) -> str:
        """Return an expression that broadcasts to a shape."""
        kind = self.random.random()
        fitting = [name for name, s in self.shapes.items() if broadcasts(s, shape)]
        if kind < 0.25 or not fitting:
            return self.number() if kind < 0.2 else f"{self.number()} * x[{self.random.randrange(SIZE)}]"
        a, b = self.random.choice(fitting), self.random.choice(fitting)
        return (
            a
            if kind < 0.5
            else f"np.{self.random.choice(['sin', 'cos', 'tanh'])}({a})"
            if kind < 0.75
            else f"{a} * {b}"
        )

    def step(self) -> None:
        a = self.random.choice([*self.shapes])
        shape = self.shapes[a]
        choices: list[Callable[[str, Shape], None]] = [
            self.view,
            self.view,
            self.view,
            self.copy,
            self.zeros,
            self.rename,
        ]
        choices += [self.assign, self.assign, self.change, self.change, self.change_part, self.write_out, self.call]
        if np.prod(shape):
            choices += [self.pick, self.assign_picked]
        if len(shape) == 2:
            choices += [self.change_rows, self.exchange_rows, self.assign_element]
        self.random.choice(choices)(a, shape)

    def view(self, a: str, shape: Shape) -> None:
        index, picked = self.basic(shape)
        ways = {
            f"{a}[{index}]": picked, f"{a}.T": shape[::-1], f"{a}.ravel()": (-1,), f"np.ravel({a})": (-1,),
            f"{a}.reshape(-1)": (-1,), f"np.flip({a})": shape, f"{a}[::-1]": shape, f"np.flip({a}, 0)": shape,
            f"np.swapaxes({a}, 0, -1)": np.swapaxes(np.empty(shape), 0, -1).shape,
            f"np.expand_dims({a}, 0)": (1, *shape), f"np.squeeze({a})": np.empty(shape).squeeze().shape,
            f"np.moveaxis({a}, 0, -1)": np.moveaxis(np.empty(shape), 0, -1).shape,
        }  # fmt: skip
        size = int(np.prod(shape))
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        if divisors:
            rows = self.random.choice(divisors)
            ways[f"np.reshape({a}, ({rows}, {size // rows}))"] = (rows, size // rows)
        way = self.random.choice([*ways])
        made = (size,) if ways[way] == (-1,) else ways[way]
        if made and len(made) < 4:
            self.make(self.fresh(), way, made)

    def copy(self, a: str, shape: Shape) -> None:
        self.make(self.fresh(), self.random.choice([f"{a} * {self.number(0.5)}", f"{a}.copy()", f"{a} + {a}"]), shape)

    def zeros(self, a: str, shape: Shape) -> None:
        made = self.random.choice([(3,), (2, 3), (6,)])
        self.make(self.fresh(), f"zeros({made})", made)

    def rename(self, a: str, shape: Shape) -> None:
        self.make(self.fresh(), a, shape)

    def pick(self, a: str, shape: Shape) -> None:
        index, picked = self.advanced(shape)
        self.make(self.fresh(), f"{a}[{index}]", picked)

    def assign(self, a: str, shape: Shape) -> None:
        index, picked = self.basic(shape)
        self.lines.append(f"{a}[{index}] = {self.value(picked)}")

    def assign_picked(self, a: str, shape: Shape) -> None:
        index, picked = self.advanced(shape)
        self.lines.append(f"{a}[{index}] = {self.number() if 'np' in index else self.value(picked)}")

    def assign_element(self, a: str, shape: Shape) -> None:
        if np.prod(shape):
            i, j = (self.random.randrange(n) for n in shape)
            self.lines.append(f"{a}[{i}][{j}] = {self.value(())}")

    def change(self, a: str, shape: Shape) -> None:
        self.lines.append(f"{a} {self.random.choice('+-*')}= {self.value(shape)}")

    def change_part(self, a: str, shape: Shape) -> None:
        index, picked = self.basic(shape)
        self.lines.append(f"{a}[{index}] {self.random.choice('+-*')}= {self.value(picked)}")

    def change_rows(self, a: str, shape: Shape) -> None:
        self.lines.append(f"for row in {a}: row *= {self.number(0.5)} + row.sum() * 0.1")

    def exchange_rows(self, a: str, shape: Shape) -> None:
        if shape[0] > 1:
            self.lines.append(f"{a}[0], {a}[1] = {a}[1], {a}[0]")

    def write_out(self, a: str, shape: Shape) -> None:
        name = self.random.choice(["add", "multiply", "subtract"])
        self.lines.append(f"np.{name}({a}, {self.value(shape)}, out={a})")

    def call(self, a: str, shape: Shape) -> None:
        self.lines.append(f"bump({a}, {self.value(shape)})")


def broadcasts(shape: Shape, into: Shape) -> bool:
    try:
        return np.broadcast_shapes(shape, into) == tuple(into)
    except ValueError:
        return False
