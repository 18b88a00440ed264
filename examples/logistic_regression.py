"""Logistic regression with variables: classify two clusters of points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import pullback as pb

random = np.random.default_rng(0)
kind = np.repeat([0.0, 1.0], 150)
points = random.normal(size=(300, 2)) + np.outer(kind, [2.5, 2.0])

weights = pb.variable(np.zeros(2), name="weights")
bias = pb.variable(np.zeros(()), name="bias")


def logits():
    return points @ weights + bias


def loss():
    """Return the mean cross-entropy; softplus(z) - kind * z does not overflow."""
    z = logits()
    return pb.mean(pb.softplus(z) - kind * z)


losses = []
for _ in range(200):
    value, grads = pb.variable_grads(loss)
    losses.append(value.item())
    weights.assign_sub(0.5 * grads["weights"])
    bias.assign_sub(0.5 * grads["bias"])

right = np.mean((logits().numpy() > 0) == (kind > 0.5))
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, {right:.0%} classified correctly")

assert all(later < earlier for earlier, later in pairwise(losses))
assert right > 0.9
