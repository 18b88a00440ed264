"""Nine whole trainings, as users of each library write them: pullback against torch's eager loops.

Each is run with several seeds; printed are the mean result of each library and the CPU time from the first line to the
last, compiling included.  A ratio is torch's time divided by ours: above 1, pullback is quicker.  The last columns are
the lines of code of each.  ``--quick`` makes all of them short, to see that they run.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
from isa import add_isa_option  # isort: skip
import argparse
import inspect
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits, load_iris
from torch import nn
from torch.nn import functional

import pullback as pb

os.environ["PULLBACK_CACHE"] = "0"  # every library compiles for itself
torch.set_num_threads(1)
layers = pb.layers
NORMAL = pb.initializers.random_normal(0.0, 1.0)  # torch's for tables
NARROW = pb.initializers.variance_scaling(1 / 3, "fan_in", "uniform")  # torch's for dense layers
SPARSE = "sparse_softmax_cross_entropy"
EFFORT = 1.0  # of the epochs and steps; less with --quick


def count(steps: int) -> int:
    """Return how many epochs or steps are made."""
    return max(1, round(steps * EFFORT))


def cut(x: Any, y: Any, seed: int, part: float = 0.8) -> tuple[Any, Any, Any, Any]:
    """Return what is trained on and what is held back."""
    order = np.random.default_rng(seed).permutation(len(x))
    most = int(part * len(x))
    return x[order[:most]], y[order[:most]], x[order[most:]], y[order[most:]]


def train_torch(model: Any, x: Any, y: Any, rate: float, epochs: int, batch: int) -> None:
    """Train a classifier by the loop of torch's tutorials."""
    x, y = torch.tensor(x), torch.tensor(y, dtype=torch.int64)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad()
            logits = model(x[rows])
            functional.cross_entropy(logits.flatten(0, -2), y[rows].flatten()).backward()
            optimizer.step()


def predict_torch(model: Any, x: Any) -> Any:
    with torch.no_grad():
        return model(torch.tensor(x)).numpy()


def score(logits: Any, labels: Any) -> float:
    """Return the share of right labels."""
    return float(np.mean(np.argmax(logits, -1) == labels))


def lose(logits: Any, labels: Any) -> float:
    """Return the mean cross-entropy."""
    flat = np.asarray(logits, np.float64).reshape(-1, np.shape(logits)[-1])
    flat = flat - flat.max(-1, keepdims=True)
    picked = flat[np.arange(len(flat)), np.ravel(labels)]
    return float(np.mean(np.log(np.exp(flat).sum(-1)) - picked))


# ---- iris


def iris(seed: int) -> tuple[Any, Any, Any, Any]:
    x, y = load_iris(return_X_y=True)
    return cut(((x - x.mean(0)) / x.std(0)).astype("f4"), y.astype("i4"), seed)


def iris_ours(seed: int) -> float:
    x, y, held, labels = iris(seed)
    model = pb.sequential([layers.dense(16, activation="relu", input_shape=[4]), layers.dense(3)])
    model.compile(pb.train.adam(0.01), SPARSE)
    model.fit(x, y, batch_size=15, epochs=count(60), verbose=0)
    return score(model.predict(held), labels)


def iris_torch(seed: int) -> float:
    x, y, held, labels = iris(seed)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    train_torch(model, x, y, 0.01, count(60), 15)
    return score(predict_torch(model, held), labels)


# ---- digits


def digits(seed: int) -> tuple[Any, Any, Any, Any]:
    found = load_digits()
    return cut((found.images[..., None] / 16).astype("f4"), found.target.astype("i4"), seed)


def make_net(classes: int) -> Any:
    return pb.sequential([
        layers.conv2d(16, 3, padding="same", activation="relu", input_shape=[8, 8, 1]), layers.max_pooling2d(2),
        layers.conv2d(32, 3, padding="same", activation="relu"), layers.max_pooling2d(2),
        layers.flatten(), layers.dense(classes),
    ])  # fmt: skip


def make_torch_net(classes: int) -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, classes),
    )  # fmt: skip


def digits_ours(seed: int) -> float:
    x, y, held, labels = digits(seed)
    model = make_net(10)
    model.compile(pb.train.adam(0.003), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(10), verbose=0)
    return score(model.predict(held), labels)


def digits_torch(seed: int) -> float:
    x, y, held, labels = digits(seed)
    model = make_torch_net(10)
    train_torch(model, x.transpose(0, 3, 1, 2).copy(), y, 0.003, count(10), 32)
    return score(predict_torch(model, held.transpose(0, 3, 1, 2).copy()), labels)


