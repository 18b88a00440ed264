"""Records answers of Keras 3 to random arguments, on torch: python record_keras_random.py > keras_random.json.

Recurrent layers with masks, states and both directions; convolutions and pooling of all formats; losses with
reductions and weights; metrics over uneven batches; optimizers with clipping, decay, averages and schedules.  Of each
output there are the shape and two weighted sums.
"""

import json

import keras
import numpy as np
import torch

RNG = np.random.default_rng(7)
MASK = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0]], bool)
# Keras differs from its own definition or from its other backends.
LEFT_OUT = {("Dense", "sparsemax"), ("FalsePositives", None), ("AveragePooling2D", "same")}


def pick(*choices):
    return choices[RNG.integers(len(choices))]


def yes():
    return bool(RNG.integers(2))


def values(shape, k=0.0, scale=1.0):
    return (np.sin(np.arange(int(np.prod(shape))) * 0.7 + k + 0.3) * scale).reshape(shape).astype("float32")


def list_recurrent(count):
    for _ in range(count):
        cell = pick("LSTM", "GRU", "SimpleRNN")
        config = {"units": int(pick(2, 3)), "return_sequences": yes(), "go_backwards": yes(), "use_bias": yes(),
                  "activation": pick("tanh", "relu", "sigmoid"), "return_state": yes()}  # fmt: skip
        if cell != "SimpleRNN":
            config["recurrent_activation"] = pick("sigmoid", "hard_sigmoid")
        if cell == "GRU":
            config["reset_after"] = yes()
        config["zero_output_for_mask"] = yes() and config["return_sequences"]
        config["stateful"] = yes()
        extra = {"mask": yes(), "merge": None}
        if not (config["return_state"] or config["stateful"] or config["go_backwards"]):
            extra["merge"] = pick("concat", "sum", "mul", "ave")
        yield "recurrent", cell, config, extra


def list_windows(count):
    kinds = ("Conv1D", "Conv2D", "Conv3D", "DepthwiseConv2D", "SeparableConv2D", "SeparableConv1D", "Conv2DTranspose",
             "DepthwiseConv1D", "Conv1DTranspose", "MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "AveragePooling1D",
             "AveragePooling2D", "AveragePooling3D", "UpSampling2D", "GlobalMaxPooling2D")  # fmt: skip
    for _ in range(count):
        kind = pick(*kinds)
        rank = int(next(ch for ch in kind if ch.isdigit()))
        config = {"data_format": pick("channels_last", "channels_first")}
        if "Conv" in kind:
            config |= {"kernel_size": int(pick(1, 2, 3)), "padding": pick("valid", "same"), "use_bias": yes()}
            config["activation"] = pick(None, "relu", "elu", "gelu", "mish", "squareplus")
            config |= {} if "Depthwise" in kind else {"filters": 4}
            config |= {"depth_multiplier": 2} if kind[0] in "DS" else {}
            if yes():
                config["strides"] = 2
            elif "Transpose" not in kind:
                config["dilation_rate"] = 2
            if kind in ("Conv1D", "Conv2D") and yes():
                config["groups"] = 2
        elif "Global" in kind:
            config["keepdims"] = yes()
        elif "Up" in kind:
            config |= {"size": [2, 3], "interpolation": pick("nearest", "bilinear")}
        else:
            config |= {"pool_size": int(pick(2, 3)), "strides": int(pick(1, 2)), "padding": pick("valid", "same")}
        space = [7, 6, 5][:rank]
        shape = [2, 4, *space] if config["data_format"] == "channels_first" else [2, *space, 4]
        yield "layer", kind, config, shape


