"""Images that maximize the filters of a convolutional network, by gradient ascent, and guided backpropagation.

Two grids of pictures are written: the images that excite each filter of the second convolution most, and what in a
given digit excites it, by a gradient that passes a relu only where it was active and the gradient is positive.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from digits import data, network
from matplotlib.figure import Figure

import pullback as pb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=80, help="of gradient ascent")
parser.add_argument("--epochs", type=int, default=4, help="of training the network before")
parser.add_argument("--out", type=Path, default=None, help="a folder for the pictures")
settings = parser.parse_args()
out = settings.out or Path(tempfile.mkdtemp())

(x, y), _ = data()
model = network()
model.fit(x, y, epochs=settings.epochs)
looking = pb.sequential(model.layers[:3])  # up to the second convolution: the same layers, the same variables
filters = 32


def excitement(images):
    """Return the mean activation of each filter in its own image."""
    return pb.sum(pb.mean(looking(images), [1, 2]) * np.eye(filters, dtype=np.float32))


@pb.compile
def climb(images):
    slopes = pb.grad(excitement)(images)
    length = np.sqrt(np.mean(slopes**2, axis=(1, 2, 3), keepdims=True)) + 1e-6
    return np.clip(images + 0.05 * slopes / length, 0.0, 1.0)


start = np.random.default_rng(0).uniform(0.4, 0.6, size=(filters, 8, 8, 1)).astype(np.float32)
found = start
for _ in range(settings.steps):
    found = climb(found)


@pb.register_gradient("guided_relu")
def guided_relu(op, dy):
    (x,) = op.inputs
    return dy * (x > 0) * (dy > 0)


digit = np.repeat(x[:1], filters, axis=0)
plain = pb.grad(excitement)(digit)
with pb.override_gradient({"relu": "guided_relu"}):
    guided = pb.grad(excitement)(digit)


def write(name, rows):
    """Write a grid of images, one row for each kind."""
    figure = Figure(figsize=(filters / 2, len(rows)))
    axes = figure.subplots(len(rows))
    for place, (title, images) in zip(axes, rows.items(), strict=True):
        images = images[..., 0] - np.min(images[..., 0], axis=(1, 2), keepdims=True)
        images = images / (np.max(images, axis=(1, 2), keepdims=True) + 1e-12)  # each from black to white
        place.imshow(np.hstack(np.pad(images, ((0, 0), (1, 1), (1, 1)), constant_values=1.0)), cmap="gray")
        place.set_axis_off()
        place.set_title(title, loc="left", fontsize=8)
    figure.savefig(out / name)
    print("written:", out / name)


write("filters.png", {"noise": start, "what excites the filter most": found})
write("guided.png", {"a digit": digit, "its gradient": plain, "guided": guided})

activity = np.asarray(pb.mean(looking(found), [1, 2]))
own, others = np.diag(activity), activity[~np.eye(filters, dtype=bool)]
before = np.diag(np.asarray(pb.mean(looking(start), [1, 2])))
print(f"mean activity of a filter: {before.mean():.3f} in noise, {own.mean():.3f} in its own picture")
assert np.mean(own > before) > 0.9  # filters that are zero everywhere have no gradient
assert own.mean() > 2 * before.mean()
assert own.mean() > 1.5 * others.mean()
assert all((out / name).stat().st_size > 1000 for name in ("filters.png", "guided.png"))
assert not np.array_equal(guided, plain)
