"""The nine trainings with Keras on torch, as its users write them: for the lines of code, and to see that they run."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"

from typing import Any

import keras
import numpy as np
import torch
import trainings_data as data
from keras import layers, ops
from keras.optimizers import Adam
from trainings_data import count, lose, score

torch.set_num_threads(1)
NORMAL = keras.initializers.RandomNormal(0.0, 1.0)  # torch's for tables
SPARSE = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def iris(seed: int) -> float:
    x, y, held, labels = data.iris(seed)
    model = keras.Sequential([layers.Input([4]), layers.Dense(16, "relu"), layers.Dense(3)])
    model.compile(Adam(0.01), SPARSE)
    model.fit(x, y, batch_size=15, epochs=count(60), verbose=0)
    return score(model.predict(held, verbose=0), labels)


def make_net(classes: int) -> Any:
    return keras.Sequential([
        layers.Input([8, 8, 1]),
        layers.Conv2D(16, 3, padding="same", activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(32, 3, padding="same", activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(classes),
    ])  # fmt: skip


def digits(seed: int) -> float:
    x, y, held, labels = data.digits(seed)
    model = make_net(10)
    model.compile(Adam(0.003), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(10), verbose=0)
    return score(model.predict(held, verbose=0), labels)


def addition(seed: int) -> float:
    x, y, held, labels = data.sums(seed)
    model = keras.Sequential([
        layers.Input([5, 12]), layers.LSTM(64), layers.RepeatVector(3), layers.LSTM(64, return_sequences=True),
        layers.Dense(12),
    ])  # fmt: skip
    model.compile(Adam(0.005), SPARSE)
    model.fit(x, y, batch_size=64, epochs=count(15), verbose=0)
    return score(model.predict(held, verbose=0), labels)


def spelling(seed: int) -> float:
    x, y, held, labels = data.letters(seed)
    size = data.read_text()[1]
    model = keras.Sequential([
        layers.Input([40]), layers.Embedding(size, 24, NORMAL), layers.LSTM(64, return_sequences=True),
        layers.Dense(size),
    ])  # fmt: skip
    model.compile(Adam(0.01), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(4), verbose=0)
    return lose(model.predict(held, verbose=0), labels)


def cart_pole(seed: int) -> float:
    policy = keras.Sequential([layers.Input([4]), layers.Dense(32, "tanh"), layers.Dense(1)])
    policy.compile(Adam(0.02), keras.losses.BinaryCrossentropy(from_logits=True))

    def odds(state: Any) -> Any:
        with torch.no_grad():
            return ops.sigmoid(policy(state))[0, 0]

    def learn(states: Any, pushes: Any, advantages: Any) -> None:
        policy.train_on_batch(states, pushes[:, None], sample_weight=advantages)

    return data.balance(odds, learn, seed)


class Sample(layers.Layer):
    def call(self, m: Any, s: Any) -> Any:
        self.add_loss(-ops.mean(ops.sum(1 + s - m * m - ops.exp(s), -1)) / 2)
        return m + ops.exp(s / 2) * keras.random.normal(ops.shape(m))


def vae(seed: int) -> float:
    x, held = (a.reshape(-1, 64) for a in data.digits(seed)[::2])
    image = layers.Input([64])
    h = layers.Dense(128, "relu")(image)
    code = Sample()(layers.Dense(8)(h), layers.Dense(8)(h))
    model = keras.Model(image, layers.Dense(64)(layers.Dense(128, "relu")(code)))
    model.compile(Adam(0.003), lambda x, logits: ops.sum(ops.softplus(logits) - x * logits, -1))
    model.fit(x, x, batch_size=64, epochs=count(20), verbose=0)
    return float(model.evaluate(held, held, batch_size=len(held), verbose=0))


def gpt(seed: int) -> float:
    x, y, held, labels = data.letters(seed, 32, 1000)
    size = data.read_text()[1]
    token, place = layers.Input([32]), layers.Input([32])
    h = layers.Embedding(size, 32, NORMAL)(token) + layers.Embedding(32, 32, NORMAL)(place)
    for _ in range(2):
        a = layers.LayerNormalization()(h)
        h = h + layers.MultiHeadAttention(4, 8)(a, a, use_causal_mask=True)
        a = layers.Dense(128, "relu")(layers.LayerNormalization()(h))
        h = h + layers.Dense(32)(a)
    model = keras.Model([token, place], layers.Dense(size)(layers.LayerNormalization()(h)))
    places = np.broadcast_to(np.arange(32, dtype="i4"), (len(x), 32))
    model.compile(Adam(0.003), SPARSE)
    model.fit([x, places], y, batch_size=32, epochs=count(6), verbose=0)
    return lose(model.predict([held, places[: len(held)]], verbose=0), labels)


def transfer(seed: int) -> float:
    (x, y), (new, wanted, held, labels) = data.split_digits(seed)
    model = make_net(5)
    model.compile(Adam(0.003), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(5), verbose=0)
    for layer in model.layers[:-1]:
        layer.trainable = False
    other = keras.Sequential([*model.layers[:-1], layers.Dense(5)])
    other.compile(Adam(0.01), SPARSE)
    other.fit(new, wanted, batch_size=32, epochs=count(10), verbose=0)
    return score(other.predict(held, verbose=0), labels)


def dense(inputs: int, units: int, activation: str | None = None) -> Any:
    """Return a dense layer that begins as torch's do."""
    # One for each: an initializer of Keras draws the same numbers again.
    kernel, bias = (keras.initializers.RandomUniform(-(inputs**-0.5), inputs**-0.5) for _ in range(2))
    return layers.Dense(units, activation, kernel_initializer=kernel, bias_initializer=bias)


def descend(optimizer: Any, loss: Any, weights: list[Any]) -> None:
    grads = torch.autograd.grad(loss, [w.value for w in weights])
    with torch.no_grad():
        optimizer.apply(grads, weights)


def wgan(seed: int) -> float:
    random = np.random.default_rng(seed)
    make = keras.Sequential([layers.Input([4]), dense(4, 64, "relu"), dense(64, 64, "relu"), dense(64, 2)])
    judge = keras.Sequential([layers.Input([2]), dense(2, 64, "relu"), dense(64, 64, "relu"), dense(64, 1)])
    own, others = Adam(0.001, 0.5, 0.9), Adam(0.001, 0.5, 0.9)
    for _ in range(count(400)):
        for _ in range(5):
            real, share = torch.tensor(data.draw_circle(random, 64)), torch.rand(64, 1)
            fake = make(torch.randn(64, 4)).detach()
            between = (share * real + (1 - share) * fake).requires_grad_()
            (slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
            penalty = ((slope.norm(2, -1) - 1) ** 2).mean()
            descend(others, judge(fake).mean() - judge(real).mean() + 0.1 * penalty, judge.trainable_weights)
        descend(own, -judge(make(torch.randn(64, 4))).mean(), make.trainable_weights)
    return data.measure_points(make.predict(random.normal(size=(512, 4)), verbose=0))
