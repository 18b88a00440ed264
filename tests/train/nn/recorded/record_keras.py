"""Records answers of Keras 3 layers: KERAS_BACKEND=torch python record_keras.py > keras.json.

Inputs and weights are formulas of their shapes, which the test computes too; answers have 6 digits.
"""

import json

import keras
import numpy as np
import torch


def values(shape, k=0.0, scale=1.0):
    n = int(np.prod(shape))
    return (np.sin(np.arange(n) * 0.7 + k + 0.3) * scale).reshape(shape).astype("float32")


SEQ, IMG, VOL = (2, 5, 3), (2, 5, 6, 4), (1, 4, 4, 3, 2)
FIRST = {"data_format": "channels_first"}
MASK = [[1, 1, 0, 1, 0], [0, 1, 1, 0, 1]]
R = {"return_sequences": True}
CASES = [
    ("Dense", {"units": 3, "activation": "tanh"}, [SEQ]),
    ("EinsumDense", {"equation": "abc,cd->abd", "output_shape": [None, 4], "bias_axes": "d"}, [SEQ]),
    ("EinsumDense", {"equation": "...x,xyz->...yz", "output_shape": [2, 3], "bias_axes": "yz"}, [SEQ]),
    ("EinsumDense", {"equation": "abc,de->abde", "output_shape": [None, 2, 3]}, [SEQ]) if 0 else None,
    ("Conv1D", {"filters": 2, "kernel_size": 3, "padding": "causal", "dilation_rate": 2}, [SEQ]),
    ("Conv1D", {"filters": 2, "kernel_size": 2, "strides": 2, "padding": "same"}, [SEQ]),
    ("Conv2D", {"filters": 4, "kernel_size": [2, 3], "groups": 2, "activation": "relu"}, [IMG]),
    ("Conv2D", {"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same", **FIRST}, [(2, 3, 5, 6)]),
    ("Conv3D", {"filters": 2, "kernel_size": 2, "strides": [1, 2, 1]}, [VOL]),
    ("Conv3D", {"filters": 2, "kernel_size": 2, "padding": "same", **FIRST}, [(1, 2, 3, 4, 3)]),
    ("Conv1DTranspose", {"filters": 2, "kernel_size": 3, "strides": 2}, [SEQ]),
    ("Conv1DTranspose", {"filters": 2, "kernel_size": 3, "strides": 2, "output_padding": 1}, [SEQ]),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 3, "strides": 2, "padding": "valid"}, [(1, 3, 4, 2)]),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": [3, 5], **FIRST}, [(1, 2, 3, 4)]),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 2, "strides": 3}, [(1, 3, 4, 2)]),
    ("Conv3DTranspose", {"filters": 2, "kernel_size": 2, "strides": 2}, [(1, 2, 2, 3, 2)]),
    ("DepthwiseConv1D", {"kernel_size": 3, "depth_multiplier": 2}, [SEQ]),
    ("DepthwiseConv2D", {"kernel_size": 3, "strides": 2, "padding": "same"}, [IMG]),
    ("DepthwiseConv2D", {"kernel_size": 2, "dilation_rate": 2, **FIRST}, [(2, 3, 5, 6)]),
    ("SeparableConv1D", {"filters": 3, "kernel_size": 3, "depth_multiplier": 2}, [SEQ]),
    ("SeparableConv2D", {"filters": 3, "kernel_size": 3, "padding": "same"}, [IMG]),
    ("MaxPooling1D", {"pool_size": 2, "strides": 1, "padding": "same"}, [SEQ]),
    ("MaxPooling2D", {"pool_size": [2, 3], **FIRST}, [(2, 3, 5, 6)]),
    ("MaxPooling3D", {"pool_size": 2}, [VOL]),
    ("AveragePooling1D", {"pool_size": 2}, [SEQ]),
    ("AveragePooling2D", {"pool_size": 2, "strides": 1, "padding": "same"}, [IMG]),
    ("AveragePooling3D", {"pool_size": 2, **FIRST}, [(1, 2, 3, 4, 4)]),
    ("GlobalMaxPooling1D", {"keepdims": True}, [SEQ]),
    ("GlobalMaxPooling2D", FIRST, [(2, 3, 5, 6)]),
    ("GlobalMaxPooling3D", {}, [VOL]),
    ("GlobalAveragePooling1D", {}, [SEQ]),
    ("GlobalAveragePooling1D", {}, [SEQ], {"mask": MASK}),
    ("GlobalAveragePooling1D", {"keepdims": True, **FIRST}, [(2, 3, 5)], {"mask": MASK}),
    ("GlobalAveragePooling2D", {"keepdims": True}, [IMG]),
    ("GlobalAveragePooling3D", {}, [VOL]),
    ("AdaptiveAveragePooling1D", {"output_size": 3}, [SEQ]),
    ("AdaptiveAveragePooling2D", {"output_size": [2, 4]}, [IMG]),
    ("AdaptiveAveragePooling3D", {"output_size": 2}, [VOL]),
    ("AdaptiveMaxPooling1D", {"output_size": 2}, [SEQ]),
    ("AdaptiveMaxPooling2D", {"output_size": 3, **FIRST}, [(2, 3, 5, 6)]),
    ("AdaptiveMaxPooling3D", {"output_size": [1, 2, 3]}, [VOL]),
    ("UpSampling1D", {"size": 2}, [SEQ]),
    ("UpSampling2D", {"size": [2, 3]}, [IMG]),
    ("UpSampling2D", {"size": 2, "interpolation": "bilinear"}, [(1, 3, 4, 2)]),
    ("UpSampling3D", {"size": [1, 2, 2]}, [VOL]),
    ("ZeroPadding1D", {"padding": [1, 2]}, [SEQ]),
    ("ZeroPadding2D", {"padding": [[1, 0], [2, 1]], **FIRST}, [(1, 2, 3, 3)]),
    ("ZeroPadding3D", {"padding": 1}, [(1, 2, 2, 2, 1)]),
    ("Cropping1D", {"cropping": [1, 2]}, [SEQ]),
    ("Cropping2D", {"cropping": [[1, 0], [2, 1]]}, [IMG]),
    ("Cropping3D", {"cropping": [1, 0, 1]}, [VOL]),
    ("BatchNormalization", {}, [IMG]),
    ("BatchNormalization", {"axis": 1}, [IMG], {"training": True}),
    ("BatchNormalization", {}, [SEQ], {"training": True, "mask": MASK}),
    ("LayerNormalization", {"axis": [1, 2]}, [SEQ]),
    ("GroupNormalization", {"groups": 2}, [IMG]),
    ("GroupNormalization", {"groups": -1, "axis": 1}, [IMG]),
    ("RMSNormalization", {}, [SEQ]),
    ("UnitNormalization", {"axis": [1, 2]}, [SEQ]),
    ("SimpleRNN", {"units": 3, **R}, [SEQ], {"mask": MASK}),
    ("SimpleRNN", {"units": 3, "go_backwards": True, "return_state": True}, [SEQ]),
    ("LSTM", {"units": 2, "return_state": True}, [SEQ], {"mask": MASK}),
    ("LSTM", {"units": 2, "go_backwards": True, **R}, [SEQ], {"mask": MASK}),
    ("GRU", {"units": 2, "reset_after": True}, [SEQ], {"mask": MASK}),
    ("GRU", {"units": 2, "reset_after": False, **R}, [SEQ], {"mask": MASK}),
    ("ConvLSTM1D", {"filters": 2, "kernel_size": 2, **R}, [(1, 3, 4, 2)]),
    ("ConvLSTM2D", {"filters": 2, "kernel_size": 2, "padding": "same"}, [(1, 3, 3, 4, 2)]),
    ("ConvLSTM2D", {"filters": 2, "kernel_size": 2, "strides": 2, **FIRST, **R}, [(1, 3, 2, 4, 4)]),
    ("ConvLSTM3D", {"filters": 1, "kernel_size": 2}, [(1, 2, 3, 2, 3, 1)]),
    ("Attention", {"use_scale": True}, [SEQ, (2, 4, 3)], {"use_causal_mask": True}),
    ("Attention", {"score_mode": "concat"}, [SEQ, SEQ], {"mask": [MASK, MASK]}),
    ("AdditiveAttention", {}, [SEQ, SEQ], {"mask": [None, MASK]}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 2}, [SEQ, SEQ], {"use_causal_mask": True}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 2, "value_dim": 3, "output_shape": 4}, [SEQ, (2, 4, 2)]),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 2, "use_gate": True}, [SEQ, SEQ], {"value_mask": MASK}),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 2, "sliding_window": 2}, [SEQ, SEQ]),
    (
        "MultiHeadAttention",
        {"num_heads": 2, "key_dim": 2},
        [SEQ, SEQ],
        {"return_attention_scores": True, "attention_mask": [[[1, 0, 1, 1, 0]] * 5] * 2},
    ),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 2, "attention_axes": [2]}, [IMG, IMG]),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 2, "attention_axes": [1, 2]}, [(1, 2, 3, 2), (1, 2, 2, 2)]),
    (
        "GroupQueryAttention",
        {"head_dim": 2, "num_query_heads": 4, "num_key_value_heads": 2},
        [SEQ, SEQ],
        {"use_causal_mask": True},
    ),
    ("PReLU", {"shared_axes": [1]}, [SEQ]),
    ("ReLU", {"max_value": 0.8, "negative_slope": 0.1, "threshold": 0.2}, [SEQ]),
    ("ELU", {"alpha": 0.5}, [SEQ]),
    ("LeakyReLU", {"negative_slope": 0.2}, [SEQ]),
    ("Softmax", {"axis": [1, 2]}, [SEQ]),
    ("Dot", {"axes": [2, 1], "normalize": True}, [SEQ, (2, 3, 4)]),
    ("Concatenate", {"axis": 1}, [SEQ, (2, 2, 3)]),
    ("Flatten", FIRST, [(2, 3, 2, 4)]),
    ("Rescaling", {"scale": 2.0, "offset": 0.5}, [SEQ]),
    ("Resizing", {"height": 7, "width": 3}, [IMG]),
    ("Resizing", {"height": 3, "width": 4, "interpolation": "nearest"}, [IMG]),
    ("CenterCrop", {"height": 3, "width": 4}, [IMG]),
]
CASES = [case for case in CASES if case]


