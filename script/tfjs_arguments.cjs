// Prints the layers of TensorFlow.js and the arguments that their configs have, as JSON.
// Run where @tensorflow/tfjs is installed: node script/tfjs_arguments.cjs
const {createRequire} = require('module');
const tf = createRequire(process.cwd() + '/')('@tensorflow/tfjs');
const map = tf.serialization.SerializationMap.getMap().classNameMap;
const snake = s => s.replace(/(.)([A-Z][a-z0-9]+)/g, '$1_$2').replace(/([a-z])([A-Z])/g, '$1_$2').toLowerCase();
const cell = tf.layers.lstmCell({units: 1});
const needed = {
  Dot: {axes: 1}, RNN: {cell}, StackedRNNCells: {cells: [cell]}, InputLayer: {inputShape: [1]},
  Bidirectional: {layer: tf.layers.lstm({units: 1}), mergeMode: 'concat'},
  TimeDistributed: {layer: tf.layers.dense({units: 1})}, Cropping2D: {cropping: [[0, 0], [0, 0]]},
};
const every = {
  units: 1, filters: 1, rate: 0.5, stddev: 0.5, n: 1, dims: [1], targetShape: [1], inputDim: 1, outputDim: 1,
  activation: 'relu', factor: 0.5, numTokens: 3, height: 1, width: 1, scale: 1, offset: 0,
};
// Arguments that configs have only if they were given.
const further = {
  Embedding: ['mask_zero', 'input_length'], Dropout: ['noise_shape', 'seed'], AlphaDropout: ['noise_shape', 'seed'],
  SpatialDropout1D: ['seed'], LSTM: ['unit_forget_bias', 'implementation'], GRU: ['implementation'],
  LSTMCell: ['unit_forget_bias', 'implementation'], GRUCell: ['implementation'], ReLU: ['max_value'],
  ConvLSTM2D: ['unit_forget_bias'], SeparableConv2D: ['depth_multiplier'], Activation: ['activation'], RNN: ['cell'],
  Flatten: ['data_format'],
};
const found = {};
for (const [name, [kind]] of Object.entries(map)) {
  if (!(kind.prototype instanceof tf.layers.Layer) || ['Model', 'Functional', 'Sequential'].includes(name)) continue;
  const size = /3D/.test(name) ? [1, 1, 1] : /1D/.test(name) ? 1 : [1, 1];
  const given = Object.assign({}, every, /Conv/.test(name) ? {kernelSize: size} : {}, needed[name]);
  if (name === 'Softmax' || /Pooling|Normalization|Sampling|Padding/.test(name)) delete given.scale;
  const config = new kind(given).getConfig();
  found[name] = [...new Set([...Object.keys(config).map(snake), ...(further[name] || [])])]
    .filter(key => !['name', 'trainable', 'batch_input_shape', 'dtype'].includes(key)).sort();
}
found.RNN = ['cell', 'go_backwards', 'return_sequences', 'return_state', 'stateful', 'unroll'];
console.log(JSON.stringify(found));
