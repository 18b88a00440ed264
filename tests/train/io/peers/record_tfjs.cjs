// Records models of TensorFlow.js in its files, with inputs and predictions, for tests that read them without it.
// NODE_PATH=FOLDER_WITH_TFJS/node_modules node record_tfjs.cjs OUT && (cd OUT && zip -9 -r ../tfjs_models.zip .)
const fs = require('fs');
const path = require('path');
const tf = require('@tensorflow/tfjs');
const L = tf.layers;

let state = 1;
function random() {  // the same numbers at every run
  state = (state * 48271) % 2147483647;
  return state / 2147483647;
}

function quantize(kind, values) {
  if (kind === 'float16') {
    const half = new Uint16Array(values.length);
    for (let i = 0; i < values.length; i++) {  // multiples of 1/64 below 2, which a half has exactly
      const n = Math.round(values[i] * 64);
      const size = Math.abs(n);
      if (size === 0) continue;
      const power = Math.floor(Math.log2(size));
      half[i] = (n < 0 ? 0x8000 : 0) | ((power - 6 + 15) << 10) | ((size - 2 ** power) * 2 ** (10 - power));
    }
    return [half, {dtype: 'float16'}];
  }
  const top = kind === 'uint8' ? 255 : 65535;
  const low = Math.min(...values), scale = (Math.max(...values) - low) / top || 1;
  const made = Array.from(values, x => Math.round((x - low) / scale));
  return [kind === 'uint8' ? Uint8Array.from(made) : Uint16Array.from(made), {dtype: kind, min: low, scale}];
}

async function write(folder, model, {quantization = null, shards = 1, groups = 1, trained = false} = {}) {
  fs.mkdirSync(folder, {recursive: true});
  let art;
  const handler = tf.io.withSaveHandler(async made => {
    art = made;
    return {modelArtifactsInfo: {dateSaved: new Date(), modelTopologyType: 'JSON'}};
  });
  await model.save(handler, {includeOptimizer: trained});
  const topology = art.modelTopology;
  const data = art.weightData;
  let at = 0;
  const entries = art.weightSpecs.map(spec => {
    const count = spec.shape.reduce((a, b) => a * b, 1);
    const values = new (spec.dtype === 'int32' ? Int32Array : Float32Array)(data.slice(at, at + 4 * count));
    at += 4 * count;
    if (!quantization || spec.dtype === 'int32') return [spec, Buffer.from(values.buffer)];
    const [small, how] = quantize(quantization, values);
    return [{...spec, quantization: {...how, original_dtype: 'float32'}}, Buffer.from(small.buffer)];
  });
  const manifest = [];
  const each = Math.ceil(entries.length / groups);
  for (let g = 0; g < groups; g++) {
    const mine = entries.slice(g * each, (g + 1) * each);
    const bytes = Buffer.concat(mine.map(one => one[1]));
    const size = Math.ceil(bytes.length / shards);
    const paths = [];
    for (let s = 0; s < shards; s++) {
      paths.push(`group${g + 1}-shard${s + 1}of${shards}.bin`);
      fs.writeFileSync(path.join(folder, paths[s]), bytes.subarray(s * size, (s + 1) * size));
    }
    manifest.push({paths, weights: mine.map(one => one[0])});
  }
  const json = {format: art.format, generatedBy: art.generatedBy, convertedBy: null, modelTopology: topology,
                weightsManifest: manifest};
  if (art.trainingConfig) json.trainingConfig = art.trainingConfig;
  fs.writeFileSync(path.join(folder, 'model.json'), JSON.stringify(json));
  const specs = entries.map(one => one[0]);
  const weightData = new Uint8Array(Buffer.concat(entries.map(one => one[1]))).buffer;
  const again = await tf.loadLayersModel(tf.io.fromMemory({modelTopology: topology, weightSpecs: specs, weightData}));
  const inputs = again.inputs.map(x => {
    const shape = [2, ...x.shape.slice(1).map(n => n || 4)];
    const count = shape.reduce((a, b) => a * b, 1);
    const whole = again.layers.some(layer => layer.getClassName() === 'Embedding');
    return {shape, values: Array.from({length: count}, () => whole ? Math.floor(random() * 7) : random() * 2 - 1)};
  });
  const tensors = inputs.map(x => tf.tensor(x.values, x.shape));
  const made = again.predict(tensors.length === 1 ? tensors[0] : tensors);
  const outputs = (Array.isArray(made) ? made : [made]).map(y => ({shape: y.shape, values: Array.from(y.dataSync())}));
  fs.writeFileSync(path.join(folder, 'recorded.json'), JSON.stringify({inputs, outputs}));
}

