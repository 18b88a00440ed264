"""Show worked examples of gradients, as code and output, and train a small model."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import numpy as np

import pullback as pb

# Each is printed and run.
EXAMPLES = {
    "The gradient of a function": """
        g = pb.grad(lambda x: pb.atan(x))
        g(pb.tensor1d([-4, -2, 0, 2, 4])).print()
    """,
    "Gradients by several inputs": """
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
    "Value and gradients of a sum": """
        g = pb.value_and_grads(lambda a, b: a.add(b))
        value, (da, db) = g([pb.tensor1d([66, 51]), pb.tensor1d([-21, -13])])
        value.print()
        da.print()
        db.print()
    """,
    "Value and gradients of a quotient; None is 0, and dividing by it gives infinity": """
        g = pb.value_and_grads(lambda a, b: a.div(b))
        value, (da, db) = g([pb.tensor1d([4.7, 5.8, 99.7]), pb.tensor1d([9.5, -20.5, None])])
        value.print()
        da.print()
        db.print()
    """,
    "Gradients by variables": """
        a = pb.variable(pb.tensor1d([3, 4]), name="a")
        b = pb.variable(pb.tensor1d([5, 6]), name="b")
        x = pb.tensor1d([1, 2])
        value, grads = pb.variable_grads(lambda: a.mul(x.square()).add(b.mul(x)).sum())
        value.print()
        grads["a"].print()
        grads["b"].print()
    """,
    "A custom gradient: a square whose gradient is defined as |a|": """
        @pb.custom_grad
        def f(a, save):
            save([a])
            return pb.square(a), lambda dy, saved: dy.mul(saved[0].abs())

        a = pb.tensor1d([0, -1, 1, 2])
        f(a).print()
        pb.grad(lambda a: f(a))(a).print()
    """,
    "A custom gradient of a cube": """
        @pb.custom_grad
        def f(a, save):
            save([a])
            return a.pow(pb.scalar(3, "int32")), lambda dy, saved: dy.mul(saved[0].abs())

        a = pb.tensor1d([0, -1, 2, -2, 0.3])
        f(a).print()
        pb.grad(lambda a: f(a))(a).print()
    """,
    "Logistic regression: 200 points of two classes": """
        random = np.random.default_rng(0)
        label = np.repeat([-1.0, 1.0], 100)
        points = random.normal(size=(200, 2)) + np.outer(label, [1.5, 1.0])

        weights, bias = pb.variable(np.zeros(2), name="weights"), pb.variable(np.float64(0), name="bias")
        margin = lambda: (points @ weights + bias) * label
        loss = lambda: pb.softplus(-margin()).mean()

        for step in range(101):
            value, grads = pb.variable_grads(loss)
            weights.assign_sub(grads["weights"])
            bias.assign_sub(grads["bias"])
            if step % 20 == 0:
                print(f"step {step:3}: loss {value.item():.4f}")
        print(f"classified correctly: {np.mean(margin().numpy() > 0):.0%}")
    """,
}


def run() -> int:
    """Print and run every example; return the exit status."""
    for number, (title, text) in enumerate(EXAMPLES.items(), 1):
        code = cleandoc(text) + "\n"
        print(f"{number}. {title}\n")
        print("".join(f"    {line}" if line.strip() else line for line in code.splitlines(keepends=True)))
        names: dict[str, Any] = {"np": np, "pb": pb}
        with np.errstate(divide="ignore", invalid="ignore"):
            exec(compile(code, f"<example {number}>", "exec"), names)
        names.clear()  # frees the variables of the example
        print()
    return 0
