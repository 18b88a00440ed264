// Fills in image.jsonl what TensorFlow.js (CPU, float32) answers to its calls:
//   npm install @tensorflow/tfjs-core@4.22 @tensorflow/tfjs-backend-cpu@4.22 && node image_reference.cjs
const fs = require("fs");
const path = require("path");
const tf = require("@tensorflow/tfjs-core");
require("@tensorflow/tfjs-backend-cpu");

const file = path.join(__dirname, "image.jsonl");
const rounded = (t) => (t.dtype === "float32" ? (v) => Math.round(v * 1e6) / 1e6 : (v) => v);
const plain = (t) => ({values: Array.from(t.dataSync()).map(rounded(t)), shape: t.shape, dtype: t.dtype});

tf.setBackend("cpu").then(() => {
  const lines = fs.readFileSync(file, "utf8").trim().split("\n").map((line) => {
    const {op, args} = JSON.parse(line);
    const given = args.map((a) => (a && a.values ? tf.tensor(a.values, a.shape, a.dtype) : a));
    const result = op.split(".").reduce((found, name) => found[name], tf)(...given);
    const want = (result instanceof tf.Tensor ? [result] : Object.values(result)).map(plain);
    return JSON.stringify({op, args, want});
  });
  fs.writeFileSync(file, lines.join("\n") + "\n");
});
