"""A character-level recurrent network, trained on the texts of this repository with checkpointing to save memory.

The sequence is cut into pieces.  With ``recompute_grad`` the backward pass computes each piece again instead of
keeping every value inside it: the same gradients, in less memory.
"""

from __future__ import annotations

import argparse
import tracemalloc
from pathlib import Path

import numpy as np

import pullback as pb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=150, help="of training")
parser.add_argument("--units", type=int, default=64)
parser.add_argument("--letters", type=int, default=200, help="to write in the end")
settings = parser.parse_args()

root = Path(__file__).resolve().parent.parent
text = "\n".join(path.read_text("utf-8") for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))])
letters = sorted({*text})
codes = np.array([letters.index(c) for c in text])
print(f"{len(text)} letters, {len(letters)} different ones")

LENGTH, PIECE, BATCH = 64, 8, 32
pb.random.seed(0)
embed = pb.layers.embedding(len(letters), 24)
remember = pb.layers.gru(settings.units, return_sequences=True, return_state=True)
spell = pb.layers.dense(len(letters))


def through(piece, state):
    """Return the logits of the letter after each of these letters, and the state after the last."""
    seen, state = remember(embed(piece), initial_state=state)
    return spell(seen), state


def loss(batch, through=through):
    """Return the mean cross-entropy, in nats per letter."""
    state, total = np.zeros((len(batch), settings.units), np.float32), 0.0
    for at in range(0, LENGTH, PIECE):
        logits, state = through(batch[:, at : at + PIECE], state)
        total = total + pb.losses.sparse_softmax_cross_entropy(batch[:, at + 1 : at + PIECE + 1], logits)
    return total / (LENGTH / PIECE)


def sample(random):
    begins = random.integers(0, len(codes) - LENGTH - 1, BATCH)
    return codes[begins[:, None] + np.arange(LENGTH + 1)]


random = np.random.default_rng(0)
batch = sample(random)
loss(batch)  # makes the variables


def peak(through):
    """Return the gradients by all variables and the peak memory."""
    tracemalloc.start()
    _, grads = pb.variable_grads(lambda: loss(batch, through))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return grads, most


kept, much = peak(through)
computed_again, little = peak(pb.recompute_grad(through))
print(f"memory for a gradient: {much / 1e6:.1f} MB, with recompute_grad {little / 1e6:.1f} MB")
assert little < 0.6 * much
assert all(np.allclose(kept[name], computed_again[name], rtol=1e-4, atol=1e-6) for name in kept)

optimizer = pb.train.adam(0.01, clip_global_norm=1.0)


@pb.compile
def step(batch):
    return optimizer.minimize(lambda: loss(batch), return_cost=True)


losses = [float(step(sample(random))) for _ in range(settings.steps)]
first, last = losses[0], np.mean(losses[-10:])
print(f"cross-entropy: {first:.2f} nats per letter at first, {last:.2f} after {settings.steps} steps")

state = np.zeros((1, settings.units), np.float32)
written, letter = "", letters.index("T")
write = pb.compile(through)
for _ in range(settings.letters):
    logits, state = write(np.array([[letter]]), state)
    odds = np.exp(np.asarray(logits[0, 0], np.float64) / 0.7)
    letter = int(random.choice(len(letters), p=odds / odds.sum()))
    written += letters[letter]
print(f"it writes: {written!r}")

often = np.bincount(codes) / len(codes)
assert abs(first - np.log(len(letters))) < 0.5  # untrained: all letters are equally likely
assert last < -np.sum(often * np.log(often)) - 0.5  # better than letter frequencies