# ---- transfer learning: features of the digits 0 to 4, for those from 5 to 9


def split_digits(seed: int) -> tuple[Any, Any]:
    x, y, held, labels = digits(seed)
    low, high = y < 5, y >= 5
    return (x[low], y[low]), (x[high], y[high] - 5, held[labels >= 5], labels[labels >= 5] - 5)


def transfer_ours(seed: int) -> float:
    (x, y), (new, wanted, held, labels) = split_digits(seed)
    model = make_net(5)
    model.compile(pb.train.adam(0.003), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(5), verbose=0)
    for layer in model.layers[:-1]:
        layer.trainable = False
    other = pb.sequential([*model.layers[:-1], layers.dense(5)])
    other.compile(pb.train.adam(0.01), SPARSE)
    other.fit(new, wanted, batch_size=32, epochs=count(10), verbose=0)
    return score(other.predict(held), labels)


def transfer_torch(seed: int) -> float:
    (x, y), (new, wanted, held, labels) = split_digits(seed)
    model = make_torch_net(5)
    train_torch(model, x.transpose(0, 3, 1, 2).copy(), y, 0.003, count(5), 32)
    for p in model[:-1].parameters():
        p.requires_grad = False
    other = nn.Sequential(*model[:-1], nn.Linear(128, 5))
    train_torch(other, new.transpose(0, 3, 1, 2).copy(), wanted, 0.01, count(10), 32)
    return score(predict_torch(other, held.transpose(0, 3, 1, 2).copy()), labels)


# ---- addition of numbers that are texts


def sums(seed: int) -> tuple[Any, Any, Any, Any]:
    random = np.random.default_rng(seed)
    pairs = random.integers(0, 100, (4000, 2))
    code = lambda texts: np.array([["0123456789+ ".index(c) for c in t] for t in texts], "i4")
    x, y = code([f"{a}+{b}".ljust(5) for a, b in pairs]), code([f"{a + b}".ljust(3) for a, b in pairs])
    return cut(np.eye(12, dtype="f4")[x], y, seed)


def addition_ours(seed: int) -> float:
    x, y, held, labels = sums(seed)
    model = pb.sequential([
        layers.lstm(64, input_shape=[5, 12]), layers.repeat_vector(3), layers.lstm(64, return_sequences=True),
        layers.dense(12),
    ])  # fmt: skip
    model.compile(pb.train.adam(0.005), SPARSE)
    model.fit(x, y, batch_size=64, epochs=count(15), verbose=0)
    return score(model.predict(held), labels)


class Adder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.read, self.write = nn.LSTM(12, 64, batch_first=True), nn.LSTM(64, 64, batch_first=True)
        self.out = nn.Linear(64, 12)

    def forward(self, x: Any) -> Any:
        h = self.read(x)[0][:, -1:].repeat(1, 3, 1)
        return self.out(self.write(h)[0])


def addition_torch(seed: int) -> float:
    x, y, held, labels = sums(seed)
    model = Adder()
    train_torch(model, x, y, 0.005, count(15), 64)
    return score(predict_torch(model, held), labels)


# ---- texts, letter by letter


@lru_cache(1)
def read_text() -> tuple[Any, int]:
    text = (Path(__file__).parent / "README.md").read_text("ascii", "ignore")
    letters = sorted({*text})
    return np.array([letters.index(c) for c in text], "i4"), len(letters)


def letters(seed: int, length: int = 40, many: int = 2000) -> tuple[Any, Any, Any, Any]:
    codes, _ = read_text()
    begins = np.random.default_rng(seed).integers(0, len(codes) - length - 1, many)
    windows = codes[begins[:, None] + np.arange(length + 1)]
    return cut(windows[:, :-1], windows[:, 1:], seed)


def spelling_ours(seed: int) -> float:
    x, y, held, labels = letters(seed)
    size = read_text()[1]
    model = pb.sequential([
        layers.embedding(size, 24, NORMAL, input_shape=[40]), layers.lstm(64, return_sequences=True), layers.dense(size)
    ])  # fmt: skip
    model.compile(pb.train.adam(0.01), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(4), verbose=0)
    return lose(model.predict(held), labels)


