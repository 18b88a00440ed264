// Records answers of TensorFlow.js layers; run in a folder with @tensorflow/tfjs 4.22: node record_tfjs.js > tfjs.json
// Inputs and weights are formulas of their shapes, which the test computes too; answers have 6 digits.
const tf = require(require.resolve('@tensorflow/tfjs', {paths: [process.cwd()]}));
const count = (shape) => shape.reduce((a, b) => a * b, 1);
const values = (shape, k = 0, scale = 1, add = 0) =>
  tf.tensor(Array.from({length: count(shape)}, (_, i) => Math.fround(Math.sin(i * 0.7 + k + 0.3) * scale) + add), shape);
const SEQ = [2, 5, 3], IMG = [2, 5, 6, 4], VOL = [1, 4, 4, 3, 2];
const FIRST = {dataFormat: 'channelsFirst'};
const CASES = [
  ['dense', {units: 3, activation: 'selu'}, [SEQ]],
  ['conv1d', {filters: 2, kernelSize: 2, padding: 'same', activation: 'gelu'}, [SEQ]],
  ['conv2d', {filters: 2, kernelSize: [2, 3], strides: [1, 2]}, [IMG]],
  ['conv2d', {filters: 2, kernelSize: 2, dilationRate: 2, activation: 'mish'}, [IMG]],
  ['conv2dTranspose', {filters: 2, kernelSize: 3, strides: 2, padding: 'same'}, [[1, 3, 4, 2]]],
  ['conv2dTranspose', {filters: 2, kernelSize: 2, strides: 1}, [[1, 3, 4, 2]]],
  ['conv3d', {filters: 2, kernelSize: 2}, [VOL]],
  ['conv3dTranspose', {filters: 2, kernelSize: 2, strides: 2}, [[1, 2, 2, 3, 2]]],
  ['depthwiseConv2d', {kernelSize: 2, depthMultiplier: 2}, [IMG]],
  ['separableConv2d', {filters: 3, kernelSize: 3, padding: 'same'}, [IMG]],
  ['averagePooling1d', {poolSize: 2}, [SEQ]],
  ['averagePooling2d', {poolSize: 2, strides: 1, padding: 'same'}, [IMG]],
  ['averagePooling3d', {poolSize: 2}, [VOL]],
  ['maxPooling1d', {poolSize: 3, strides: 1}, [SEQ]],
  ['maxPooling2d', {poolSize: [2, 3]}, [IMG]],
  ['maxPooling2d', {poolSize: 2, ...FIRST}, [[1, 2, 4, 5]]],
  ['maxPooling3d', {poolSize: 2}, [VOL]],
  ['globalAveragePooling1d', {}, [SEQ]],
  ['globalAveragePooling2d', FIRST, [IMG]],
  ['globalMaxPooling1d', {}, [SEQ]],
  ['globalMaxPooling2d', {}, [IMG]],
  ['upSampling2d', {size: [2, 3]}, [IMG]],
  ['zeroPadding2d', {padding: [[1, 0], [2, 1]]}, [IMG]],
  ['cropping2D', {cropping: [[1, 0], [2, 1]]}, [IMG]],
  ['batchNormalization', {}, [IMG]],
  ['layerNormalization', {axis: -1}, [SEQ]],
  ['simpleRNN', {units: 3, returnSequences: true, recurrentInitializer: 'glorotNormal'}, [SEQ]],
  ['lstm', {units: 2, recurrentActivation: 'hardSigmoid', recurrentInitializer: 'glorotNormal'}, [SEQ]],
  ['lstm', {units: 2, recurrentActivation: 'sigmoid', goBackwards: true, recurrentInitializer: 'zeros'}, [SEQ]],
  ['gru', {units: 2, recurrentActivation: 'hardSigmoid', recurrentInitializer: 'zeros'}, [SEQ]],
  ['convLstm2d', {filters: 2, kernelSize: 2, recurrentActivation: 'hardSigmoid', recurrentInitializer: 'zeros'},
    [[1, 3, 4, 4, 2]]],
  ['elu', {}, [SEQ]],
  ['leakyReLU', {alpha: 0.2}, [SEQ]],
  ['prelu', {sharedAxes: [1]}, [SEQ]],
  ['reLU', {maxValue: 0.5}, [SEQ]],
  ['softmax', {}, [SEQ]],
  ['thresholdedReLU', {theta: 0.3}, [SEQ]],
  ['masking', {maskValue: 0.5}, [SEQ]],
  ['permute', {dims: [2, 1]}, [SEQ]],
  ['repeatVector', {n: 3}, [[2, 4]]],
  ['rescaling', {scale: 2, offset: 0.5}, [SEQ]],
  ['add', {}, [SEQ, SEQ]],
  ['average', {}, [SEQ, SEQ]],
  ['concatenate', {axis: 1}, [SEQ, [2, 2, 3]]],
  ['dot', {axes: -1, normalize: true}, [[2, 4], [2, 4]]],
  ['maximum', {}, [SEQ, SEQ]],
  ['minimum', {}, [SEQ, SEQ]],
  ['multiply', {}, [SEQ, SEQ]],
  ...['relu6', 'hardSigmoid', 'softplus', 'softsign', 'swish', 'gelu_new', 'logSoftmax'].map(
    (activation) => ['activation', {activation}, [SEQ]]),
];
const snake = (s) => s.replace(/[A-Z]/g, (c) => '_' + c.toLowerCase());
const tidy = (t) => ({shape: t.shape, values: Array.from(t.dataSync(), (v) => Number(v.toPrecision(6)))});
// Not there, or wrong there: averages over the border count too much, and of enlarged images only the first is right.
const NO_GRADIENT = new Set(['masking', 'maxPooling3d', 'averagePooling2d', 'upSampling2d']);
const record = ([name, config, shapes]) => {
  const layer = tf.layers[name](config);
  const xs = shapes.map((s, i) => values(s, i));
  const run = (...xs) => layer.apply(xs.length > 1 ? xs : xs[0]);
  run(...xs);
  const old = layer.getWeights();
  if (old.length) layer.setWeights(old.map((w, i) => values(w.shape, 10 + i, 0.5, 0.1)));
  if (name === 'batchNormalization') {
    const now = layer.getWeights();
    now[3] = now[3].abs().add(0.5);
    layer.setWeights(now);
  }
  const outputs = [run(...xs)];
  let grads = xs.map(() => null);
  if (!NO_GRADIENT.has(name)) {
    try {
      grads = tf.grads((...xs) => {
        const y = run(...xs);
        return y.mul(tf.cos(tf.range(0, y.size)).reshape(y.shape)).sum();
      })(xs).map(tidy);
    } catch (error) {
      grads = xs.map(() => null);
    }
  }
  const keys = Object.keys(config).filter((k) => k !== 'cell' && !k.endsWith('Initializer'));
  const spelt = Object.fromEntries(keys.map((k) => [snake(k), config[k] === 'channelsFirst' ? 'channels_first' : config[k]]));
  return {layer: name, config: spelt, shapes, settings: {}, outputs: outputs.map(tidy), grads, after: null};
};
const out = CASES.flatMap((one) => {
  try {
    return [record(one)];
  } catch (error) {
    console.error(`${one[0]}: ${error.message}`);
    return [];
  }
});
console.log('[' + out.map((x) => JSON.stringify(x)).join(',\n') + ']');
