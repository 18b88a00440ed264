"""Record what Keras computes for losses, metrics, optimizers, schedules and trainings, as tests/train/keras.json.

Run with a Python that has Keras 3 and torch: ``KERAS_BACKEND=torch python script/record_training.py``.  The tests read
the file and need neither.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras  # type: ignore[import-not-found]
import numpy as np

TARGET = Path(__file__).parent.parent / "tests" / "train" / "keras.json"
RNG = np.random.default_rng(0)


def make_data(kind: str) -> tuple[Any, Any]:
    """Return labels and predictions of a kind, for 7 examples."""
    n = 7
    p = RNG.random((n, 3))
    one_hot = np.eye(3)[RNG.integers(0, 3, n)]
    shares = p / p.sum(-1, keepdims=True)
    if kind == "numbers":
        return RNG.normal(size=(n, 3)), RNG.normal(size=(n, 3))
    if kind == "positive":
        return RNG.random((n, 3)) * 3, p * 3 + 0.1
    if kind == "classes":
        return one_hot, shares
    if kind == "logits":
        return one_hot, RNG.normal(size=(n, 3)) * 2
    if kind == "sparse":
        return RNG.integers(0, 3, n), shares
    if kind == "regions":
        return RNG.integers(0, 3, (n, 4)), RNG.integers(0, 3, (n, 4))
    if kind == "embeddings":
        x = RNG.normal(size=(n, 3))
        return RNG.integers(0, 2, n), x / np.linalg.norm(x, axis=-1, keepdims=True)
    if kind == "column":
        return RNG.integers(0, 2, (n, 1)).astype(float), RNG.random((n, 1))
    return RNG.integers(0, 2, (n, 3)).astype(float), p  # "binary"


LOSSES = [
    ("MeanSquaredError", {}, "numbers"), ("MeanAbsoluteError", {"reduction": "sum"}, "numbers"),
    ("MeanAbsolutePercentageError", {}, "numbers"), ("MeanSquaredLogarithmicError", {}, "positive"),
    ("Huber", {"delta": 0.5}, "numbers"), ("LogCosh", {}, "numbers"), ("Poisson", {}, "positive"),
    ("CosineSimilarity", {}, "numbers"), ("Hinge", {}, "binary"), ("SquaredHinge", {}, "binary"),
    ("CategoricalHinge", {}, "classes"), ("KLDivergence", {}, "classes"),
    ("BinaryCrossentropy", {}, "binary"), ("BinaryCrossentropy", {"from_logits": True}, "logits"),
    ("BinaryCrossentropy", {"label_smoothing": 0.2}, "binary"), ("BinaryFocalCrossentropy", {}, "binary"),
    ("BinaryFocalCrossentropy", {"apply_class_balancing": True, "from_logits": True, "gamma": 1.5}, "logits"),
    ("CategoricalCrossentropy", {}, "classes"),
    ("CategoricalCrossentropy", {"from_logits": True, "label_smoothing": 0.1}, "logits"),
    ("CategoricalFocalCrossentropy", {"alpha": 0.5}, "classes"), ("SparseCategoricalCrossentropy", {}, "sparse"),
    ("SparseCategoricalCrossentropy", {"ignore_class": 1}, "sparse"),
    ("SparseCategoricalCrossentropy", {"reduction": "mean_with_sample_weight"}, "sparse"),
    ("CategoricalGeneralizedCrossEntropy", {"q": 0.7}, "sparse"), ("Circle", {"gamma": 2.0}, "embeddings"),
]  # fmt: skip
WHOLE_LOSSES = [("Dice", {}, "binary"), ("Tversky", {"alpha": 0.3, "beta": 0.7}, "binary")]
METRICS = [
    ("Accuracy", {}, "regions"), ("BinaryAccuracy", {"threshold": 0.4}, "binary"),
    ("CategoricalAccuracy", {}, "classes"),
    ("SparseCategoricalAccuracy", {}, "sparse"), ("TopKCategoricalAccuracy", {"k": 2}, "classes"),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, "sparse"), ("BinaryCrossentropy", {}, "binary"),
    ("CategoricalCrossentropy", {"label_smoothing": 0.1}, "classes"), ("SparseCategoricalCrossentropy", {}, "sparse"),
    ("KLDivergence", {}, "classes"), ("Poisson", {}, "positive"), ("Hinge", {}, "binary"),
    ("SquaredHinge", {}, "binary"), ("CategoricalHinge", {}, "classes"), ("MeanSquaredError", {}, "numbers"),
    ("MeanAbsoluteError", {}, "numbers"), ("MeanAbsolutePercentageError", {}, "numbers"),
    ("MeanSquaredLogarithmicError", {}, "positive"), ("RootMeanSquaredError", {}, "numbers"),
    ("CosineSimilarity", {}, "numbers"), ("LogCoshError", {}, "numbers"), ("R2Score", {}, "numbers"),
    ("R2Score", {"class_aggregation": None}, "numbers"),
    ("R2Score", {"class_aggregation": "variance_weighted_average", "num_regressors": 2}, "numbers"),
    ("PearsonCorrelation", {}, "numbers"), ("ConcordanceCorrelation", {}, "numbers"),
    ("Precision", {}, "binary"), ("Precision", {"thresholds": [0.2, 0.5, 0.8]}, "binary"),
    ("Precision", {"top_k": 2}, "classes"), ("Recall", {"class_id": 1}, "classes"), ("Recall", {}, "column"),
    ("TruePositives", {}, "binary"), ("FalsePositives", {"thresholds": 0.3}, "binary"), ("TrueNegatives", {}, "binary"),
    ("FalseNegatives", {}, "binary"), ("AUC", {}, "column"), ("AUC", {"curve": "PR", "num_thresholds": 50}, "column"),
    ("AUC", {"summation_method": "minoring"}, "binary"),
    ("AUC", {"multi_label": True, "label_weights": [0.5, 0.2, 0.3]}, "binary"),
    ("AUC", {"curve": "PR", "summation_method": "majoring", "thresholds": [0.1, 0.4, 0.5]}, "column"),
    ("AUC", {"from_logits": True}, "logits"),
    ("SensitivityAtSpecificity", {"specificity": 0.6}, "binary"),
    ("SpecificityAtSensitivity", {"sensitivity": 0.6}, "binary"), ("PrecisionAtRecall", {"recall": 0.6}, "binary"),
    ("RecallAtPrecision", {"precision": 0.5}, "binary"), ("F1Score", {"average": "macro"}, "classes"),
    ("F1Score", {"average": "weighted"}, "classes"),
    ("FBetaScore", {"beta": 2.0, "threshold": 0.4, "average": "micro"}, "binary"), ("FBetaScore", {}, "classes"),
    ("MeanIoU", {"num_classes": 3}, "regions"), ("IoU", {"num_classes": 3, "target_class_ids": [0, 2]}, "regions"),
    ("OneHotIoU", {"num_classes": 3, "target_class_ids": [1]}, "classes"), ("BinaryIoU", {}, "binary"),
    ("OneHotMeanIoU", {"num_classes": 3}, "classes"),
]  # fmt: skip
UNWEIGHTED = ("MeanIoU", "IoU", "OneHotIoU", "OneHotMeanIoU", "BinaryIoU", "Accuracy")  # weights there are integers


def record_losses() -> list[dict[str, Any]]:
    found = []
    for name, arguments, kind in [*LOSSES, *WHOLE_LOSSES]:
        y, p = (np.round(a, 4) for a in make_data(kind))
        weight = np.arange(7.0) / 4
        for w in (None,) if (name, arguments, kind) in WHOLE_LOSSES else (None, weight):
            value = getattr(keras.losses, name)(**arguments)(y, p, w)
            found.append(describe(name, arguments, y, p, w, float(value)))
    return found


def record_metrics() -> list[dict[str, Any]]:
    found = []
    for name, arguments, kind in METRICS:
        y, p = (np.round(a, 4) for a in make_data(kind))
        for w in (None,) if name in UNWEIGHTED else (None, np.arange(7.0) / 4):
            metric = getattr(keras.metrics, name)(**arguments)
            for at in (slice(0, 3), slice(3, 7)):
                metric.update_state(y[at], p[at], None if w is None else w[at])
            found.append(describe(name, arguments, y, p, w, np.asarray(metric.result().cpu()).tolist()))
    return found


def describe(name: str, arguments: dict[str, Any], y: Any, p: Any, w: Any, value: Any) -> dict[str, Any]:
    rounded = [None if a is None else np.round(a, 6).tolist() for a in (y, p, w)]
    return {"name": name, "arguments": arguments, "y": rounded[0], "p": rounded[1], "w": rounded[2], "value": value}


# Adam without epsilon: TensorFlow.js and Keras add it in different places
OPTIMIZERS = [
    ("SGD", {"learning_rate": 0.1}), ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}), ("RMSprop", {"learning_rate": 0.05}),
    ("RMSprop", {"learning_rate": 0.05, "rho": 0.8, "momentum": 0.5, "centered": True}), ("Adam", {}),
    ("Adam", {"learning_rate": 0.1, "amsgrad": True, "beta_1": 0.8, "epsilon": 1e-12}),
    ("AdamW", {"weight_decay": 0.1}),
    ("Adadelta", {"learning_rate": 1.0}), ("Adagrad", {"learning_rate": 0.1}), ("Adamax", {"learning_rate": 0.1}),
    ("Nadam", {"learning_rate": 0.1}), ("Ftrl", {"learning_rate": 0.1}),
    ("Ftrl", {"learning_rate": 0.1, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02,
              "l2_shrinkage_regularization_strength": 0.01, "beta": 0.1}),
    ("Lion", {"learning_rate": 0.01}), ("Lamb", {"learning_rate": 0.1}), ("Adafactor", {"learning_rate": 0.1}),
    ("Adafactor", {"learning_rate": 0.1, "relative_step": False}),
    ("Adam", {"learning_rate": 0.1, "clipnorm": 0.5, "epsilon": 1e-12}),
    ("SGD", {"learning_rate": 0.1, "clipvalue": 0.2}),
    ("SGD", {"learning_rate": 0.1, "global_clipnorm": 0.5}),
    ("SGD", {"learning_rate": 0.1, "gradient_accumulation_steps": 2}),
    ("Adam", {"learning_rate": 0.1, "epsilon": 1e-12, "use_ema": True, "ema_momentum": 0.8,
              "ema_overwrite_frequency": 3}),
    ("SGD", {"learning_rate": 0.1, "loss_scale_factor": 8.0}), ("Muon", {"learning_rate": 0.1}),
    ("Muon", {"learning_rate": 0.1, "nesterov": False, "rms_rate": None, "momentum": 0.8, "weight_decay": None}),
]  # fmt: skip


def record_optimizers() -> list[dict[str, Any]]:
    found = []
    for name, arguments in OPTIMIZERS:
        start = [RNG.normal(size=shape).round(4) for shape in ((3, 2), (2,))]
        grads = [[RNG.normal(size=x.shape).round(4) for x in start] for _ in range(6)]
        variables = [keras.Variable(x.astype("float32"), name=f"v{i}") for i, x in enumerate(start)]
        optimizer = getattr(keras.optimizers, name)(**arguments)
        for step in grads:
            optimizer.apply([keras.ops.convert_to_tensor(g.astype("float32")) for g in step], variables)
        value = [np.asarray(v.value.detach()).tolist() for v in variables]
        given = {"start": [x.tolist() for x in start], "grads": [[g.tolist() for g in step] for step in grads]}
        found.append({"name": name, "arguments": arguments, **given, "value": value})
    return found


SCHEDULES = [
    ("CosineDecay", {"initial_learning_rate": 0.5, "decay_steps": 8, "alpha": 0.1}),
    ("CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 6, "warmup_target": 1.0, "warmup_steps": 4}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.5, "first_decay_steps": 3, "t_mul": 2.0, "m_mul": 0.9}),
    ("ExponentialDecay", {"initial_learning_rate": 0.5, "decay_steps": 3, "decay_rate": 0.9}),
    ("ExponentialDecay", {"initial_learning_rate": 0.5, "decay_steps": 3, "decay_rate": 0.9, "staircase": True}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.5, "decay_steps": 3, "decay_rate": 0.9}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.5, "decay_steps": 3, "decay_rate": 0.9, "staircase": True}),
    ("PiecewiseConstantDecay", {"boundaries": [2, 5], "values": [1.0, 0.5, 0.1]}),
    ("PolynomialDecay", {"initial_learning_rate": 0.5, "decay_steps": 7, "end_learning_rate": 0.1, "power": 2.0}),
    ("PolynomialDecay", {"initial_learning_rate": 0.5, "decay_steps": 4, "cycle": True}),
]  # fmt: skip


def record_schedules() -> list[dict[str, Any]]:
    return [
        {"name": name, "arguments": arguments, "value": [float(make(**arguments)(step)) for step in range(12)]}
        for name, arguments in SCHEDULES
        for make in [getattr(keras.optimizers.schedules, name)]
    ]


FITS: list[dict[str, Any]] = [
    {"compile": {"loss": ["mse", "categorical_crossentropy"], "metrics": [["mae"], ["accuracy"]]}, "fit": {}},
    {
        "compile": {
            "loss": {"out_a": "mse", "out_b": "categorical_crossentropy"},
            "loss_weights": {"out_a": 0.5, "out_b": 2.0},
            "metrics": {"out_b": ["acc", "AUC"]},
            "weighted_metrics": {"out_a": ["mae"]},
        },
        "fit": {"sample_weight": "each", "validation_freq": 2, "epochs": 4, "initial_epoch": 1},
    },
    {"compile": {"loss": ["mae", "mse"]}, "fit": {"steps_per_epoch": 2, "validation_steps": 1}},
]


def record_fits() -> list[dict[str, Any]]:
    found = []
    for case in FITS:
        x = RNG.normal(size=(10, 3)).round(4)
        ya, yb = RNG.normal(size=(10, 1)).round(4), np.eye(2)[RNG.integers(0, 2, 10)]
        weights = [RNG.normal(size=shape).round(4) for shape in ((3, 1), (1,), (3, 2), (2,))]
        given = keras.Input((3,))
        a, b = keras.layers.Dense(1, name="out_a"), keras.layers.Dense(2, activation="softmax", name="out_b")
        model = keras.Model(given, [a(given), b(given)])
        model.set_weights(weights)
        model.compile("sgd", **case["compile"])
        how = dict(case["fit"])
        weight = (np.arange(10.0) / 4).round(4)
        if how.get("sample_weight"):
            how["sample_weight"] = [weight, weight[::-1].copy()]
        how = {"epochs": 2, **how}
        history = model.fit(
            x, [ya, yb], batch_size=4, shuffle=False, verbose=0, validation_data=(x[:5], [ya[:5], yb[:5]]), **how
        )
        history = {key: [np.asarray(v).tolist() for v in values] for key, values in history.history.items()}
        arrays = {"x": x.tolist(), "ya": ya.tolist(), "yb": yb.tolist(), "weights": [w.tolist() for w in weights]}
        found.append({**case, **arrays, "history": history})
    return found


if __name__ == "__main__":
    recorded = {
        "losses": record_losses(),
        "metrics": record_metrics(),
        "optimizers": record_optimizers(),
        "schedules": record_schedules(),
        "fits": record_fits(),
    }
    TARGET.write_text(json.dumps(recorded, separators=(",", ":")))
    print({key: len(cases) for key, cases in recorded.items()}, TARGET.stat().st_size, "bytes")