class Speller(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.embed, self.remember = nn.Embedding(size, 24), nn.LSTM(24, 64, batch_first=True)
        self.out = nn.Linear(64, size)

    def forward(self, x: Any) -> Any:
        return self.out(self.remember(self.embed(x))[0])


def spelling_torch(seed: int) -> float:
    x, y, held, labels = letters(seed)
    model = Speller(read_text()[1])
    train_torch(model, x, y, 0.01, count(4), 32)
    return lose(predict_torch(model, held), labels)


# ---- a small GPT


def gpt_ours(seed: int) -> float:
    x, y, held, labels = letters(seed, 32, 1000)
    size = read_text()[1]
    token = pb.input([32])
    place = layers.embedding(32, 32, NORMAL)(pb.input([32]))
    h = layers.embedding(size, 32, NORMAL)(token) + place
    for _ in range(2):
        a = layers.layer_normalization()(h)
        h = h + layers.multi_head_attention(4, 8)(a, a, use_causal_mask=True)
        a = layers.dense(128, activation="relu")(layers.layer_normalization()(h))
        h = h + layers.dense(32)(a)
    model = pb.model([token, place.inputs[0]], layers.dense(size)(layers.layer_normalization()(h)))
    places = np.broadcast_to(np.arange(32, dtype="i4"), (len(x), 32))
    model.compile(pb.train.adam(0.003), SPARSE)
    model.fit([x, places], y, batch_size=32, epochs=count(6), verbose=0)
    return lose(model.predict([held, places[: len(held)]]), labels)


class SmallGPT(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(size, 32), nn.Embedding(32, 32)
        block = nn.TransformerEncoderLayer(32, 4, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, 2, nn.LayerNorm(32), enable_nested_tensor=False)
        self.out = nn.Linear(32, size)
        self.mask = nn.Transformer.generate_square_subsequent_mask(32)

    def forward(self, x: Any) -> Any:
        return self.out(self.blocks(self.embed(x) + self.place.weight, self.mask, is_causal=True))


def gpt_torch(seed: int) -> float:
    x, y, held, labels = letters(seed, 32, 1000)
    model = SmallGPT(read_text()[1])
    train_torch(model, x, y, 0.003, count(6), 32)
    return lose(predict_torch(model.eval(), held), labels)


# ---- a variational autoencoder


def vae_ours(seed: int) -> float:
    x, _, held, _ = digits(seed)
    x, held, random = x.reshape(-1, 64), held.reshape(-1, 64), np.random.default_rng(seed)
    encode = pb.sequential([layers.dense(128, activation="relu", input_shape=[64]), layers.dense(16)])
    decode = pb.sequential([layers.dense(128, activation="relu", input_shape=[8]), layers.dense(64)])
    optimizer = pb.train.adam(0.003)

    def loss(x: Any, noise: Any) -> Any:
        m, s = np.split(encode(x), 2, -1)
        logits = decode(m + np.exp(s / 2) * noise)
        unlike = np.sum(pb.softplus(logits) - x * logits, -1)
        return np.mean(unlike - np.sum(1 + s - m * m - np.exp(s), -1) / 2)

    @pb.compile
    def step(x: Any, noise: Any) -> Any:
        return optimizer.minimize(lambda: loss(x, noise), return_cost=True)

    for _ in range(count(20)):
        order = random.permutation(len(x))
        for i in range(0, len(x) - 63, 64):
            step(x[order[i : i + 64]], random.normal(size=(64, 8)).astype("f4"))
    return float(loss(held, random.normal(size=(len(held), 8)).astype("f4")))


def vae_torch(seed: int) -> float:
    x, held = (torch.tensor(a.reshape(-1, 64)) for a in digits(seed)[::2])
    encode = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
    decode = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 64))
    optimizer = torch.optim.Adam([*encode.parameters(), *decode.parameters()], lr=0.003)

    def loss(x: Any) -> Any:
        m, s = encode(x).chunk(2, -1)
        logits = decode(m + torch.exp(s / 2) * torch.randn_like(m))
        unlike = functional.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)
        return (unlike - (1 + s - m * m - s.exp()).sum(-1) / 2).mean()

    for _ in range(count(20)):
        order = torch.randperm(len(x))
        for i in range(0, len(x) - 63, 64):
            optimizer.zero_grad()
            loss(x[order[i : i + 64]]).backward()
            optimizer.step()
    with torch.no_grad():
        return float(loss(held))


# ---- WGAN-GP on eight points of a circle


def draw_circle(random: Any, many: int) -> Any:
    angle = 2 * np.pi * random.integers(0, 8, many) / 8
    points = np.stack([np.cos(angle), np.sin(angle)], -1) * 2 + 0.05 * random.normal(size=(many, 2))
    return points.astype("f4")


