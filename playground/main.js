// The page: an editor, examples, and the output of a worker in which Python runs.
import { examples } from "./examples.js";

const byId = id => document.getElementById(id);
const code = byId("code"), output = byId("output"), state = byId("state"), run = byId("run"), stop = byId("stop");
const FRAME = `
  :root { color-scheme: light dark; }
  body { margin: 0; background: #fff; color: #1b1b1b; font: 14px system-ui, sans-serif; }
  @media (prefers-color-scheme: dark) { body { background: #14161a; color: #e8e8e8; } }
  svg { max-width: 100%; height: auto; }`;
let worker, running = false;

function start() {
  worker = new Worker("worker.js");
  worker.onmessage = ({ data }) => {
    if (data.kind === "ready") { state.textContent = data.text; run.disabled = false; }
    else if (data.kind === "failed") { state.textContent = "Python could not be loaded: " + data.text; }
    else if (data.kind === "done") { finish("Done in " + data.text + " s."); }
    else show(data);
  };
  worker.onerror = event => { state.textContent = "Python could not be loaded: " + event.message; };
}

function finish(text) { running = false; run.disabled = false; stop.disabled = true; state.textContent = text; }

// Text is text; pictures and tables are shown in frames that may neither reach this page nor the network.
function show({ kind, text }) {
  if (kind === "text" || kind === "error") {
    const last = output.lastElementChild;
    if (last && last.className === kind && last.tagName === "PRE") { last.textContent += text; return; }
    const pre = document.createElement("pre");
    pre.className = kind;
    pre.textContent = text;
    output.append(pre);
    return;
  }
  const frame = document.createElement("iframe");
  frame.title = kind;
  frame.sandbox = "allow-scripts";
  const size = "<script>new ResizeObserver(() => parent.postMessage({ height: document.body.offsetHeight }, '*')).observe(document.body);<\/script>";
  frame.srcdoc = kind === "page" ? text
    : `<!doctype html><style>${FRAME}</style><body>${text}${size}</body>`;
  frame.style.height = kind === "page" ? "75vh" : "3rem";
  output.append(frame);
}
addEventListener("message", ({ source, data }) => {
  const frame = [...output.querySelectorAll("iframe")].find(f => f.contentWindow === source);
  if (frame && Number.isFinite(data.height)) frame.style.height = Math.min(data.height + 20, 1600) + "px";
});

run.addEventListener("click", () => {
  if (running || run.disabled) return;
  running = true; run.disabled = true; stop.disabled = false;
  output.replaceChildren();
  state.textContent = "Running …";
  worker.postMessage({ code: code.value });
});
stop.addEventListener("click", () => { worker.terminate(); finish("Stopped. Loading Python again …"); run.disabled = true; start(); });
byId("share").addEventListener("click", async () => {
  const bytes = new TextEncoder().encode(code.value);
  location.hash = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
  try { await navigator.clipboard.writeText(location.href); state.textContent = "The address is on the clipboard."; }
  catch { state.textContent = "The address of this page has the code in it."; }
});
function readHash() {
  try { return new TextDecoder().decode(Uint8Array.from(atob(location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0))); }
  catch { return ""; }
}
code.addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { run.click(); event.preventDefault(); }
});

const choice = byId("examples");
Object.keys(examples).forEach(name => choice.append(new Option(name, name)));
choice.addEventListener("change", () => { code.value = examples[choice.value]; });
code.value = readHash() || examples[choice.value];
start();
