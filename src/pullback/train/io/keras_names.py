"""Names of classes and arguments in files of Keras and TensorFlow.js: spellings, and arguments without effect."""

from __future__ import annotations

import re
from typing import Any

from pullback.train.custom_objects import find_custom
from pullback.train.io.structure import Configurable

# Words of class names that Keras spells in capitals.
CAPITALS = {
    "Lstm": "LSTM", "Gru": "GRU", "Rnn": "RNN", "Relu": "ReLU", "Elu": "ELU", "Prelu": "PReLU", "Rms": "RMS",
}  # fmt: skip
# Names that files have for what is a class of another name here.
OTHER_NAMES = {
    "model": "Functional", "functional": "Functional", "maxpool1d": "MaxPooling1d", "maxpool2d": "MaxPooling2d",
    "avgpool1d": "AveragePooling1d", "avgpool2d": "AveragePooling2d", "batchnormalizationv1": "BatchNormalization",
    "batchnormalizationv2": "BatchNormalization", "groupedqueryattention": "GroupQueryAttention",
}  # fmt: skip
PATHS = {"GroupQueryAttention": "GroupedQueryAttention"}  # classes that are called otherwise in the paths of weights
SCALINGS: dict[str, dict[str, Any]] = {  # initializers that are variance scaling with given arguments
    f"{name}{distribution}": {"scale": scale, "mode": mode, "distribution": distribution}
    for name, scale, mode in (("glorot", 1.0, "fan_avg"), ("he", 2.0, "fan_in"), ("lecun", 1.0, "fan_in"))
    for distribution in ("uniform", "normal")
}
EVERY = object()  # whatever the value is
# Arguments that not every layer here has, with the values that change nothing.
WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "activity_regularizer": (), "attention_axes": ([1], 1), "autocast": (True,), "axes": (), "batch_size": (),
    "build_input_shape": (EVERY,), "data_format": ("channels_last", "channelsLast"), "dropout": (0,),
    "dilation_rate": (1, [1], [1, 1], [1, 1, 1]), "renorm_clipping": (EVERY,), "renorm_momentum": (EVERY,),
    "fill_mode": ("constant",), "fill_value": (0,),
    "groups": (1,), "implementation": (EVERY,), "input_length": (EVERY,), "interpolation": ("nearest",),
    "max_value": (), "recurrent_dropout": (0,), "rms_scaling": (False,), "score_mode": ("dot",), "threshold": (0,),
    "unroll": (EVERY,), "use_cudnn": (EVERY,), "mode": (EVERY,),
    "quantization_config": (), "query_shape": (EVERY,), "key_shape": (EVERY,), "value_shape": (EVERY,),
    "fused": (EVERY,), "num_constants": (),
}  # fmt: skip


def normalize_name(name: str) -> str:
    """Return a name in lower case without underscores, in which all spellings of a class are the same.

    >>> normalize_name("Conv2D") == normalize_name("conv2d") == normalize_name("Conv2d")
    True
    """
    return name.replace("_", "").lower()


def find_class(name: str, base: str = "") -> type[Configurable] | None:
    """Return the class of this name in a file, the user's too, whatever its spelling; None if there is none.

    ``base`` is the name of a class from which it derives: a layer and an initializer may have the same name.

    >>> find_class("GRU").__name__, find_class("Custom>gru").__name__, find_class("Unknown")
    ('Gru', 'Gru', None)
    """
    registry, bare_name = Configurable.registry, name.rpartition(">")[2]
    own = find_custom(name)
    if isinstance(own, type) and issubclass(own, registry[base] if base else Configurable):
        return own
    if base:
        # the library's own last, which counts
        ordered = sorted(registry.items(), key=lambda entry: "." not in entry[0])
        own = [(known.rpartition(".")[2], kind) for known, kind in ordered]
        registry = {known: kind for known, kind in own if issubclass(kind, registry[base])}
    wanted = normalize_name(bare_name)
    if wanted in OTHER_NAMES and OTHER_NAMES[wanted] in registry:
        return registry[OTHER_NAMES[wanted]]
    if bare_name in registry:
        return registry[bare_name]
    return next((kind for known, kind in registry.items() if normalize_name(known) == wanted), None)


def spell_class(name: str) -> str:
    """Return the name of a class in Keras's spelling.

    >>> [spell_class(name) for name in ("Conv2d", "Lstm", "ConvLstm2d", "SimpleRnn", "LeakyRelu", "Dense")]
    ['Conv2D', 'LSTM', 'ConvLSTM2D', 'SimpleRNN', 'LeakyReLU', 'Dense']
    """
    words = re.findall(r"[A-Z]+[^A-Z]*", name)
    if "".join(words) != name:
        return name
    return "".join(re.sub(r"(\d)d$", r"\1D", _spell_word(word)) for word in words)


def _spell_word(word: str) -> str:
    letters = re.match(r"[A-Za-z]*?(?=\d|$)", word)
    stem = letters.group() if letters else word
    return CAPITALS.get(stem, stem) + word[len(stem) :]


def spell_group(name: str) -> str:
    """Return the name of a class as Keras 3 writes it into the paths of weights.

    >>> [spell_group(name) for name in ("Conv2D", "LSTM", "BatchNormalization", "PReLU")]
    ['conv2d', 'lstm', 'batch_normalization', 'p_re_lu']
    """
    name = re.sub(r"\W+", "", PATHS.get(name, name))
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def is_without_effect(name: str, value: object) -> bool:
    """Return whether an argument that is unknown here has a value with which it changes nothing.

    >>> is_without_effect("groups", 1), is_without_effect("groups", 2), is_without_effect("ragged", False)
    (True, False, True)
    """
    if value is None or value is False or name.endswith("_initializer"):  # of a weight that the layer has not
        return True
    values = WITHOUT_EFFECT.get(name, ())
    return EVERY in values or any(one == value and isinstance(one, bool) == isinstance(value, bool) for one in values)