def measure_points(points: Any) -> float:
    """Return the mean distance from the nearest of the eight points."""
    angle = 2 * np.pi * np.arange(8) / 8
    centres = np.stack([np.cos(angle), np.sin(angle)], -1) * 2
    return float(np.mean(np.linalg.norm(points[:, None] - centres, axis=-1).min(-1)))


def wgan_ours(seed: int) -> float:
    random = np.random.default_rng(seed)
    hidden = lambda **more: layers.dense(64, activation="relu", kernel_initializer=NARROW, **more)
    make = pb.sequential([hidden(input_shape=[4]), hidden(), layers.dense(2, kernel_initializer=NARROW)])
    judge = pb.sequential([hidden(input_shape=[2]), hidden(), layers.dense(1, kernel_initializer=NARROW)])
    make.build_for([(4,)])
    judge.build_for([(2,)])
    own, others = pb.train.adam(0.001, 0.5, 0.9), pb.train.adam(0.001, 0.5, 0.9)

    @pb.compile
    def teach(real: Any, noise: Any, share: Any) -> Any:
        fake = make(noise)
        between = share * real + (1 - share) * fake

        def loss() -> Any:
            slope = pb.grad(lambda x: np.sum(judge(x)))(between)
            far = np.sqrt(np.sum(slope * slope, -1) + 1e-12) - 1
            return np.mean(judge(fake)) - np.mean(judge(real)) + 10 * np.mean(far * far)

        return others.minimize(loss, judge.trainable_weights, return_cost=True)

    @pb.compile
    def learn(noise: Any) -> Any:
        return own.minimize(lambda: -np.mean(judge(make(noise))), make.trainable_weights, return_cost=True)

    draw = lambda: random.normal(size=(64, 4)).astype("f4")
    for _ in range(count(400)):
        for _ in range(3):
            teach(draw_circle(random, 64), draw(), random.random((64, 1)).astype("f4"))
        learn(draw())
    return measure_points(np.asarray(make(random.normal(size=(512, 4)).astype("f4"))))


def wgan_torch(seed: int) -> float:
    random = np.random.default_rng(seed)
    make = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    judge = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    own, others = (torch.optim.Adam(m.parameters(), lr=0.001, betas=(0.5, 0.9)) for m in (make, judge))
    for _ in range(count(400)):
        for _ in range(3):
            real, share = torch.tensor(draw_circle(random, 64)), torch.rand(64, 1)
            fake = make(torch.randn(64, 4)).detach()
            between = (share * real + (1 - share) * fake).requires_grad_()
            (slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
            penalty = ((slope.norm(2, -1) - 1) ** 2).mean()
            others.zero_grad()
            (judge(fake).mean() - judge(real).mean() + 10 * penalty).backward()
            others.step()
        own.zero_grad()
        (-judge(make(torch.randn(64, 4))).mean()).backward()
        own.step()
    with torch.no_grad():
        return measure_points(make(torch.randn(512, 4)).numpy())


# ---- cart-pole, by a policy gradient


class Pole:
    """The cart and its pole, as in Gymnasium's CartPole."""

    def __init__(self, random: Any) -> None:
        self.state = random.uniform(-0.05, 0.05, 4)

    def push(self, right: int) -> bool:
        """Move on by one step, and return whether the pole still stands."""
        x, v, angle, turn = self.state
        force, c, s = 10.0 if right else -10.0, np.cos(angle), np.sin(angle)
        t = (force + 0.05 * turn * turn * s) / 1.1
        bend = (9.8 * s - c * t) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        a = t - 0.05 * bend * c / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * a, angle + 0.02 * turn, turn + 0.02 * bend])
        return bool(abs(self.state[0]) < 2.4 and abs(self.state[2]) < 0.2095)


def balance(odds: Callable[[Any], Any], learn: Callable[..., Any], seed: int) -> float:
    """Play and learn, and return how many steps the last episodes lasted."""
    random, lasted = np.random.default_rng(seed), []
    for _ in range(count(40)):
        states, pushes, returns = [], [], []
        for _ in range(8):
            pole, begin = Pole(random), len(pushes)
            while len(pushes) - begin < 200:
                states.append(pole.state.astype("f4"))
                pushes.append(int(random.random() < float(odds(states[-1][None]))))
                if not pole.push(pushes[-1]):
                    break
            lasted.append(len(pushes) - begin)
            returns.append(np.cumsum(0.99 ** np.arange(lasted[-1]))[::-1])
        after = np.concatenate(returns)
        advantages = (after - after.mean()) / (after.std() + 1e-6)
        learn(np.array(states), np.array(pushes, "f4"), advantages.astype("f4"))
    return mean(lasted[-80:])


