"""Records trainings of Keras 3: KERAS_BACKEND=torch python record_keras_training.py > keras_training.json."""

import json

import keras
import numpy as np

L = keras.layers
TOKENS = np.array([[1, 2, 3, 0, 0], [4, 1, 0, 0, 0], [2, 2, 2, 2, 0]])


def values(shape, k=0.0, scale=1.0):
    n = int(np.prod(shape))
    return (np.sin(np.arange(n) * 0.7 + k + 0.3) * scale).reshape(shape).astype("float32")


def set_weights(model):
    model.set_weights([values(w.shape, 10 + i, 0.5) for i, w in enumerate(model.get_weights())])


def make(kind):
    i = L.Input((5,), dtype="int32")
    h = L.Embedding(5, 3, mask_zero=True)(i)
    gru = {"return_sequences": True, "reset_after": False}
    outputs = {
        "seq": lambda: L.Dense(1)(L.LSTM(4, return_sequences=True)(h)),
        "bi": lambda: L.Dense(1)(L.Bidirectional(L.GRU(3, **gru), merge_mode="sum")(h)),
        "pool": lambda: L.Dense(1)(L.GlobalAveragePooling1D()(h)),
        "mha": lambda: L.Dense(1)(L.MultiHeadAttention(2, 2)(h, h, use_causal_mask=True)),
        "td": lambda: L.TimeDistributed(L.Dense(1))(L.Dropout(0.0)(h)),
        "cat": lambda: L.Dense(1)(L.Concatenate()([h, L.LayerNormalization()(h)])),
    }
    return keras.Model(i, outputs[kind]())


def train(kind):
    model, y = make(kind), values((3, 1)) if kind == "pool" else values((3, 5, 1))
    set_weights(model)
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    before = model.evaluate(TOKENS, y, verbose=0, batch_size=3)
    history = model.fit(TOKENS, y, epochs=3, batch_size=3, shuffle=False, verbose=0).history
    return [before, history["loss"], history["mae"], float(np.sum(model.predict(TOKENS, verbose=0)))]


def normalize():
    layer = L.TimeDistributed(L.BatchNormalization(momentum=0.9))
    y = layer(values((3, 4, 2)), training=True)
    return {"y": y.detach().numpy().ravel().tolist(), "w": [w.ravel().tolist() for w in layer.get_weights()]}


def constrain():
    i = L.Input((3,))
    limits = {"kernel_constraint": keras.constraints.MaxNorm(0.5), "bias_constraint": "non_neg"}
    model = keras.Model(i, L.Dense(2, activity_regularizer=keras.regularizers.L2(0.1), **limits)(i))
    set_weights(model)
    model.compile(keras.optimizers.SGD(0.5), "mse")
    x, y = values((4, 3)), values((4, 2), 3)
    history = model.fit(x, y, epochs=3, shuffle=False, verbose=0, batch_size=4).history
    return {
        "loss": history["loss"],
        "w": [w.ravel().tolist() for w in model.get_weights()],
        "eval": model.evaluate(x, y, verbose=0),
    }


masked = {kind: train(kind) for kind in ("seq", "bi", "pool", "mha", "td", "cat")}
print(json.dumps({"masked": masked, "time_distributed": normalize(), "constrained": constrain()}))