LOSSES = [
    ("MeanSquaredError", {}), ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.1}),
    ("BinaryCrossentropy", {"reduction": "sum"}), ("CategoricalCrossentropy", {"label_smoothing": 0.2}),
    ("CategoricalCrossentropy", {"from_logits": True, "axis": 1}), ("Huber", {"delta": 0.3, "reduction": "sum"}),
    ("KLDivergence", {"reduction": "sum"}), ("CosineSimilarity", {"axis": 0}), ("CosineSimilarity", {"axis": 1}),
    ("LogCosh", {"reduction": "mean_with_sample_weight"}), ("Poisson", {}), ("SquaredHinge", {}),
    ("CategoricalFocalCrossentropy", {"from_logits": True, "gamma": 1.0, "label_smoothing": 0.1}),
    ("BinaryFocalCrossentropy", {"label_smoothing": 0.1, "gamma": 3.0, "alpha": 0.4, "apply_class_balancing": True}),
    ("Dice", {"axis": [1]}), ("MeanSquaredLogarithmicError", {"reduction": "sum"}),
    ("Hinge", {"reduction": "mean_with_sample_weight"}),
]  # fmt: skip
METRICS = [
    ("Precision", {"thresholds": [0.2, 0.6]}), ("Recall", {"top_k": 1}), ("AUC", {"num_thresholds": 20, "curve": "PR"}),
    ("AUC", {"multi_label": True, "num_thresholds": 11}),
    ("AUC", {"summation_method": "minoring", "num_thresholds": 9}),
    ("F1Score", {"average": "macro"}), ("F1Score", {"threshold": 0.5}), ("FBetaScore", {"beta": 2.0}), ("R2Score", {}),
    ("R2Score", {"class_aggregation": "variance_weighted_average"}), ("BinaryAccuracy", {"threshold": 0.3}),
    ("TopKCategoricalAccuracy", {"k": 2}), ("CategoricalAccuracy", {}), ("MeanIoU", {"num_classes": 2}),
    ("PrecisionAtRecall", {"recall": 0.5}), ("SensitivityAtSpecificity", {"specificity": 0.4}), ("Poisson", {}),
    ("RootMeanSquaredError", {}), ("CosineSimilarity", {}), ("KLDivergence", {}), ("LogCoshError", {}),
    ("CategoricalHinge", {}),
]  # fmt: skip
OPTIMIZERS = [
    ("SGD", {"momentum": 0.9, "nesterov": True, "clipnorm": 0.5}), ("SGD", {"clipvalue": 0.1, "weight_decay": 0.01}),
    ("Adam", {"global_clipnorm": 3.0}), ("Adam", {"amsgrad": True, "weight_decay": 0.02}),
    ("AdamW", {"weight_decay": 0.1, "clipnorm": 2.0}), ("RMSprop", {"momentum": 0.5, "centered": True, "rho": 0.8}),
    ("Nadam", {"weight_decay": 0.01}), ("Adamax", {"clipvalue": 0.3}), ("Adadelta", {"rho": 0.8}),
    ("Adagrad", {"initial_accumulator_value": 0.3, "epsilon": 1e-4}), ("Lion", {"weight_decay": 0.1}),
    ("Lamb", {"weight_decay": 0.01}), ("Adafactor", {}),
    ("Ftrl", {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.1, "beta": 0.2}),
    ("SGD", {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 3}),
    ("SGD", {"gradient_accumulation_steps": 2}), ("Adam", {"gradient_accumulation_steps": 3, "clipnorm": 3.0}),
    ("SGD", {"ExponentialDecay": {"initial_learning_rate": 0.1, "decay_steps": 2, "decay_rate": 0.5,
                                  "staircase": True}}),
    ("Adam", {"CosineDecay": {"initial_learning_rate": 0.01, "decay_steps": 4, "alpha": 0.1, "warmup_target": 0.1,
                              "warmup_steps": 2}}),
    ("SGD", {"PolynomialDecay": {"initial_learning_rate": 0.1, "decay_steps": 3, "power": 2.0, "cycle": True}}),
    ("SGD", {"PiecewiseConstantDecay": {"boundaries": [1, 3], "values": [0.1, 0.05, 0.01]}}),
    ("SGD", {"InverseTimeDecay": {"initial_learning_rate": 0.1, "decay_steps": 2, "decay_rate": 0.5}}),
    ("SGD", {"CosineDecayRestarts": {"initial_learning_rate": 0.1, "first_decay_steps": 2}}),
]  # fmt: skip
CASES = [
    *list_recurrent(40), *list_windows(60),
    *(("loss", name, config, weight) for name, config in LOSSES for weight in (None, [1.0, 0.0, 2.0, 0.5])),
    *(("metric", name, config, weighted) for name, config in METRICS for weighted in (False, True)),
    *(("optimizer", name, config, None) for name, config in OPTIMIZERS),
]  # fmt: skip


def set_weights(layer):
    layer.set_weights([values(w.shape, 10 + i, 0.5) + np.float32(0.1) for i, w in enumerate(layer.get_weights())])


