"""A custom gradient for log(1 + exp(x)), whose gradient is NaN at 1000: find the cause, and use a stable formula."""

from __future__ import annotations

import numpy as np

import pullback as pb


def naive(x):
    return pb.log(1.0 + pb.exp(x))


@pb.custom_gradient
def stable(x):
    e = pb.exp(x)

    def grad_fn(dy):
        return dy * (1.0 - 1.0 / (1.0 + e))

    return pb.log(1.0 + e), grad_fn


with np.errstate(over="ignore", invalid="ignore"):
    lost, kept = pb.grad(naive)(1000.0), pb.grad(stable)(1000.0)
print(f"at 1000: naive {lost}, stable {kept}")
assert np.isnan(lost)
assert kept == 1.0

report = pb.diagnose(naive)(1000.0)
print("\nWhy the naive one is lost:", report, sep="\n")
assert report.op == "exp"
assert report.backward.operands == [0.0, np.inf]  # 0 * inf, in the backward pass through exp

print("\nWhere both work they agree:")
for order, (f, g) in enumerate([(naive, stable), (pb.grad(naive), pb.grad(stable))]):
    print(f"derivative {order + 1} at 0.5: naive {pb.grad(f)(0.5):.6f}, stable {pb.grad(g)(0.5):.6f}")
    assert np.isclose(pb.grad(f)(0.5), pb.grad(g)(0.5))
pb.check_grads(stable, [0.5])  # raises if it were wrong
