// Python in a thread of its own, so that the page stays alive and an endless loop can be stopped.
importScripts("pyodide/pyodide.js");

const send = (kind, text) => postMessage({ kind, text });
const fetchBytes = async path => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(path + ": " + answer.status);
  return new Uint8Array(await answer.arrayBuffer());
};
const loaded = (async () => {
  const [python, numpy, library, bootstrap] = await Promise.all([
    loadPyodide({ indexURL: "pyodide/" }), fetchBytes("numpy.tar.gz"), fetchBytes("pullback.whl"), fetch("bootstrap.py").then(r => r.text()),
  ]);
  python.unpackArchive(numpy, "gztar", { extractDir: "/numpy" });
  python.unpackArchive(library, "zip", { extractDir: "/pullback" });
  python.setStdout({ write: bytes => { send("text", new TextDecoder().decode(bytes)); return bytes.length; } });
  python.setStderr({ write: bytes => { send("error", new TextDecoder().decode(bytes)); return bytes.length; } });
  python.globals.set("send", send);
  python.runPython(bootstrap);
  return python;
})();
loaded.then(python => send("ready", python.runPython("describe()")), error => send("failed", String(error)));

onmessage = async ({ data }) => {
  const python = await loaded;
  const begin = performance.now();
  python.globals.get("run_code")(data.code);
  send("done", ((performance.now() - begin) / 1000).toFixed(2));
};
