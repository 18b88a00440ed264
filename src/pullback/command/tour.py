"""Worked gradients, each as code and what it prints, then a small model that learns."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

__all__ = ["EXAMPLES", "run"]

# What is shown is what is run.
EXAMPLES = {
    "The gradient of a function": """
        g = pb.grad(lambda x: pb.atan(x))
        g(pb.tensor1d([-4, -2, 0, 2, 4])).print()
    """,
    "The gradients by several inputs": """
        g = pb.grads(lambda a, b: a.mul(b))
        da, db = g([pb.tensor1d([1, 2]), pb.tensor1d([-1, -2])])
        da.print()
        db.print()
    """,
    "Value and gradients at once": """
        g = pb.value_and_grads(lambda a, b: a.mul(b))
        value, (da, db) = g([pb.tensor1d([1, 2]), pb.tensor1d([-1, -2])])
        value.print()
        da.print()
        db.print()
    """,
    "The same of a sum": """
        g = pb.value_and_grads(lambda a, b: a.add(b))
        value, (da, db) = g([pb.tensor1d([66, 51]), pb.tensor1d([-21, -13])])
        value.print()
        da.print()
        db.print()
    """,
    "The same of a quotient; None is 0, and dividing by it is infinite": """
        g = pb.value_and_grads(lambda a, b: a.div(b))
        value, (da, db) = g([pb.tensor1d([4.7, 5.8, 99.7]), pb.tensor1d([9.5, -20.5, None])])
        value.print()
        da.print()
        db.print()
    """,
    "The gradients by variables": """
        a = pb.variable(pb.tensor1d([3, 4]), name="a")
        b = pb.variable(pb.tensor1d([5, 6]), name="b")
        x = pb.tensor1d([1, 2])
        value, grads = pb.variable_grads(lambda: a.mul(x.square()).add(b.mul(x)).sum())
        value.print()
        grads["a"].print()
        grads["b"].print()
    """,
    "A gradient of your own: a square whose gradient is said to be |a|": """
        @pb.custom_grad
        def f(a, save):
            save([a])
            return pb.square(a), lambda dy, saved: dy.mul(saved[0].abs())

        a = pb.tensor1d([0, -1, 1, 2])
        f(a).print()
        pb.grad(lambda a: f(a))(a).print()
    """,
    "The same for a cube": """
        @pb.custom_grad
        def f(a, save):
            save([a])
            return a.pow(pb.scalar(3, "int32")), lambda dy, saved: dy.mul(saved[0].abs())

        a = pb.tensor1d([0, -1, 2, -2, 0.3])
        f(a).print()
        pb.grad(lambda a: f(a))(a).print()
    """,
    "Logistic regression: 200 points of two kinds, a line between them": """
        random = np.random.default_rng(0)
        kind = np.repeat([-1.0, 1.0], 100)
        points = random.normal(size=(200, 2)) + np.outer(kind, [1.5, 1.0])

        weights, bias = pb.variable(np.zeros(2), name="weights"), pb.variable(np.float64(0), name="bias")
        margin = lambda: (points @ weights + bias) * kind
        loss = lambda: pb.softplus(-margin()).mean()

        for step in range(101):
            value, grads = pb.variable_grads(loss)
            weights.assign_sub(grads["weights"])
            bias.assign_sub(grads["bias"])
            if step % 20 == 0:
                print(f"step {step:3}: loss {value.item():.4f}")
        print(f"on the right side of the line: {np.mean(margin().numpy() > 0):.0%}")
    """,
}


def dedented(code: str) -> str:
    """
    >>> dedented('''
    ...     x = 1
    ...     ''')
    'x = 1\\n'
    """
    lines = code.strip("\n").rstrip(" ").splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] for line in lines) + "\n"


def run() -> int:
    """Show and run every example."""
    for number, (title, text) in enumerate(EXAMPLES.items(), 1):
        code = dedented(text)
        print(f"{number}. {title}\n")
        print("".join(f"    {line}" if line.strip() else line for line in code.splitlines(keepends=True)))
        names: dict[str, Any] = {"np": np, "pb": pb}
        with np.errstate(divide="ignore", invalid="ignore"):
            exec(compile(code, f"<example {number}>", "exec"), names)
        names.clear()  # variables end with their example
        print()
    return 0
