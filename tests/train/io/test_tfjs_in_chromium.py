"""A model that was trained here runs in a page: set ``PULLBACK_CHROMIUM=1`` to test it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tfjs_package import find_node_modules

import pullback as pb

PAGE = """<!doctype html><script src="tf.min.js"></script><pre id="out"></pre><script>
(async () => {
  await tf.setBackend('cpu');
  const model = await tf.loadLayersModel('model.json');
  const x = await (await fetch('inputs.json')).json();
  const y = model.predict(tf.tensor(x));
  document.getElementById('out').textContent = JSON.stringify(await y.array());
})().catch(error => { document.getElementById('out').textContent = String(error); });
</script>"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.mark.skipif(os.environ.get("PULLBACK_CHROMIUM") != "1", reason="runs where PULLBACK_CHROMIUM=1")
def test_trained_model_predicts_the_same_in_a_page(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("Chromium is not installed")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 8, 8, 1)).astype(np.float32)
    y = np.eye(2, dtype=np.float32)[(x.mean((1, 2, 3)) > 0).astype(int)]
    layers = pb.layers
    model = pb.sequential([
        layers.conv2d(4, 3, activation="relu", input_shape=[8, 8, 1]), layers.batch_normalization(),
        layers.max_pooling2d(), layers.flatten(), layers.dense(2, activation="softmax"),
    ])  # fmt: skip
    model.compile("adam", "categorical_crossentropy")
    model.fit(x, y, epochs=3, batch_size=8, verbose=0)
    model.save(tmp_path / "model.json")
    (tmp_path / "inputs.json").write_text(json.dumps(x.tolist()))
    (tmp_path / "index.html").write_text(PAGE)
    shutil.copy(find_node_modules() / "@tensorflow" / "tfjs" / "dist" / "tf.min.js", tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(tmp_path)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        command = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=30000", "--dump-dom", f"http://127.0.0.1:{server.server_port}/index.html",
        ]  # fmt: skip
        made = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    finally:
        server.shutdown()
        server.server_close()
    found = re.search(r'<pre id="out">(.*?)</pre>', made.stdout, re.DOTALL)
    assert found is not None
    np.testing.assert_allclose(json.loads(unescape(found.group(1))), model.predict(x), rtol=1e-6, atol=1e-6)