def record(name, config, shapes, settings=None):
    settings = dict(settings or {})
    layer = getattr(keras.layers, name)(**config)
    xs = [torch.tensor(values(shape, i), requires_grad=True) for i, shape in enumerate(shapes)]
    listed = name in ("Attention", "AdditiveAttention", "Dot", "Concatenate")
    call = {}
    for key, x in settings.items():
        if key == "mask" and listed:
            call[key] = [None if m is None else torch.tensor(m, dtype=torch.bool) for m in x]
        elif key.endswith("mask") and key != "use_causal_mask":
            call[key] = torch.tensor(x, dtype=torch.bool)
        else:
            call[key] = x
    run = (lambda: layer(xs, **call)) if listed else (lambda: layer(*xs, **call))
    run()
    if layer.weights:
        layer.set_weights([values(w.shape, 10 + i, 0.5) + 0.1 for i, w in enumerate(layer.get_weights())])
        if name == "BatchNormalization":
            _mean, variance = layer.weights[-2:]
            variance.assign(np.abs(variance.numpy()) + 0.5)
    out = run()
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    cost = sum((y * torch.tensor(np.cos(np.arange(y.numel())).reshape(y.shape).astype("float32"))).sum() for y in outs)
    trained = [v.value for v in layer.trainable_variables]
    wanted = [*xs, *trained]
    grads = torch.autograd.grad(cost, wanted, allow_unused=True) if cost.requires_grad else [None] * len(wanted)
    return {
        "layer": name,
        "config": config,
        "shapes": shapes,
        "settings": settings,
        "outputs": [tidy(y) for y in outs],
        "grads": [None if g is None else tidy(g) for g in grads],
        "after": [tidy(w) for w in layer.non_trainable_variables if "seed" not in w.path],
    }


def tidy(x):
    array = x.detach().numpy() if hasattr(x, "detach") else np.asarray(x.value.detach().numpy())
    return {"shape": list(array.shape), "values": [float(f"{v:.6g}") for v in array.ravel()]}


print("[" + ",\n".join(json.dumps(record(*case), separators=(",", ":")) for case in CASES) + "]")
