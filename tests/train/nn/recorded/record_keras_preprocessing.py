"""Records answers of Keras's preprocessing layers: KERAS_BACKEND=tensorflow python record_keras_preprocessing.py > keras_preprocessing.json.

Only TensorFlow has texts.  An array is written as its values, or as ["sin", shape, phase, scale, shift], which the
test computes too; random layers get a range of one number.
"""  # noqa: E501

import json

import keras
import numpy as np

TEXTS = ["The cat sat.", "The dog! ran, away", "a cat's DOG"]
UNSEEN_TEXTS = ["the dog ran", "unknown words here cat", "", "a sentence of more than sixteen bytes"]
WORDS = [["A"], ["B"], [""], ["a word of more than sixteen bytes"]]
PAIRS, ASKED = [["b", "a"], ["b", ""], ["b", "c"]], [["a", "x", ""], ["b", "b", "c"]]
NUMBERS, NEW = [[5, 9, 5], [7, 5, 9]], [[5, 7], [1, 9]]
SOUND = ["sin", [2, 300], 0.5, 1.0, 0.0]
TABLE, IMAGES = ["sin", [6, 3], 0.0, 2.0, 0.0], ["sin", [2, 5, 6, 3], 1.0, 100.0, 120.0]
BINS, CLASSES = [[-1.5, 1.0, 3.4, 0.5], [0, 3, 1.3, 0]], [[0, 1], [0, 0], [1, 2], [3, 1]]
FIRST = {"data_format": "channels_first"}
CASES = [  # layer, arguments, data to adapt to or "train", input
    ("IntegerLookup", {}, NUMBERS, NEW), ("IntegerLookup", {"mask_token": 0}, [[5, 9, 0], [7, 5, 9]], [[5, 0], [1, 9]]),
    ("IntegerLookup", {"output_mode": "tf_idf"}, NUMBERS, NEW),
    ("IntegerLookup", {"output_mode": "count", "max_tokens": 3}, NUMBERS, NEW),
    ("IntegerLookup", {"num_oov_indices": 3, "vocabulary": [12, 36]}, None, [[12, 37, 1], [1000, 38, 36]]),
    ("IntegerLookup", {"vocabulary": [12, 36], "invert": True}, None, [[1, 2], [0, 2]]),
    ("IntegerLookup", {"vocabulary": [12, 36], "output_mode": "one_hot"}, None, [[12], [36], [3]]),
    ("IntegerLookup", {"vocabulary": [12], "output_mode": "multi_hot", "mask_token": 0}, None, [[12, 0], [12, 3]]),
    ("StringLookup", {}, PAIRS, ASKED), ("StringLookup", {"mask_token": ""}, PAIRS, ASKED),
    ("StringLookup", {"mask_token": "", "output_mode": "count"}, PAIRS, ASKED),
    ("StringLookup", {"num_oov_indices": 0, "vocabulary": ["a", "b"]}, None, [["a", "b"]]),
    ("StringLookup", {"vocabulary": ["a", "b"], "invert": True, "mask_token": ""}, None, [[0, 1, 2, 3]]),
    ("StringLookup", {"vocabulary": ["a", "b"], "idf_weights": [0.5, 2.0], "output_mode": "tf_idf"}, None, ASKED),
    ("StringLookup", {"max_tokens": 6, "pad_to_max_tokens": True, "output_mode": "multi_hot"}, PAIRS, ASKED),
    ("StringLookup", {"output_mode": "one_hot"}, PAIRS, [["a"], ["q"]]),
    ("StringLookup", {"num_oov_indices": 3, "vocabulary": ["a"]}, None, [["a", "foo", "bar", "baz"]]),
    *(("TextVectorization", config, TEXTS, UNSEEN_TEXTS) for config in (
        {}, {"output_sequence_length": 3}, {"output_mode": "multi_hot"}, {"output_mode": "count"},
        {"output_mode": "tf_idf"}, {"ngrams": 2}, {"ngrams": 3, "output_mode": "count"}, {"split": "character"},
        {"standardize": "lower"}, {"standardize": None}, {"standardize": "strip_punctuation"}, {"max_tokens": 4},
        {"max_tokens": 4, "output_mode": "count"}, {"split": None},
        {"max_tokens": 20, "output_mode": "tf_idf", "pad_to_max_tokens": True},
    )),
    ("TextVectorization", {"vocabulary": ["the", "cat"], "output_sequence_length": 5}, None, UNSEEN_TEXTS),
    ("Hashing", {"num_bins": 5}, None, WORDS), ("Hashing", {"num_bins": 3, "mask_value": ""}, None, WORDS),
    ("Hashing", {"num_bins": 5, "salt": [133, 137]}, None, WORDS),
    ("Hashing", {"num_bins": 5, "salt": 133}, None, WORDS),
    ("Hashing", {"num_bins": 7}, None, [[1], [2], [30], [-4]]),
    ("Hashing", {"num_bins": 3, "output_mode": "one_hot"}, None, WORDS),
    ("Discretization", {"num_bins": 4, "epsilon": 0.01}, ["sin", [200], 0.0, 1.0, 0.0], BINS),
    ("Discretization", {"num_bins": 10}, ["sin", [57], 0.0, 1.0, 0.0], BINS),
    *(("Discretization", {"bin_boundaries": [0.0, 1.0, 2.0], "output_mode": mode}, None, BINS)
      for mode in ("int", "one_hot", "multi_hot", "count")),
    ("Normalization", {}, TABLE, TABLE), ("Normalization", {"axis": None}, TABLE, TABLE),
    ("Normalization", {"axis": [1]}, ["sin", [4, 3, 2], 0.0, 1.0, 0.0], ["sin", [4, 3, 2], 1.0, 1.0, 0.0]),
    ("Normalization", {"mean": [1.0, 2.0, 3.0], "variance": [1.0, 4.0, 0.5]}, None, TABLE),
    ("Normalization", {"mean": 2.0, "variance": 4.0, "invert": True}, None, TABLE),
    ("Normalization", {"invert": True}, TABLE, TABLE),
    ("Rescaling", {"scale": 0.0078125, "offset": -1.0}, None, IMAGES),
    ("Rescaling", {"scale": [1.0, 2.0, 3.0], "offset": [0.0, 1.0, 2.0]}, None, IMAGES),
    *(("CategoryEncoding", {"num_tokens": 4, "output_mode": mode}, None, x)
      for mode in ("one_hot", "multi_hot", "count") for x in ([[3], [2], [0]], [3, 2, 0, 0], CLASSES)),
    *(("Resizing", config, None, IMAGES) for config in (
        {"height": 4, "width": 9}, {"height": 3, "width": 3, "interpolation": "nearest"},
        {"height": 4, "width": 4, "crop_to_aspect_ratio": True},
        {"height": 4, "width": 8, "crop_to_aspect_ratio": True},
        {"height": 4, "width": 4, "pad_to_aspect_ratio": True},
        {"height": 8, "width": 4, "pad_to_aspect_ratio": True, "fill_value": 7.0},
        {"height": 4, "width": 3, **FIRST},
    )),
    *(("CenterCrop", {"height": h, "width": w}, None, IMAGES) for h, w in ((3, 3), (7, 7), (2, 9))),
    *((layer, config, "train", IMAGES) for layer, config in (
        ("RandomRotation", {"factor": [0.1, 0.1]}),
        ("RandomRotation", {"factor": [0.1, 0.1], "fill_mode": "constant", "fill_value": 5.0}),
        ("RandomRotation", {"factor": [-0.2, -0.2], "fill_mode": "nearest", "interpolation": "nearest"}),
        ("RandomRotation", {"factor": [-0.2, -0.2], "fill_mode": "wrap"}),
        ("RandomZoom", {"height_factor": [0.3, 0.3]}),
        ("RandomZoom", {"height_factor": [-0.3, -0.3], "width_factor": [0.2, 0.2], "fill_mode": "constant"}),
        ("RandomTranslation", {"height_factor": [0.3, 0.3], "width_factor": [-0.2, -0.2]}),
        ("RandomTranslation", {"height_factor": [0.3, 0.3], "width_factor": [-0.2, -0.2], "fill_mode": "wrap"}),
        ("RandomBrightness", {"factor": [0.2, 0.2]}), ("RandomContrast", {"factor": 0.0}), ("AutoContrast", {}),
        ("AutoContrast", {"value_range": [0, 300]}), ("RandomGrayscale", {"factor": 1.0}),
        ("RandomColorDegeneration", {"factor": [0.3, 0.3]}), ("RandomInvert", {"factor": [1.0, 1.0]}),
        ("RandomPosterization", {"factor": [3, 3]}), ("RandomSharpness", {"factor": [0.1, 0.1]}),
        ("RandomSharpness", {"factor": [0.9, 0.9]}), ("Solarization", {}), ("RandomSaturation", {"factor": [0.3, 0.3]}),
        ("RandomHue", {"factor": [1.0, 1.0]}),
    )),
    *(("MelSpectrogram", config, None, SOUND) for config in (
        {"fft_length": 64, "sequence_stride": 30, "num_mel_bins": 10},
        {"fft_length": 64, "sequence_stride": 16, "num_mel_bins": 8, "sequence_length": 40, "window": "hamming",
         "sampling_rate": 8000, "min_freq": 100.0, "max_freq": 3000.0, "mag_exp": 1.0, "power_to_db": False},
    )),
]  # fmt: skip


def make_array(given):
    if isinstance(given, list) and given[0] == "sin":
        _, shape, phase, scale, shift = given
        return (np.sin(np.arange(np.prod(shape)) * 0.7 + phase).reshape(shape) * scale + shift).astype("float32")
    return np.array(given)


def record(layer, config, data, given):
    made = getattr(keras.layers, layer)(**config)
    if data is not None and data != "train":
        made.adapt(make_array(data))
    y = made(make_array(given), **({"training": True} if data == "train" else {})).numpy()
    is_text = y.dtype.kind == "O"
    values = [x.decode() for x in y.ravel()] if is_text else [float(f"{x:.6g}") for x in y.ravel()]
    case = {"layer": layer, "config": config, "data": data, "given": given, "shape": list(y.shape), "values": values}
    if hasattr(made, "get_vocabulary"):
        case["vocabulary"] = [x if isinstance(x, str) else int(x) for x in made.get_vocabulary()]
    return case


print("[" + ",\n".join(json.dumps(record(*case), separators=(",", ":")) for case in CASES) + "]")