def pole_ours(seed: int) -> float:
    policy = pb.sequential([layers.dense(32, activation="tanh", input_shape=[4]), layers.dense(1)])
    optimizer = pb.train.adam(0.02)

    @pb.compile
    def odds(state: Any) -> Any:
        return pb.sigmoid(policy(state))[0, 0]

    @pb.compile
    def step(states: Any, pushes: Any, advantages: Any) -> Any:
        unlike = pb.losses.sigmoid_cross_entropy_with_logits
        return optimizer.minimize(lambda: pb.mean(advantages * unlike(pushes, policy(states)[:, 0])))

    def learn(states: Any, pushes: Any, advantages: Any) -> None:
        spare = 1600 - len(pushes)  # one size, so that one program is compiled; the padding has advantage 0
        step(np.pad(states, ((0, spare), (0, 0))), np.pad(pushes, (0, spare)), np.pad(advantages, (0, spare)))

    return balance(odds, learn, seed)


def pole_torch(seed: int) -> float:
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)

    def odds(state: Any) -> Any:
        with torch.no_grad():
            return torch.sigmoid(policy(torch.from_numpy(state)))[0, 0]

    def learn(states: Any, pushes: Any, advantages: Any) -> None:
        optimizer.zero_grad()
        logits = policy(torch.from_numpy(states))[:, 0]
        unlike = functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(pushes), reduction="none")
        (torch.from_numpy(advantages) * unlike).mean().backward()
        optimizer.step()

    return balance(odds, learn, seed)


# ---- measuring


class Training(NamedTuple):
    name: str
    result: str  # what is printed of it
    ours: Callable[[int], float]
    torch: Callable[[int], float]
    parts: tuple[Any, ...] = ()  # of torch's code, besides


TRAININGS = [
    Training("iris", "accuracy", iris_ours, iris_torch),
    Training("digits", "accuracy", digits_ours, digits_torch),
    Training("addition", "accuracy", addition_ours, addition_torch, (Adder,)),
    Training("spelling", "loss", spelling_ours, spelling_torch, (Speller,)),
    Training("cart-pole", "steps", pole_ours, pole_torch),
    Training("vae", "loss", vae_ours, vae_torch),
    Training("gpt", "loss", gpt_ours, gpt_torch, (SmallGPT,)),
    Training("transfer", "accuracy", transfer_ours, transfer_torch),
    Training("wgan", "distance", wgan_ours, wgan_torch),
]


def count_lines(*parts: Any) -> int:
    return sum(bool(line.strip()) for part in parts for line in inspect.getsource(part).splitlines())


def measure(training: Training, seeds: int) -> str:
    """Return the row of a training."""
    results: dict[str, list[float]] = {"ours": [], "torch": []}
    times: dict[str, list[float]] = {"ours": [], "torch": []}
    for seed in range(seeds):
        for name in ("ours", "torch") if seed % 2 else ("torch", "ours"):
            pb.random.seed(seed)
            torch.manual_seed(seed)
            begin = process_time()
            results[name].append(getattr(training, name)(seed))
            times[name].append(process_time() - begin)
    ratio = median(b / a for a, b in zip(times["ours"], times["torch"], strict=True))
    shown = [f"{mean(results[name]):.3f} ±{np.std(results[name]):.3f}" for name in results]
    lines = count_lines(training.ours), count_lines(training.torch, *training.parts)
    taken = [f"{median(times[name]):.2f} s" for name in times]
    cells = [training.result, *shown, *taken, f"{ratio:.2f}", *map(str, lines)]
    return f"{training.name:12}" + "".join(f"{cell:>16}" for cell in cells)


def main() -> None:
    global EFFORT
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_isa_option(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="names that begin so, separated by commas")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    options = parser.parse_args()
    EFFORT = 0.1 if options.quick else 1.0
    iris_torch(0)  # torch's first call loads what it needs
    heads = ["result", "ours", "torch", "ours", "torch", "torch ÷ ours", "our lines", "torch's"]
    print(f"{'':12}" + "".join(f"{head:>16}" for head in heads))
    for training in TRAININGS:
        if training.name.startswith(tuple(options.only.split(","))):
            print(measure(training, options.seeds), flush=True)


if __name__ == "__main__":
    main()
