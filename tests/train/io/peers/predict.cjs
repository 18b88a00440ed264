// Loads models that pullback wrote with the real TensorFlow.js and predicts: node predict.cjs FOLDER, where FOLDER has
// node_modules or NODE_PATH does. For each subfolder: model.json, inputs.json -> outputs.json.
const fs = require('fs');
const path = require('path');
const tf = require('@tensorflow/tfjs');

function readFiles(folder) {
  return {load: async () => {
    const json = JSON.parse(fs.readFileSync(path.join(folder, 'model.json')));
    const shards = json.weightsManifest.flatMap(group => group.paths.map(p => fs.readFileSync(path.join(folder, p))));
    const data = new Uint8Array(Buffer.concat(shards)).buffer;
    const specs = json.weightsManifest.flatMap(group => group.weights);
    return {modelTopology: json.modelTopology, weightSpecs: specs, weightData: data,
            trainingConfig: json.trainingConfig};
  }};
}

async function main(folder) {
  for (const name of fs.readdirSync(folder).sort()) {
    const inside = path.join(folder, name);
    if (!fs.existsSync(path.join(inside, 'inputs.json'))) continue;
    let result;
    try {
      const model = await tf.loadLayersModel(readFiles(inside));
      const inputs = JSON.parse(fs.readFileSync(path.join(inside, 'inputs.json')))
        .map(x => tf.tensor(x.values, x.shape, x.dtype));
      let made = model.predict(inputs.length === 1 ? inputs[0] : inputs);
      made = Array.isArray(made) ? made : [made];
      result = {outputs: made.map(y => ({shape: y.shape, values: Array.from(y.dataSync())}))};
      if (model.optimizer != null) result.optimizer = model.optimizer.getClassName();
    } catch (error) {
      result = {error: error.message};
    }
    fs.writeFileSync(path.join(inside, 'outputs.json'), JSON.stringify(result));
  }
}

main(process.argv[2]);