function fill(model) {
  model.setWeights(model.getWeights().map((w, i) => {
    const positive = model.weights[i].name.includes('variance');
    const values = Array.from({length: w.size}, () => Math.round((positive ? random() + 0.2 : random() - 0.5) * 64) / 64);
    return tf.tensor(values, w.shape, w.dtype);
  }));
  return model;
}

const stack = (...layers) => fill(tf.sequential({layers}));

async function main(out) {
  const dense = () => stack(L.dense({units: 4, activation: 'relu', inputShape: [3], kernelRegularizer: 'l1l2'}),
                            L.batchNormalization(), L.dense({units: 2, activation: 'softmax'}));
  await write(`${out}/dense`, dense());
  for (const quantization of ['uint8', 'uint16', 'float16']) {
    await write(`${out}/dense_${quantization}`, dense(), {quantization});
  }
  await write(`${out}/dense_shards`, dense(), {shards: 3, groups: 2});
  const trained = dense();
  trained.compile({optimizer: tf.train.adam(0.01), loss: 'categoricalCrossentropy', metrics: ['accuracy']});
  await trained.fit(tf.ones([4, 3]), tf.ones([4, 2]), {verbose: 0});
  await write(`${out}/trained`, trained, {trained: true});
  await write(`${out}/image`, stack(
    L.conv2d({filters: 3, kernelSize: 3, padding: 'same', activation: 'elu', inputShape: [8, 8, 2]}),
    L.maxPooling2d({poolSize: 2}), L.depthwiseConv2d({kernelSize: 2, depthMultiplier: 2}), L.zeroPadding2d({padding: [[1, 0], [0, 1]]}),
    L.upSampling2d({size: [2, 1]}), L.conv2dTranspose({filters: 2, kernelSize: 2, strides: 2}),
    L.averagePooling2d({poolSize: [3, 2]}), L.layerNormalization(), L.globalAveragePooling2d({})));
  await write(`${out}/sequence`, stack(
    L.conv1d({filters: 3, kernelSize: 2, inputShape: [6, 2]}),
    L.bidirectional({layer: L.lstm({units: 2, returnSequences: true}), mergeMode: 'concat'}),
    L.gru({units: 3, returnSequences: true}), L.timeDistributed({layer: L.dense({units: 2})}),
    L.simpleRNN({units: 2, returnSequences: true}), L.dropout({rate: 0.5}), L.permute({dims: [2, 1]}), L.flatten(),
    L.repeatVector({n: 2}), L.reshape({targetShape: [4, -1]}), L.globalMaxPooling1d()));
  await write(`${out}/words`, stack(
    L.embedding({inputDim: 7, outputDim: 3, inputLength: 4}), L.lstm({units: 2, returnSequences: true}),
    L.maxPooling1d({poolSize: 2}), L.averagePooling1d({poolSize: 2}), L.flatten(), L.activation({activation: 'hardSigmoid'})));
  const inner = tf.sequential({name: 'inner', layers: [L.dense({units: 2, inputShape: [3], name: 'hidden'}), L.batchNormalization()]});
  const z = tf.input({shape: [3]});
  const graph = tf.model({inputs: z, outputs: [L.dense({units: 2}).apply(z), L.dense({units: 3}).apply(z)], name: 'graph'});
  const x = tf.input({shape: [3], name: 'x'}), y = tf.input({shape: [3], name: 'y'});
  const shared = L.dense({units: 3, activation: 'tanh', name: 'shared'});
  const a = shared.apply(x), b = shared.apply(y);
  const [left, right] = graph.apply(b);
  await write(`${out}/branches`, fill(tf.model({inputs: [x, y], outputs: [
    L.concatenate({axis: -1}).apply([a, b, right]), L.add().apply([inner.apply(a), left]),
    L.dot({axes: -1, normalize: true}).apply([a, b]),
    L.average().apply([L.multiply().apply([a, b]), L.maximum().apply([a, x]), L.minimum().apply([b, y])])]})));
  const s = tf.input({shape: [4, 2]});
  const [all, h, c] = L.lstm({units: 3, returnSequences: true, returnState: true}).apply(s);
  await write(`${out}/states`, fill(tf.model({inputs: s, outputs: [L.lstm({units: 3}).apply([all, h, c]), h]})));
  await write(`${out}/nested`, stack(L.timeDistributed({layer: tf.sequential({layers: [L.dense({units: 2, inputShape: [3]})]}), inputShape: [4, 3]}), L.flatten()));
}

main(process.argv[2]);
