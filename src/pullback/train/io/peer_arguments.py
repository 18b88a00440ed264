"""The layers of TensorFlow.js and Keras with their arguments; script/peer_arguments.py writes it."""

from __future__ import annotations

TFJS: dict[str, str] = {
    "Activation": "activation",
    "Add": "",
    "AlphaDropout": "noise_shape rate seed",
    "Average": "",
    "AveragePooling1D": "padding pool_size strides",
    "AveragePooling2D": "data_format padding pool_size strides",
    "AveragePooling3D": "data_format padding pool_size strides",
    "BatchNormalization": (
        "axis beta_constraint beta_initializer beta_regularizer center epsilon gamma_constraint "
        "gamma_initializer gamma_regularizer momentum moving_mean_initializer "
        "moving_variance_initializer scale"
    ),
    "Bidirectional": "layer merge_mode",
    "CategoryEncoding": "num_tokens output_mode",
    "CenterCrop": "height width",
    "Concatenate": "axis",
    "Conv1D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "dilation_rate filters kernel_constraint kernel_initializer kernel_regularizer kernel_size "
        "padding strides use_bias"
    ),
    "Conv2D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate filters kernel_constraint kernel_initializer kernel_regularizer "
        "kernel_size padding strides use_bias"
    ),
    "Conv2DTranspose": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format filters kernel_constraint kernel_initializer kernel_regularizer kernel_size "
        "padding strides use_bias"
    ),
    "Conv3D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate filters kernel_constraint kernel_initializer kernel_regularizer "
        "kernel_size padding strides use_bias"
    ),
    "Conv3DTranspose": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format filters kernel_constraint kernel_initializer kernel_regularizer kernel_size "
        "padding strides use_bias"
    ),
    "ConvLSTM2D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate dropout filters go_backwards implementation kernel_constraint "
        "kernel_initializer kernel_regularizer kernel_size padding recurrent_activation "
        "recurrent_constraint recurrent_dropout recurrent_initializer recurrent_regularizer "
        "return_sequences return_state stateful strides unit_forget_bias unroll use_bias"
    ),
    "ConvLSTM2DCell": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate dropout filters implementation kernel_constraint "
        "kernel_initializer kernel_regularizer kernel_size padding recurrent_activation "
        "recurrent_constraint recurrent_dropout recurrent_initializer recurrent_regularizer strides "
        "unit_forget_bias use_bias"
    ),
    "Cropping2D": "cropping data_format",
    "Dense": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "kernel_constraint kernel_initializer kernel_regularizer units use_bias"
    ),
    "DepthwiseConv2D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format depth_multiplier depthwise_constraint depthwise_initializer "
        "depthwise_regularizer dilation_rate kernel_size padding strides use_bias"
    ),
    "Dot": "axes normalize",
    "Dropout": "noise_shape rate seed",
    "ELU": "alpha",
    "Embedding": (
        "activity_regularizer embeddings_constraint embeddings_initializer embeddings_regularizer "
        "input_dim input_length mask_zero output_dim"
    ),
    "Flatten": "data_format",
    "GRU": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "go_backwards implementation kernel_constraint kernel_initializer kernel_regularizer "
        "recurrent_activation recurrent_constraint recurrent_dropout recurrent_initializer "
        "recurrent_regularizer reset_after return_sequences return_state stateful units unroll "
        "use_bias"
    ),
    "GRUCell": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "implementation kernel_constraint kernel_initializer kernel_regularizer "
        "recurrent_activation recurrent_constraint recurrent_dropout recurrent_initializer "
        "recurrent_regularizer reset_after units use_bias"
    ),
    "GaussianDropout": "rate",
    "GaussianNoise": "stddev",
    "GlobalAveragePooling1D": "",
    "GlobalAveragePooling2D": "data_format",
    "GlobalMaxPooling1D": "",
    "GlobalMaxPooling2D": "data_format",
    "InputLayer": "sparse",
    "LSTM": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "go_backwards implementation kernel_constraint kernel_initializer kernel_regularizer "
        "recurrent_activation recurrent_constraint recurrent_dropout recurrent_initializer "
        "recurrent_regularizer return_sequences return_state stateful unit_forget_bias units unroll "
        "use_bias"
    ),
    "LSTMCell": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "implementation kernel_constraint kernel_initializer kernel_regularizer "
        "recurrent_activation recurrent_constraint recurrent_dropout recurrent_initializer "
        "recurrent_regularizer unit_forget_bias units use_bias"
    ),
    "LayerNormalization": (
        "axis beta_initializer beta_regularizer center epsilon gamma_initializer gamma_regularizer scale"
    ),
    "LeakyReLU": "alpha",
    "Masking": "mask_value",
    "MaxPooling1D": "padding pool_size strides",
    "MaxPooling2D": "data_format padding pool_size strides",
    "MaxPooling3D": "data_format padding pool_size strides",
    "Maximum": "",
    "Minimum": "",
    "Multiply": "",
    "PReLU": "alpha_constraint alpha_initializer alpha_regularizer shared_axes",
    "Permute": "dims",
    "RNN": "cell go_backwards return_sequences return_state stateful unroll",
    "RandomWidth": "factor interpolation seed",
    "ReLU": "max_value",
    "RepeatVector": "n",
    "Rescaling": "offset scale",
    "Reshape": "target_shape",
    "Resizing": "crop_to_aspect_ratio height interpolation width",
    "SeparableConv2D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format depth_multiplier depthwise_constraint depthwise_initializer "
        "depthwise_regularizer dilation_rate filters kernel_size padding pointwise_constraint "
        "pointwise_initializer pointwise_regularizer strides use_bias"
    ),
    "SimpleRNN": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "go_backwards kernel_constraint kernel_initializer kernel_regularizer recurrent_constraint "
        "recurrent_dropout recurrent_initializer recurrent_regularizer return_sequences "
        "return_state stateful units unroll use_bias"
    ),
    "SimpleRNNCell": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "kernel_constraint kernel_initializer kernel_regularizer recurrent_constraint "
        "recurrent_dropout recurrent_initializer recurrent_regularizer units use_bias"
    ),
    "Softmax": "axis",
    "SpatialDropout1D": "noise_shape rate seed",
    "StackedRNNCells": "cells",
    "ThresholdedReLU": "theta",
    "TimeDistributed": "layer",
    "UpSampling2D": "data_format interpolation size",
    "ZeroPadding2D": "data_format padding",
}

