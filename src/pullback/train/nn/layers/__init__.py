"""Layers, by TensorFlow.js's names: ``pb.layers.dense(10, activation="relu")``."""

from __future__ import annotations

from pullback.train.nn.layers.attention import Attention as Attention
from pullback.train.nn.layers.attention import MultiHeadAttention as MultiHeadAttention
from pullback.train.nn.layers.attention import PositionalEncoding as PositionalEncoding
from pullback.train.nn.layers.base import Layer as Layer
from pullback.train.nn.layers.convolution import Conv1d as Conv1d
from pullback.train.nn.layers.convolution import Conv2d as Conv2d
from pullback.train.nn.layers.convolution import Conv2dTranspose as Conv2dTranspose
from pullback.train.nn.layers.convolution import DepthwiseConv2d as DepthwiseConv2d
from pullback.train.nn.layers.convolution import SeparableConv2d as SeparableConv2d
from pullback.train.nn.layers.dense import Activation as Activation
from pullback.train.nn.layers.dense import Dense as Dense
from pullback.train.nn.layers.dense import Dropout as Dropout
from pullback.train.nn.layers.dense import Embedding as Embedding
from pullback.train.nn.layers.dense import Flatten as Flatten
from pullback.train.nn.layers.dense import GaussianNoise as GaussianNoise
from pullback.train.nn.layers.dense import Permute as Permute
from pullback.train.nn.layers.dense import RepeatVector as RepeatVector
from pullback.train.nn.layers.dense import Reshape as Reshape
from pullback.train.nn.layers.merging import Add as Add
from pullback.train.nn.layers.merging import Average as Average
from pullback.train.nn.layers.merging import Concatenate as Concatenate
from pullback.train.nn.layers.merging import Dot as Dot
from pullback.train.nn.layers.merging import Maximum as Maximum
from pullback.train.nn.layers.merging import Minimum as Minimum
from pullback.train.nn.layers.merging import Multiply as Multiply
from pullback.train.nn.layers.merging import Subtract as Subtract
from pullback.train.nn.layers.normalization import BatchNormalization as BatchNormalization
from pullback.train.nn.layers.normalization import LayerNormalization as LayerNormalization
from pullback.train.nn.layers.pooling import AveragePooling1d as AveragePooling1d
from pullback.train.nn.layers.pooling import AveragePooling2d as AveragePooling2d
from pullback.train.nn.layers.pooling import GlobalAveragePooling1d as GlobalAveragePooling1d
from pullback.train.nn.layers.pooling import GlobalAveragePooling2d as GlobalAveragePooling2d
from pullback.train.nn.layers.pooling import GlobalMaxPooling1d as GlobalMaxPooling1d
from pullback.train.nn.layers.pooling import GlobalMaxPooling2d as GlobalMaxPooling2d
from pullback.train.nn.layers.pooling import MaxPooling1d as MaxPooling1d
from pullback.train.nn.layers.pooling import MaxPooling2d as MaxPooling2d
from pullback.train.nn.layers.pooling import UpSampling2d as UpSampling2d
from pullback.train.nn.layers.pooling import ZeroPadding2d as ZeroPadding2d
from pullback.train.nn.layers.recurrent import Bidirectional as Bidirectional
from pullback.train.nn.layers.recurrent import Gru as Gru
from pullback.train.nn.layers.recurrent import Lstm as Lstm
from pullback.train.nn.layers.recurrent import SimpleRnn as SimpleRnn
from pullback.train.nn.layers.recurrent import TimeDistributed as TimeDistributed

attention, multi_head_attention, positional_encoding = Attention, MultiHeadAttention, PositionalEncoding
conv1d, conv2d, conv2d_transpose = Conv1d, Conv2d, Conv2dTranspose
depthwise_conv2d, separable_conv2d = DepthwiseConv2d, SeparableConv2d
activation, dense, dropout = Activation, Dense, Dropout
embedding, flatten, gaussian_noise = Embedding, Flatten, GaussianNoise
permute, repeat_vector, reshape = Permute, RepeatVector, Reshape
add, average, concatenate = Add, Average, Concatenate
dot, maximum, minimum = Dot, Maximum, Minimum
multiply, subtract = Multiply, Subtract
batch_normalization, layer_normalization = BatchNormalization, LayerNormalization
average_pooling1d, average_pooling2d, global_average_pooling1d = (
    AveragePooling1d,
    AveragePooling2d,
    GlobalAveragePooling1d,
)
global_average_pooling2d, global_max_pooling1d, global_max_pooling2d = (
    GlobalAveragePooling2d,
    GlobalMaxPooling1d,
    GlobalMaxPooling2d,
)
max_pooling1d, max_pooling2d, up_sampling2d = MaxPooling1d, MaxPooling2d, UpSampling2d
zero_padding2d = ZeroPadding2d
bidirectional, gru, lstm = Bidirectional, Gru, Lstm
simple_rnn, time_distributed = SimpleRnn, TimeDistributed
