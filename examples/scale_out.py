"""Fit a regression to data in several files: every worker loads its own, and the gradient is that of the whole."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import pullback as pb

TRUE = np.array([1.0, -2.0, 0.5])


def write_files(folder: Path, count: int, rows: int) -> list[Path]:
    """Write the data: rows of three features and a target."""
    paths = []
    for i in range(count):
        random = np.random.default_rng([0, i])
        x = random.normal(size=(rows, 3))
        y = x @ TRUE + 0.1 * random.normal(size=rows)
        paths.append(folder / f"part{i}.npy")
        np.save(paths[-1], np.column_stack([x, y]))
    return paths


def squared_error(weights, rows):
    return np.sum((rows[:, :3] @ weights - rows[:, 3]) ** 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="processes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files, rows = (3, 100) if options.quick else (8, 20_000)
        shards = pb.scale.Shards(write_files(Path(folder), files, rows))
        with pb.scale.Pool(options.engine, workers=options.workers) as pool:
            total = pool.sum(squared_error, shards)
            weights = pb.variable(np.zeros(3), name="weights")
            optimizer = pb.train.sgd(0.3 / (files * rows))
            for step in range(21):
                value = optimizer.minimize(lambda: total(weights) + 1e-3 * pb.sum(weights**2), return_cost=True)
                if step % 5 == 0:
                    print(f"step {step:2}: error {value.item() / (files * rows):.5f}")
        print("weights:", np.round(weights.numpy(), 2))
        assert np.allclose(weights.numpy(), TRUE, atol=0.05)


if __name__ == "__main__":
    main()