KERAS: dict[str, str] = {
    "Activation": "activation",
    "ActivityRegularization": "l1 l2",
    "AdaptiveAveragePooling1D": "data_format output_size",
    "AdaptiveAveragePooling2D": "data_format output_size",
    "AdaptiveAveragePooling3D": "data_format output_size",
    "AdaptiveMaxPooling1D": "data_format output_size",
    "AdaptiveMaxPooling2D": "data_format output_size",
    "AdaptiveMaxPooling3D": "data_format output_size",
    "Add": "",
    "AdditiveAttention": "dropout use_scale",
    "AlphaDropout": "noise_shape rate seed",
    "Attention": "dropout score_mode seed use_scale",
    "AugMix": "all_ops alpha chain_depth data_format factor interpolation num_chains seed value_range",
    "AutoContrast": "value_range",
    "Average": "",
    "AveragePooling1D": "data_format padding pool_size strides",
    "AveragePooling2D": "data_format padding pool_size strides",
    "AveragePooling3D": "data_format padding pool_size strides",
    "BatchNormalization": (
        "axis beta_constraint beta_initializer beta_regularizer center epsilon gamma_constraint "
        "gamma_initializer gamma_regularizer momentum moving_mean_initializer "
        "moving_variance_initializer renorm renorm_clipping renorm_momentum scale synchronized"
    ),
    "Bidirectional": "backward_layer layer merge_mode weights",
    "CategoryEncoding": "num_tokens output_mode sparse",
    "CenterCrop": "data_format height width",
    "Concatenate": "axis",
    "ContrastLimitedAdaptiveHistogramEqualization": "clip_limit data_format tile_grid_size value_range",
    "Conv1D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate filters groups kernel_constraint kernel_initializer "
        "kernel_regularizer kernel_size padding strides use_bias"
    ),
    "Conv1DTranspose": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate filters kernel_constraint kernel_initializer kernel_regularizer "
        "kernel_size output_padding padding strides use_bias"
    ),
    "Conv2D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate filters groups kernel_constraint kernel_initializer "
        "kernel_regularizer kernel_size padding strides use_bias"
    ),
    "Conv2DTranspose": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate filters kernel_constraint kernel_initializer kernel_regularizer "
        "kernel_size output_padding padding strides use_bias"
    ),
    "Conv3D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate filters groups kernel_constraint kernel_initializer "
        "kernel_regularizer kernel_size padding strides use_bias"
    ),
    "Conv3DTranspose": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate filters kernel_constraint kernel_initializer kernel_regularizer "
        "kernel_size output_padding padding strides use_bias"
    ),
    "ConvLSTM1D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate dropout filters go_backwards kernel_constraint "
        "kernel_initializer kernel_regularizer kernel_size padding recurrent_activation "
        "recurrent_constraint recurrent_dropout recurrent_initializer recurrent_regularizer "
        "return_sequences return_state seed stateful strides unit_forget_bias use_bias "
        "zero_output_for_mask"
    ),
    "ConvLSTM2D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate dropout filters go_backwards kernel_constraint "
        "kernel_initializer kernel_regularizer kernel_size padding recurrent_activation "
        "recurrent_constraint recurrent_dropout recurrent_initializer recurrent_regularizer "
        "return_sequences return_state seed stateful strides unit_forget_bias use_bias "
        "zero_output_for_mask"
    ),
    "ConvLSTM3D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format dilation_rate dropout filters go_backwards kernel_constraint "
        "kernel_initializer kernel_regularizer kernel_size padding recurrent_activation "
        "recurrent_constraint recurrent_dropout recurrent_initializer recurrent_regularizer "
        "return_sequences return_state seed stateful strides unit_forget_bias use_bias "
        "zero_output_for_mask"
    ),
    "Cropping1D": "cropping",
    "Cropping2D": "cropping data_format",
    "Cropping3D": "cropping data_format",
    "CutMix": "data_format factor seed",
    "Dense": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "kernel_constraint kernel_initializer kernel_regularizer lora_alpha lora_rank "
        "quantization_config units use_bias"
    ),
    "DepthwiseConv1D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format depth_multiplier depthwise_constraint depthwise_initializer "
        "depthwise_regularizer dilation_rate kernel_size padding strides use_bias"
    ),
    "DepthwiseConv2D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format depth_multiplier depthwise_constraint depthwise_initializer "
        "depthwise_regularizer dilation_rate kernel_size padding strides use_bias"
    ),
    "Discretization": "bin_boundaries epsilon num_bins output_mode sparse",
    "Dot": "axes normalize",
    "Dropout": "noise_shape rate seed",
    "ELU": "alpha",
    "EinsumDense": (
        "activation bias_axes bias_constraint bias_initializer bias_regularizer equation "
        "gptq_unpacked_column_size kernel_constraint kernel_initializer kernel_regularizer "
        "lora_alpha lora_rank output_shape quantization_config"
    ),
    "Embedding": (
        "embeddings_constraint embeddings_initializer embeddings_regularizer input_dim lora_alpha "
        "lora_rank mask_zero output_dim quantization_config weights"
    ),
    "Equalization": "bins data_format value_range",
    "Flatten": "data_format",
    "FlaxLayer": "method module variables",
    "GRU": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "go_backwards kernel_constraint kernel_initializer kernel_regularizer recurrent_activation "
        "recurrent_constraint recurrent_dropout recurrent_initializer recurrent_regularizer "
        "reset_after return_sequences return_state seed stateful units unroll use_bias use_cudnn "
        "zero_output_for_mask"
    ),
    "GRUCell": (
        "activation bias_constraint bias_initializer bias_regularizer dropout kernel_constraint "
        "kernel_initializer kernel_regularizer recurrent_activation recurrent_constraint "
        "recurrent_dropout recurrent_initializer recurrent_regularizer reset_after seed units "
        "use_bias"
    ),
    "GaussianDropout": "rate seed",
    "GaussianNoise": "seed stddev",
    "GlobalAveragePooling1D": "data_format keepdims",
    "GlobalAveragePooling2D": "data_format keepdims",
    "GlobalAveragePooling3D": "data_format keepdims",
    "GlobalMaxPooling1D": "data_format keepdims",
    "GlobalMaxPooling2D": "data_format keepdims",
    "GlobalMaxPooling3D": "data_format keepdims",
    "GroupNormalization": (
        "axis beta_constraint beta_initializer beta_regularizer center epsilon gamma_constraint "
        "gamma_initializer gamma_regularizer groups scale"
    ),
    "GroupQueryAttention": (
        "activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "flash_attention head_dim kernel_constraint kernel_initializer kernel_regularizer "
        "num_key_value_heads num_query_heads seed sliding_window use_bias use_gate"
    ),
    "HashedCrossing": "num_bins output_mode sparse",
    "Hashing": "mask_value num_bins output_mode salt sparse",
    "Identity": "",
    "InputLayer": "batch_shape batch_size input_tensor optional ragged shape sparse",
    "IntegerLookup": (
        "idf_weights invert mask_token max_tokens num_oov_indices oov_method oov_token output_mode "
        "pad_to_max_tokens salt sparse vocabulary vocabulary_dtype"
    ),
    "JaxLayer": "call_fn init_fn native_serialization_platforms params seed state",
    "LSTM": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "go_backwards kernel_constraint kernel_initializer kernel_regularizer recurrent_activation "
        "recurrent_constraint recurrent_dropout recurrent_initializer recurrent_regularizer "
        "return_sequences return_state seed stateful unit_forget_bias units unroll use_bias "
        "use_cudnn zero_output_for_mask"
    ),
    "LSTMCell": (
        "activation bias_constraint bias_initializer bias_regularizer dropout kernel_constraint "
        "kernel_initializer kernel_regularizer recurrent_activation recurrent_constraint "
        "recurrent_dropout recurrent_initializer recurrent_regularizer seed unit_forget_bias units "
        "use_bias"
    ),
    "Lambda": "arguments function mask output_shape",
    "Layer": "activity_regularizer autocast",
    "LayerNormalization": (
        "axis beta_constraint beta_initializer beta_regularizer center epsilon gamma_constraint "
        "gamma_initializer gamma_regularizer scale"
    ),
    "LeakyReLU": "negative_slope",
    "Masking": "mask_value",
    "MaxNumBoundingBoxes": "fill_value max_number",
    "MaxPooling1D": "data_format padding pool_size strides",
    "MaxPooling2D": "data_format padding pool_size strides",
    "MaxPooling3D": "data_format padding pool_size strides",
    "Maximum": "",
    "MelSpectrogram": (
        "fft_length mag_exp max_freq min_freq min_power num_mel_bins power_to_db ref_power "
        "sampling_rate sequence_length sequence_stride top_db window"
    ),
    "Minimum": "",
    "MixUp": "alpha data_format seed",
    "MultiHeadAttention": (
        "activity_regularizer attention_axes bias_constraint bias_initializer bias_regularizer "
        "dropout flash_attention kernel_constraint kernel_initializer kernel_regularizer key_dim "
        "num_heads output_shape seed sliding_window use_bias use_gate value_dim"
    ),
    "Multiply": "",
    "Normalization": "axis invert mean variance",
    "PReLU": "alpha_constraint alpha_initializer alpha_regularizer shared_axes",
    "Permute": "dims",
    "Pipeline": "layers",
    "RMSNormalization": "axis epsilon",
    "RNN": "cell go_backwards return_sequences return_state stateful unroll zero_output_for_mask",
    "RandAugment": "data_format factor interpolation num_ops seed value_range",
    "RandomBrightness": "factor seed value_range",
    "RandomColorDegeneration": "data_format factor seed value_range",
    "RandomColorJitter": (
        "brightness_factor contrast_factor data_format hue_factor saturation_factor seed value_range"
    ),
    "RandomContrast": "factor seed value_range",
    "RandomCrop": "data_format height seed width",
    "RandomElasticTransform": "data_format factor fill_mode fill_value interpolation scale seed value_range",
    "RandomErasing": "data_format factor fill_value scale seed value_range",
    "RandomFlip": "data_format mode seed",
    "RandomGaussianBlur": "data_format factor kernel_size seed sigma value_range",
    "RandomGrayscale": "data_format factor seed",
    "RandomHue": "data_format factor seed value_range",
    "RandomInvert": "data_format factor seed value_range",
    "RandomPerspective": "data_format factor fill_value interpolation scale seed",
    "RandomPosterization": "data_format factor seed value_range",
    "RandomRotation": "data_format factor fill_mode fill_value interpolation seed",
    "RandomSaturation": "data_format factor seed value_range",
    "RandomSharpness": "data_format factor seed value_range",
    "RandomShear": "data_format fill_mode fill_value interpolation seed x_factor y_factor",
    "RandomTranslation": "data_format fill_mode fill_value height_factor interpolation seed width_factor",
    "RandomZoom": "data_format fill_mode fill_value height_factor interpolation seed width_factor",
    "ReLU": "max_value negative_slope threshold",
    "RepeatVector": "n",
    "Rescaling": "offset scale",
    "Reshape": "target_shape",
    "Resizing": (
        "antialias crop_to_aspect_ratio data_format fill_mode fill_value height interpolation pad_to_aspect_ratio width"
    ),
    "ReversibleEmbedding": (
        "embeddings_constraint embeddings_initializer embeddings_regularizer input_dim "
        "logit_soft_cap mask_zero output_dim reverse_dtype tie_weights"
    ),
    "STFTSpectrogram": (
        "data_format expand_dims fft_length frame_length frame_step mode padding periodic scaling window"
    ),
    "SeparableConv1D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format depth_multiplier depthwise_constraint depthwise_initializer "
        "depthwise_regularizer dilation_rate filters kernel_size padding pointwise_constraint "
        "pointwise_initializer pointwise_regularizer strides use_bias"
    ),
    "SeparableConv2D": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer "
        "data_format depth_multiplier depthwise_constraint depthwise_initializer "
        "depthwise_regularizer dilation_rate filters kernel_size padding pointwise_constraint "
        "pointwise_initializer pointwise_regularizer strides use_bias"
    ),
    "SimpleRNN": (
        "activation activity_regularizer bias_constraint bias_initializer bias_regularizer dropout "
        "go_backwards kernel_constraint kernel_initializer kernel_regularizer recurrent_constraint "
        "recurrent_dropout recurrent_initializer recurrent_regularizer return_sequences "
        "return_state seed stateful units unroll use_bias zero_output_for_mask"
    ),
    "SimpleRNNCell": (
        "activation bias_constraint bias_initializer bias_regularizer dropout kernel_constraint "
        "kernel_initializer kernel_regularizer recurrent_constraint recurrent_dropout "
        "recurrent_initializer recurrent_regularizer seed units use_bias"
    ),
    "Softmax": "axis",
    "Solarization": "addition_factor seed threshold_factor value_range",
    "SpatialDropout1D": "rate seed",
    "SpatialDropout2D": "data_format rate seed",
    "SpatialDropout3D": "data_format rate seed",
    "SpectralNormalization": "layer power_iterations",
    "StackedRNNCells": "cells",
    "StringLookup": (
        "encoding idf_weights invert mask_token max_tokens num_oov_indices oov_token output_mode "
        "pad_to_max_tokens salt sparse vocabulary"
    ),
    "Subtract": "",
    "TFSMLayer": "call_endpoint call_training_endpoint filepath",
    "TextVectorization": (
        "encoding idf_weights max_tokens ngrams output_mode output_sequence_length "
        "pad_to_max_tokens ragged sparse split standardize vocabulary"
    ),
    "TimeDistributed": "layer",
    "TorchModuleWrapper": "module output_shape",
    "UnitNormalization": "axis",
    "UpSampling1D": "size",
    "UpSampling2D": "data_format interpolation size",
    "UpSampling3D": "data_format size",
    "Wrapper": "layer",
    "ZeroPadding1D": "data_format padding",
    "ZeroPadding2D": "data_format padding",
    "ZeroPadding3D": "data_format padding",
}
