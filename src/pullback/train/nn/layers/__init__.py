"""Layers, by TensorFlow.js's and Keras's names: ``pb.layers.dense(10, activation="relu")``."""

from __future__ import annotations

from pullback.names.answers import install_answers as _install_answers
from pullback.train.arguments import describe_arguments as _describe_arguments
from pullback.train.nn.layers.activation_layers import *
from pullback.train.nn.layers.attention import *
from pullback.train.nn.layers.audio_preprocessing import *
from pullback.train.nn.layers.base import Layer as Layer
from pullback.train.nn.layers.borders import *
from pullback.train.nn.layers.cells import *
from pullback.train.nn.layers.color_preprocessing import *
from pullback.train.nn.layers.conv_recurrent import *
from pullback.train.nn.layers.convolution import *
from pullback.train.nn.layers.dense import *
from pullback.train.nn.layers.general import *
from pullback.train.nn.layers.image_preprocessing import *
from pullback.train.nn.layers.merging import *
from pullback.train.nn.layers.noise import *
from pullback.train.nn.layers.normalization import *
from pullback.train.nn.layers.pooling import *
from pullback.train.nn.layers.preprocessing import *
from pullback.train.nn.layers.recurrent import *
from pullback.train.nn.layers.shaping import *
from pullback.train.nn.layers.shared_arguments import SHARED_ARGUMENTS as _SHARED_ARGUMENTS
from pullback.train.nn.layers.symbolic import *
from pullback.train.nn.layers.wrappers import *

# All names of each layer.
activation = Activation
activity_regularization = ActivityRegularization
adaptive_average_pooling1d = AdaptiveAveragePooling1d
adaptive_average_pooling2d = AdaptiveAveragePooling2d
adaptive_average_pooling3d = AdaptiveAveragePooling3d
adaptive_max_pooling1d = AdaptiveMaxPooling1d
adaptive_max_pooling2d = AdaptiveMaxPooling2d
adaptive_max_pooling3d = AdaptiveMaxPooling3d
add = Add
additive_attention = AdditiveAttention
alpha_dropout = AlphaDropout
attention = Attention
auto_contrast = AutoContrast
average = Average
average_pooling1d = avg_pool1d = avg_pooling1d = AveragePooling1d
average_pooling2d = avg_pool2d = avg_pooling2d = AveragePooling2d
average_pooling3d = avg_pool3d = avg_pooling3d = AveragePooling3d
batch_normalization = BatchNormalization
bidirectional = Bidirectional
category_encoding = CategoryEncoding
center_crop = CenterCrop
concatenate = Concatenate
conv1d = convolution1d = Conv1d
conv1d_transpose = convolution1d_transpose = Conv1dTranspose
conv2d = convolution2d = Conv2d
conv2d_transpose = convolution2d_transpose = Conv2dTranspose
conv3d = convolution3d = Conv3d
conv3d_transpose = convolution3d_transpose = Conv3dTranspose
conv_lstm1d = ConvLstm1d
conv_lstm2d = ConvLstm2d
conv_lstm2d_cell = ConvLstm2dCell
conv_lstm3d = ConvLstm3d
cropping1d = Cropping1d
cropping2d = Cropping2d
cropping3d = Cropping3d
dense = Dense
depthwise_conv1d = DepthwiseConv1d
depthwise_conv2d = DepthwiseConv2d
discretization = Discretization
dot = Dot
dropout = Dropout
einsum_dense = EinsumDense
elu = Elu
embedding = Embedding
flatten = Flatten
gaussian_dropout = GaussianDropout
gaussian_noise = GaussianNoise
global_average_pooling1d = global_avg_pool1d = GlobalAveragePooling1d
global_average_pooling2d = global_avg_pool2d = GlobalAveragePooling2d
global_average_pooling3d = global_avg_pool3d = GlobalAveragePooling3d
global_max_pooling1d = global_max_pool1d = GlobalMaxPooling1d
global_max_pooling2d = global_max_pool2d = GlobalMaxPooling2d
global_max_pooling3d = global_max_pool3d = GlobalMaxPooling3d
group_normalization = GroupNormalization
group_query_attention = GroupQueryAttention
gru = Gru
gru_cell = GruCell
hashing = Hashing
identity = Identity
input_layer = InputLayer
integer_lookup = IntegerLookup
lambda_ = Lambda
layer_normalization = LayerNormalization
leaky_relu = LeakyRelu
lstm = Lstm
lstm_cell = LstmCell
masking = Masking
max_pooling1d = max_pool1d = MaxPooling1d
max_pooling2d = max_pool2d = MaxPooling2d
max_pooling3d = max_pool3d = MaxPooling3d
maximum = Maximum
mel_spectrogram = MelSpectrogram
minimum = Minimum
multi_head_attention = MultiHeadAttention
multiply = Multiply
normalization = Normalization
permute = Permute
position_embedding = PositionEmbedding
positional_encoding = PositionalEncoding
prelu = Prelu
random_brightness = RandomBrightness
random_color_degeneration = RandomColorDegeneration
random_contrast = RandomContrast
random_crop = RandomCrop
random_erasing = RandomErasing
random_flip = RandomFlip
random_grayscale = RandomGrayscale
random_hue = RandomHue
random_invert = RandomInvert
random_posterization = RandomPosterization
random_rotation = RandomRotation
random_saturation = RandomSaturation
random_sharpness = RandomSharpness
random_shear = RandomShear
random_translation = RandomTranslation
random_width = RandomWidth
random_zoom = RandomZoom
relu = Relu
repeat_vector = RepeatVector
rescaling = Rescaling
reshape = Reshape
resizing = Resizing
reversible_embedding = ReversibleEmbedding
rms_normalization = RmsNormalization
rnn = Rnn
separable_conv1d = separable_convolution1d = SeparableConv1d
separable_conv2d = separable_convolution2d = SeparableConv2d
simple_rnn = SimpleRnn
simple_rnn_cell = SimpleRnnCell
softmax = Softmax
solarization = Solarization
spatial_dropout1d = SpatialDropout1d
spatial_dropout2d = SpatialDropout2d
spatial_dropout3d = SpatialDropout3d
spectral_normalization = SpectralNormalization
stacked_rnn_cells = StackedRnnCells
string_lookup = StringLookup
subtract = Subtract
text_vectorization = TextVectorization
thresholded_relu = ThresholdedRelu
time_distributed = TimeDistributed
unit_normalization = UnitNormalization
up_sampling1d = UpSampling1d
up_sampling2d = UpSampling2d
up_sampling3d = UpSampling3d
wrapper = Wrapper
zero_padding1d = ZeroPadding1d
zero_padding2d = ZeroPadding2d
zero_padding3d = ZeroPadding3d

_describe_arguments({one for one in globals().values() if isinstance(one, type)}, _SHARED_ARGUMENTS)
_install_answers("pb.layers")
