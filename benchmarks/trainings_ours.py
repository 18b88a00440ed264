"""The nine trainings with pullback."""

from __future__ import annotations

from typing import Any

import numpy as np
import trainings_data as data
from trainings_data import count, lose, score

import pullback as pb

layers = pb.layers
NORMAL = pb.initializers.random_normal(0.0, 1.0)  # torch's for tables
SPARSE = "sparse_softmax_cross_entropy"


def iris(seed: int) -> float:
    x, y, held, labels = data.iris(seed)
    model = pb.sequential([layers.dense(16, activation="relu", input_shape=[4]), layers.dense(3)])
    model.compile(pb.train.adam(0.01), SPARSE)
    model.fit(x, y, batch_size=15, epochs=count(60), verbose=0)
    return score(model.predict(held), labels)


def make_net(classes: int) -> Any:
    return pb.sequential([
        layers.conv2d(16, 3, padding="same", activation="relu", input_shape=[8, 8, 1]), layers.max_pooling2d(2),
        layers.conv2d(32, 3, padding="same", activation="relu"), layers.max_pooling2d(2),
        layers.flatten(), layers.dense(classes),
    ])  # fmt: skip


def digits(seed: int) -> float:
    x, y, held, labels = data.digits(seed)
    model = make_net(10)
    model.compile(pb.train.adam(0.003), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(10), verbose=0)
    return score(model.predict(held), labels)


def addition(seed: int) -> float:
    x, y, held, labels = data.sums(seed)
    model = pb.sequential([
        layers.lstm(64, input_shape=[5, 12]), layers.repeat_vector(3), layers.lstm(64, return_sequences=True),
        layers.dense(12),
    ])  # fmt: skip
    model.compile(pb.train.adam(0.005), SPARSE)
    model.fit(x, y, batch_size=64, epochs=count(15), verbose=0)
    return score(model.predict(held), labels)


def spelling(seed: int) -> float:
    x, y, held, labels = data.letters(seed)
    size = data.read_text()[1]
    model = pb.sequential([
        layers.embedding(size, 24, NORMAL, input_shape=[40]), layers.lstm(64, return_sequences=True), layers.dense(size)
    ])  # fmt: skip
    model.compile(pb.train.adam(0.01), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(4), verbose=0)
    return lose(model.predict(held), labels)


def cart_pole(seed: int) -> float:
    policy = pb.sequential([layers.dense(32, activation="tanh", input_shape=[4]), layers.dense(1)])
    policy.compile(pb.train.adam(0.02), "sigmoid_cross_entropy")

    @pb.compile
    def odds(state: Any) -> Any:
        return pb.sigmoid(policy(state))[0, 0]

    def learn(*batch: Any) -> None:
        spare = 1600 - len(batch[0])  # one size, so that one program is compiled; the padding has weight 0
        states, pushes, advantages = (np.pad(a, [(0, spare)] + [(0, 0)] * (a.ndim - 1)) for a in batch)
        policy.train_on_batch(states, pushes[:, None], sample_weight=advantages)

    return data.balance(odds, learn, seed)


class Sample(layers.Layer):
    def call(self, inputs: Any) -> Any:
        m, s = inputs
        self.add_loss(-np.mean(np.sum(1 + s - m * m - np.exp(s), -1)) / 2)
        return m + np.exp(s / 2) * pb.random_normal(m.shape)


def vae(seed: int) -> float:
    x, held = (a.reshape(-1, 64) for a in data.digits(seed)[::2])
    image = pb.input([64])
    h = layers.dense(128, activation="relu")(image)
    code = Sample()([layers.dense(8)(h), layers.dense(8)(h)])
    model = pb.model(image, layers.dense(64)(layers.dense(128, activation="relu")(code)))
    model.compile(pb.train.adam(0.003), lambda x, logits: np.sum(pb.softplus(logits) - x * logits, -1))
    model.fit(x, x, batch_size=64, epochs=count(20), verbose=0)
    return float(model.evaluate(held, held, batch_size=len(held), verbose=0))


def gpt(seed: int) -> float:
    x, y, held, labels = data.letters(seed, 32, 1000)
    size = data.read_text()[1]
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


def transfer(seed: int) -> float:
    (x, y), (new, wanted, held, labels) = data.split_digits(seed)
    model = make_net(5)
    model.compile(pb.train.adam(0.003), SPARSE)
    model.fit(x, y, batch_size=32, epochs=count(5), verbose=0)
    for layer in model.layers[:-1]:
        layer.trainable = False
    other = pb.sequential([*model.layers[:-1], layers.dense(5)])
    other.compile(pb.train.adam(0.01), SPARSE)
    other.fit(new, wanted, batch_size=32, epochs=count(10), verbose=0)
    return score(other.predict(held), labels)


def dense(inputs: int, units: int, activation: str | None = None) -> Any:
    """Return a dense layer that begins as torch's do, with biases that are not zero."""
    narrow = pb.initializers.random_uniform(-(inputs**-0.5), inputs**-0.5)
    return layers.dense(
        units, activation, kernel_initializer=narrow, bias_initializer=narrow, input_shape=[inputs]
    )  # fmt: skip


def wgan(seed: int) -> float:
    random = np.random.default_rng(seed)
    make = pb.sequential([dense(4, 64, "relu"), dense(64, 64, "relu"), dense(64, 2)])
    judge = pb.sequential([dense(2, 64, "relu"), dense(64, 64, "relu"), dense(64, 1)])
    own, others = pb.train.adam(0.001, 0.5, 0.9), pb.train.adam(0.001, 0.5, 0.9)

    @pb.compile
    def teach(real: Any, noise: Any, share: Any) -> Any:
        fake = make(noise)
        between = share * real + (1 - share) * fake

        def loss() -> Any:
            slope = pb.grad(lambda x: np.sum(judge(x)))(between)
            far = np.sqrt(np.sum(slope * slope, -1) + 1e-12) - 1
            return np.mean(judge(fake)) - np.mean(judge(real)) + 0.1 * np.mean(far * far)

        return others.minimize(loss, judge.trainable_weights)

    @pb.compile
    def learn(noise: Any) -> Any:
        return own.minimize(lambda: -np.mean(judge(make(noise))), make.trainable_weights)

    draw = lambda: random.normal(size=(64, 4)).astype("f4")
    for _ in range(count(400)):
        for _ in range(5):
            teach(data.draw_circle(random, 64), draw(), random.random((64, 1)).astype("f4"))
        learn(draw())
    return data.measure_points(np.asarray(make(random.normal(size=(512, 4)).astype("f4"))))