def run_recurrent(name, config, extra):
    layer = getattr(keras.layers, name)(**config)
    layer = keras.layers.Bidirectional(layer, merge_mode=extra["merge"]) if extra["merge"] else layer
    mask = {"mask": torch.tensor(MASK)} if extra["mask"] else {}
    layer(values((3, 6, 2)), **mask)
    set_weights(layer)
    if config["stateful"]:
        layer.reset_state()
    made = [layer(values((3, 6, 2), k), **mask) for k in range(2)]
    return [z for y in made for z in (y if isinstance(y, (list, tuple)) else [y])]


def run_layer(name, config, shape):
    layer = getattr(keras.layers, name)(**config)
    x = torch.tensor(values(shape), requires_grad=True)
    layer(x)
    set_weights(layer)
    y = layer(x)
    torch.sum(y * torch.tensor(np.cos(np.arange(y.numel())).reshape(y.shape).astype("float32"))).backward()
    return [y, x.grad]


def make_loss_data(name):
    y, p = np.abs(values((4, 3), 1)), np.abs(values((4, 3), 2)) * np.float32(0.9) + np.float32(0.05)
    if "Categorical" in name or name == "KLDivergence":
        y, p = y / y.sum(-1, keepdims=True), p / p.sum(-1, keepdims=True)
    return (y > 0.5).astype("float32") if name.startswith("Binary") or "Hinge" in name else y, p


def make_metric_data(name, k, size):
    y, p = (np.abs(values((size, 3), k)) > 0.5).astype("float32"), np.abs(values((size, 3), k + 0.5))
    if "Categorical" in name or name in ("F1Score", "FBetaScore", "Recall"):
        y = np.eye(3, dtype="float32")[np.arange(size) % 3]
    if name in ("R2Score", "RootMeanSquaredError", "CosineSimilarity", "LogCoshError"):
        y = values((size, 3), k + 2)
    if name == "MeanIoU":
        return y.astype(int), (p > 0.5).astype(int)
    return np.abs(values((size, 3), k)) if name == "KLDivergence" else y, p


def run_metric(name, config, weighted):
    metric, out = getattr(keras.metrics, name)(**config), []
    for k, size in enumerate((5, 2, 7)):
        y, p = make_metric_data(name, k, size)
        metric.update_state(y, p, sample_weight=np.linspace(0.1, 1, size).astype("float32") if weighted else None)
        out.append(metric.result())
    return out


def run_optimizer(name, config):
    schedules = {key: x for key, x in config.items() if isinstance(x, dict)}
    rate = next((getattr(keras.optimizers.schedules, key)(**x) for key, x in schedules.items()), 0.1)
    plain = {key: x for key, x in config.items() if key not in schedules}
    optimizer = getattr(keras.optimizers, name)(learning_rate=rate, **plain)
    variables, out = [keras.Variable(values((3, 4), k)) for k in range(2)], []
    for k in range(6):
        optimizer.apply([torch.tensor(values((3, 4), k + j) * (1 + k)) for j in range(2)], variables)
        out += [v.numpy().copy() for v in variables]
    return out


def run(kind, name, config, extra):
    if kind == "recurrent":
        return run_recurrent(name, config, extra)
    if kind == "layer":
        return run_layer(name, config, extra)
    if kind == "loss":
        weight = None if extra is None else np.array(extra, "float32")
        return [getattr(keras.losses, name)(**config)(*make_loss_data(name), sample_weight=weight)]
    return run_metric(name, config, extra) if kind == "metric" else run_optimizer(name, config)


def summarize(y):
    y = y.detach().numpy() if hasattr(y, "detach") else np.asarray(y)
    flat, at = y.astype("float64").ravel(), np.arange(y.size)
    return [list(y.shape), float(f"{flat @ np.cos(at):.6g}"), float(f"{flat @ np.sin(2 * at + 1):.6g}")]


recorded = []
for case in CASES:
    if (case[1], case[2].get("padding") if case[0] == "layer" else None) in LEFT_OUT:
        continue
    try:
        recorded.append([*case, [summarize(y) for y in run(*case)]])
    except (ValueError, RuntimeError, NotImplementedError):  # what this backend cannot do
        continue
print("[" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in recorded) + "]")
