"""The nine trainings with torch, by the loops of its tutorials."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import trainings_data as data
from torch import nn
from torch.nn import functional
from trainings_data import count, lose, score

torch.set_num_threads(1)


def train(model: Any, x: Any, y: Any, rate: float, epochs: int, batch: int) -> None:
    """Train a classifier by the loop of torch's tutorials."""
    x, y = torch.tensor(x), torch.tensor(y, dtype=torch.int64)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad()
            logits = model(x[rows])
            functional.cross_entropy(logits.flatten(0, -2), y[rows].flatten()).backward()
            optimizer.step()


def predict(model: Any, x: Any) -> Any:
    with torch.no_grad():
        return model(torch.tensor(x)).numpy()


def iris(seed: int) -> float:
    x, y, held, labels = data.iris(seed)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    train(model, x, y, 0.01, count(60), 15)
    return score(predict(model, held), labels)


def make_net(classes: int) -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, classes),
    )  # fmt: skip


def digits(seed: int) -> float:
    x, y, held, labels = data.digits(seed)
    model = make_net(10)
    train(model, x.transpose(0, 3, 1, 2).copy(), y, 0.003, count(10), 32)
    return score(predict(model, held.transpose(0, 3, 1, 2).copy()), labels)


class Adder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.read, self.write = nn.LSTM(12, 64, batch_first=True), nn.LSTM(64, 64, batch_first=True)
        self.out = nn.Linear(64, 12)

    def forward(self, x: Any) -> Any:
        h = self.read(x)[0][:, -1:].repeat(1, 3, 1)
        return self.out(self.write(h)[0])


def addition(seed: int) -> float:
    x, y, held, labels = data.sums(seed)
    model = Adder()
    train(model, x, y, 0.005, count(15), 64)
    return score(predict(model, held), labels)


class Speller(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.embed, self.remember = nn.Embedding(size, 24), nn.LSTM(24, 64, batch_first=True)
        self.out = nn.Linear(64, size)

    def forward(self, x: Any) -> Any:
        return self.out(self.remember(self.embed(x))[0])


def spelling(seed: int) -> float:
    x, y, held, labels = data.letters(seed)
    model = Speller(data.read_text()[1])
    train(model, x, y, 0.01, count(4), 32)
    return lose(predict(model, held), labels)


def cart_pole(seed: int) -> float:
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

    return data.balance(odds, learn, seed)


def vae(seed: int) -> float:
    x, held = (torch.tensor(a.reshape(-1, 64)) for a in data.digits(seed)[::2])
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


def gpt(seed: int) -> float:
    x, y, held, labels = data.letters(seed, 32, 1000)
    model = SmallGPT(data.read_text()[1])
    train(model, x, y, 0.003, count(6), 32)
    return lose(predict(model.eval(), held), labels)


def transfer(seed: int) -> float:
    (x, y), (new, wanted, held, labels) = data.split_digits(seed)
    model = make_net(5)
    train(model, x.transpose(0, 3, 1, 2).copy(), y, 0.003, count(5), 32)
    for p in model[:-1].parameters():
        p.requires_grad = False
    other = nn.Sequential(*model[:-1], nn.Linear(128, 5))
    train(other, new.transpose(0, 3, 1, 2).copy(), wanted, 0.01, count(10), 32)
    return score(predict(other, held.transpose(0, 3, 1, 2).copy()), labels)


def wgan(seed: int) -> float:
    random = np.random.default_rng(seed)
    make = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    judge = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    own, others = (torch.optim.Adam(m.parameters(), lr=0.001, betas=(0.5, 0.9)) for m in (make, judge))
    for _ in range(count(400)):
        for _ in range(5):
            real, share = torch.tensor(data.draw_circle(random, 64)), torch.rand(64, 1)
            fake = make(torch.randn(64, 4)).detach()
            between = (share * real + (1 - share) * fake).requires_grad_()
            (slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
            penalty = ((slope.norm(2, -1) - 1) ** 2).mean()
            others.zero_grad()
            (judge(fake).mean() - judge(real).mean() + 0.1 * penalty).backward()
            others.step()
        own.zero_grad()
        (-judge(make(torch.randn(64, 4))).mean()).backward()
        own.step()
    with torch.no_grad():
        return data.measure_points(make(torch.randn(512, 4)).numpy())
