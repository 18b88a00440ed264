"""The layers of TensorFlow.js and Keras with their arguments; script/peer_arguments.py writes it."""

from __future__ import annotations

ENDS = ("constraint", "initializer", "regularizer")


def _expand(table: dict[str, str]) -> dict[str, str]:
    """Return the arguments by layer, from those by several layers, with three names in place of ``kernel_*``."""
    return {kind: " ".join(map(_spell, names.split())) for kinds, names in table.items() for kind in kinds.split()}


def _spell(name: str) -> str:
    return " ".join(f"{name[:-1]}{end}" for end in ENDS) if name.endswith("_*") else name


TFJS: dict[str, str] = _expand({
    "Activation": "activation",
    "Add Average GlobalAveragePooling1D GlobalMaxPooling1D Maximum Minimum Multiply": "",
    "AlphaDropout Dropout SpatialDropout1D": "noise_shape rate seed",
    "AveragePooling1D MaxPooling1D": "padding pool_size strides",
    "AveragePooling2D AveragePooling3D MaxPooling2D MaxPooling3D": "data_format padding pool_size strides",
    "BatchNormalization": (
        "axis beta_* center epsilon gamma_* momentum moving_mean_initializer moving_variance_initializer scale"
    ),
    "Bidirectional": "layer merge_mode",
    "CategoryEncoding": "num_tokens output_mode",
    "CenterCrop": "height width",
    "Concatenate Softmax": "axis",
    "Conv1D": (
        "activation activity_regularizer bias_* dilation_rate filters kernel_* kernel_size padding strides use_bias"
    ),
    "Conv2D Conv3D": (
        "activation activity_regularizer bias_* data_format dilation_rate filters kernel_* kernel_size padding "
        "strides use_bias"
    ),
    "Conv2DTranspose Conv3DTranspose": (
        "activation activity_regularizer bias_* data_format filters kernel_* kernel_size padding strides use_bias"
    ),
    "ConvLSTM2D": (
        "activation activity_regularizer bias_* data_format dilation_rate dropout filters go_backwards implementation "
        "kernel_* kernel_size padding recurrent_* recurrent_activation recurrent_dropout return_sequences "
        "return_state stateful strides unit_forget_bias unroll use_bias"
    ),
    "ConvLSTM2DCell": (
        "activation activity_regularizer bias_* data_format dilation_rate dropout filters implementation kernel_* "
        "kernel_size padding recurrent_* recurrent_activation recurrent_dropout strides unit_forget_bias use_bias"
    ),
    "Cropping2D": "cropping data_format",
    "Dense": "activation activity_regularizer bias_* kernel_* units use_bias",
    "DepthwiseConv2D": (
        "activation activity_regularizer bias_* data_format depth_multiplier depthwise_* dilation_rate kernel_size "
        "padding strides use_bias"
    ),
    "Dot": "axes normalize",
    "ELU LeakyReLU": "alpha",
    "Embedding": "activity_regularizer embeddings_* input_dim input_length mask_zero output_dim",
    "Flatten GlobalAveragePooling2D GlobalMaxPooling2D": "data_format",
    "GRU": (
        "activation activity_regularizer bias_* dropout go_backwards implementation kernel_* recurrent_* "
        "recurrent_activation recurrent_dropout reset_after return_sequences return_state stateful units unroll "
        "use_bias"
    ),
    "GRUCell": (
        "activation activity_regularizer bias_* dropout implementation kernel_* recurrent_* recurrent_activation "
        "recurrent_dropout reset_after units use_bias"
    ),
    "GaussianDropout": "rate",
    "GaussianNoise": "stddev",
    "InputLayer": "sparse",
    "LSTM": (
        "activation activity_regularizer bias_* dropout go_backwards implementation kernel_* recurrent_* "
        "recurrent_activation recurrent_dropout return_sequences return_state stateful unit_forget_bias units unroll "
        "use_bias"
    ),
    "LSTMCell": (
        "activation activity_regularizer bias_* dropout implementation kernel_* recurrent_* recurrent_activation "
        "recurrent_dropout unit_forget_bias units use_bias"
    ),
    "LayerNormalization": (
        "axis beta_initializer beta_regularizer center epsilon gamma_initializer gamma_regularizer scale"
    ),
    "Masking": "mask_value",
    "PReLU": "alpha_* shared_axes",
    "Permute": "dims",
    "RNN": "cell go_backwards return_sequences return_state stateful unroll",
    "RandomWidth": "factor interpolation seed",
    "ReLU": "max_value",
    "RepeatVector": "n",
    "Rescaling": "offset scale",
    "Reshape": "target_shape",
    "Resizing": "crop_to_aspect_ratio height interpolation width",
    "SeparableConv2D": (
        "activation activity_regularizer bias_* data_format depth_multiplier depthwise_* dilation_rate filters "
        "kernel_size padding pointwise_* strides use_bias"
    ),
    "SimpleRNN": (
        "activation activity_regularizer bias_* dropout go_backwards kernel_* recurrent_* recurrent_dropout "
        "return_sequences return_state stateful units unroll use_bias"
    ),
    "SimpleRNNCell": (
        "activation activity_regularizer bias_* dropout kernel_* recurrent_* recurrent_dropout units use_bias"
    ),
    "StackedRNNCells": "cells",
    "ThresholdedReLU": "theta",
    "TimeDistributed": "layer",
    "UpSampling2D": "data_format interpolation size",
    "ZeroPadding2D": "data_format padding",
})  # fmt: skip

