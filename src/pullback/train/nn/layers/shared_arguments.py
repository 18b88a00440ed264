"""What arguments that many layers have are; ``pb.layers`` adds a line about each to the docstrings of its layers."""

from __future__ import annotations

WEIGHTS = {
    "kernel": "the kernel", "recurrent": "the recurrent kernel", "bias": "the bias",
    "depthwise": "the depthwise kernel", "pointwise": "the pointwise kernel", "embeddings": "the table",
    "beta": "the offset ``beta``", "gamma": "the factor ``gamma``", "alpha": "the slopes",
}  # fmt: skip
SHARED_ARGUMENTS = {
    **{f"{name}_initializer": f"the initial values of {weight}." for name, weight in WEIGHTS.items()},
    **{f"{name}_regularizer": f"a term of {weight} that is added to the loss." for name, weight in WEIGHTS.items()},
    **{f"{name}_constraint": f"a function applied to {weight} after each step." for name, weight in WEIGHTS.items()},
    "activation": "a function of the result, or its name.",
    "use_bias": "whether a bias is added.",
    "units": "the number of outputs.",
    "seed": "makes the draws the same every time the program runs.",
    "lora_rank": "the rank of a trained product that is added to the frozen weights; see ``enable_lora``.",
    "lora_alpha": "the product is multiplied by this, divided by the rank; the rank unless it is given.",
    # ---- sequences, images and volumes
    "data_format": '"channels_last" (default) or "channels_first".',
    "filters": "the number of output channels.",
    "kernel_size": "how long the windows are along each axis, or one number for all.",
    "pool_size": "how long the windows are along each axis, or one number for all.",
    "strides": "the distance between windows along each axis, or one number for all.",
    "padding": '"valid", or "same": windows may reach over the borders, so that sizes stay with ``strides`` of 1.',
    "dilation_rate": "the distance between the elements of a window.",
    "groups": "into how many groups channels and filters are divided.",
    "depth_multiplier": "the number of filters of each channel.",
    "keepdims": "whether the axes of space stay, with length 1.",
    "output_size": "the number of parts along each axis, or one number for all.",
    # ---- images at random
    "value_range": "the lowest and the highest value of a pixel.",
    "fill_mode": 'what is beyond the border: "reflect", "wrap", "nearest", or "constant": ``fill_value``.',
    "fill_value": "the value outside the image.",
    "interpolation": '"bilinear" or "nearest".',
    # ---- steps
    "recurrent_activation": "the function of the gates, or its name.",
    "unit_forget_bias": "whether the bias of the forget gate begins with 1.",
    "dropout": "in training, the fraction of the inputs that is dropped.",
    "recurrent_dropout": "in training, the fraction of the states that is dropped.",
    "return_sequences": "whether all outputs are returned, and not the last one.",
    "return_state": "whether the last states are returned, too: the output, and ``c`` of an LSTM.",
    "go_backwards": "whether it begins with the last step.",
    "stateful": "whether a call begins with the last states of the call before.",
    "zero_output_for_mask": "whether outputs of masked steps are 0; else they are the outputs before.",
    "unroll": "accepted, and has no effect.",
    "implementation": "accepted, and has no effect.",
    "input_dim": "the length of the last axis of the input.",
    "input_length": "how many steps the input has.",
    # ---- attention
    "sliding_window": "how far queries see: less than so many steps.",
    "use_gate": "whether a learned gate of the query is multiplied with the output of the heads.",
    "flash_attention": "accepted, and has no effect.",
    # ---- normalization
    "center": "whether there is an offset ``beta``.",
    "scale": "whether there is a factor ``gamma``.",
    "epsilon": "is added to the variance.",
    # ---- vocabularies
    "max_tokens": "the largest size of the vocabulary, special tokens included.",
    "num_oov_indices": "how many numbers there are for unknown tokens.",
    "mask_token": "the token that stands for padding, number 0.",
    "oov_token": "the token of unknown numbers, if inverted.",
    "idf_weights": 'for "tf_idf", the weight of each token.',
    "pad_to_max_tokens": "whether vectors have length ``max_tokens``.",
}