KERAS: dict[str, str] = _expand({
    "Activation": "activation",
    "ActivityRegularization": "l1 l2",
    "AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D AdaptiveMaxPooling1D": (
        "data_format output_size"
    ),
    "AdaptiveMaxPooling2D AdaptiveMaxPooling3D": "data_format output_size",
    "Add Average Identity Maximum Minimum Multiply Subtract": "",
    "AdditiveAttention": "dropout use_scale",
    "AlphaDropout Dropout": "noise_shape rate seed",
    "Attention": "dropout score_mode seed use_scale",
    "AugMix": "all_ops alpha chain_depth data_format factor interpolation num_chains seed value_range",
    "AutoContrast": "value_range",
    "AveragePooling1D AveragePooling2D AveragePooling3D MaxPooling1D MaxPooling2D MaxPooling3D": (
        "data_format padding pool_size strides"
    ),
    "BatchNormalization": (
        "axis beta_* center epsilon gamma_* momentum moving_mean_initializer moving_variance_initializer renorm "
        "renorm_clipping renorm_momentum scale synchronized"
    ),
    "Bidirectional": "backward_layer layer merge_mode weights",
    "CategoryEncoding": "num_tokens output_mode sparse",
    "CenterCrop": "data_format height width",
    "Concatenate Softmax UnitNormalization": "axis",
    "ContrastLimitedAdaptiveHistogramEqualization": "clip_limit data_format tile_grid_size value_range",
    "Conv1D Conv2D Conv3D": (
        "activation activity_regularizer bias_* data_format dilation_rate filters groups kernel_* kernel_size padding "
        "strides use_bias"
    ),
    "Conv1DTranspose Conv2DTranspose Conv3DTranspose": (
        "activation activity_regularizer bias_* data_format dilation_rate filters kernel_* kernel_size output_padding "
        "padding strides use_bias"
    ),
    "ConvLSTM1D ConvLSTM2D ConvLSTM3D": (
        "activation activity_regularizer bias_* data_format dilation_rate dropout filters go_backwards kernel_* "
        "kernel_size padding recurrent_* recurrent_activation recurrent_dropout return_sequences return_state seed "
        "stateful strides unit_forget_bias use_bias zero_output_for_mask"
    ),
    "Cropping1D": "cropping",
    "Cropping2D Cropping3D": "cropping data_format",
    "CutMix RandomGrayscale": "data_format factor seed",
    "Dense": "activation activity_regularizer bias_* kernel_* lora_alpha lora_rank quantization_config units use_bias",
    "DepthwiseConv1D DepthwiseConv2D": (
        "activation activity_regularizer bias_* data_format depth_multiplier depthwise_* dilation_rate kernel_size "
        "padding strides use_bias"
    ),
    "Discretization": "bin_boundaries epsilon num_bins output_mode sparse",
    "Dot": "axes normalize",
    "ELU": "alpha",
    "EinsumDense": (
        "activation bias_* bias_axes equation gptq_unpacked_column_size kernel_* lora_alpha lora_rank output_shape "
        "quantization_config"
    ),
    "Embedding": "embeddings_* input_dim lora_alpha lora_rank mask_zero output_dim quantization_config weights",
    "Equalization": "bins data_format value_range",
    "Flatten": "data_format",
    "FlaxLayer": "method module variables",
    "GRU": (
        "activation activity_regularizer bias_* dropout go_backwards kernel_* recurrent_* recurrent_activation "
        "recurrent_dropout reset_after return_sequences return_state seed stateful units unroll use_bias use_cudnn "
        "zero_output_for_mask"
    ),
    "GRUCell": (
        "activation bias_* dropout kernel_* recurrent_* recurrent_activation recurrent_dropout reset_after seed units "
        "use_bias"
    ),
    "GaussianDropout SpatialDropout1D": "rate seed",
    "GaussianNoise": "seed stddev",
    "GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D": "data_format keepdims",
    "GlobalMaxPooling2D GlobalMaxPooling3D": "data_format keepdims",
    "GroupNormalization": "axis beta_* center epsilon gamma_* groups scale",
    "GroupQueryAttention": (
        "activity_regularizer bias_* dropout flash_attention head_dim kernel_* num_key_value_heads num_query_heads "
        "seed sliding_window use_bias use_gate"
    ),
    "HashedCrossing": "num_bins output_mode sparse",
    "Hashing": "mask_value num_bins output_mode salt sparse",
    "InputLayer": "batch_shape batch_size input_tensor optional ragged shape sparse",
    "IntegerLookup": (
        "idf_weights invert mask_token max_tokens num_oov_indices oov_method oov_token output_mode pad_to_max_tokens "
        "salt sparse vocabulary vocabulary_dtype"
    ),
    "JaxLayer": "call_fn init_fn native_serialization_platforms params seed state",
    "LSTM": (
        "activation activity_regularizer bias_* dropout go_backwards kernel_* recurrent_* recurrent_activation "
        "recurrent_dropout return_sequences return_state seed stateful unit_forget_bias units unroll use_bias "
        "use_cudnn zero_output_for_mask"
    ),
    "LSTMCell": (
        "activation bias_* dropout kernel_* recurrent_* recurrent_activation recurrent_dropout seed unit_forget_bias "
        "units use_bias"
    ),
    "Lambda": "arguments function mask output_shape",
    "Layer": "activity_regularizer autocast",
    "LayerNormalization": "axis beta_* center epsilon gamma_* scale",
    "LeakyReLU": "negative_slope",
    "Masking": "mask_value",
    "MaxNumBoundingBoxes": "fill_value max_number",
    "MelSpectrogram": (
        "fft_length mag_exp max_freq min_freq min_power num_mel_bins power_to_db ref_power sampling_rate "
        "sequence_length sequence_stride top_db window"
    ),
    "MixUp": "alpha data_format seed",
    "MultiHeadAttention": (
        "activity_regularizer attention_axes bias_* dropout flash_attention kernel_* key_dim num_heads output_shape "
        "seed sliding_window use_bias use_gate value_dim"
    ),
    "Normalization": "axis invert mean variance",
    "PReLU": "alpha_* shared_axes",
    "Permute": "dims",
    "Pipeline": "layers",
    "RMSNormalization": "axis epsilon",
    "RNN": "cell go_backwards return_sequences return_state stateful unroll zero_output_for_mask",
    "RandAugment": "data_format factor interpolation num_ops seed value_range",
    "RandomBrightness RandomContrast": "factor seed value_range",
    "RandomColorDegeneration RandomHue RandomInvert RandomPosterization RandomSaturation RandomSharpness": (
        "data_format factor seed value_range"
    ),
    "RandomColorJitter": "brightness_factor contrast_factor data_format hue_factor saturation_factor seed value_range",
    "RandomCrop": "data_format height seed width",
    "RandomElasticTransform": "data_format factor fill_mode fill_value interpolation scale seed value_range",
    "RandomErasing": "data_format factor fill_value scale seed value_range",
    "RandomFlip": "data_format mode seed",
    "RandomGaussianBlur": "data_format factor kernel_size seed sigma value_range",
    "RandomPerspective": "data_format factor fill_value interpolation scale seed",
    "RandomRotation": "data_format factor fill_mode fill_value interpolation seed",
    "RandomShear": "data_format fill_mode fill_value interpolation seed x_factor y_factor",
    "RandomTranslation RandomZoom": "data_format fill_mode fill_value height_factor interpolation seed width_factor",
    "ReLU": "max_value negative_slope threshold",
    "RepeatVector": "n",
    "Rescaling": "offset scale",
    "Reshape": "target_shape",
    "Resizing": (
        "antialias crop_to_aspect_ratio data_format fill_mode fill_value height interpolation pad_to_aspect_ratio "
        "width"
    ),
    "ReversibleEmbedding": "embeddings_* input_dim logit_soft_cap mask_zero output_dim reverse_dtype tie_weights",
    "STFTSpectrogram": (
        "data_format expand_dims fft_length frame_length frame_step mode padding periodic scaling window"
    ),
    "SeparableConv1D SeparableConv2D": (
        "activation activity_regularizer bias_* data_format depth_multiplier depthwise_* dilation_rate filters "
        "kernel_size padding pointwise_* strides use_bias"
    ),
    "SimpleRNN": (
        "activation activity_regularizer bias_* dropout go_backwards kernel_* recurrent_* recurrent_dropout "
        "return_sequences return_state seed stateful units unroll use_bias zero_output_for_mask"
    ),
    "SimpleRNNCell": "activation bias_* dropout kernel_* recurrent_* recurrent_dropout seed units use_bias",
    "Solarization": "addition_factor seed threshold_factor value_range",
    "SpatialDropout2D SpatialDropout3D": "data_format rate seed",
    "SpectralNormalization": "layer power_iterations",
    "StackedRNNCells": "cells",
    "StringLookup": (
        "encoding idf_weights invert mask_token max_tokens num_oov_indices oov_token output_mode pad_to_max_tokens "
        "salt sparse vocabulary"
    ),
    "TFSMLayer": "call_endpoint call_training_endpoint filepath",
    "TextVectorization": (
        "encoding idf_weights max_tokens ngrams output_mode output_sequence_length pad_to_max_tokens ragged sparse "
        "split standardize vocabulary"
    ),
    "TimeDistributed Wrapper": "layer",
    "TorchModuleWrapper": "module output_shape",
    "UpSampling1D": "size",
    "UpSampling2D": "data_format interpolation size",
    "UpSampling3D": "data_format size",
    "ZeroPadding1D ZeroPadding2D ZeroPadding3D": "data_format padding",
})  # fmt: skip
