"""A model that was trained here runs in a page, by TensorFlow.js."""

from __future__ import annotations

import json
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from browser import run_at
from exhaustive import DOWNLOADS
from tfjs_package import find_node_modules

import pullback as pb

PAGE = '<!doctype html><link rel="icon" href="data:,"><script src="tf.min.js"></script>'
PREDICT = """
    await tf.setBackend("cpu");
    const model = await tf.loadLayersModel("model.json"), x = await (await fetch("inputs.json")).json();
    return await model.predict(tf.tensor(x)).array();
"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.mark.skipif(not DOWNLOADS, reason="downloads TensorFlow.js: runs with PULLBACK_TEST_DOWNLOADS=1 and --all")
def test_saved_model_predicts_same_numbers_in_tensorflow_js_in_chromium(tmp_path: Path) -> None:
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
        predicted = run_at(f"http://127.0.0.1:{server.server_port}/index.html", PREDICT)
    finally:
        server.shutdown()
        server.server_close()
    np.testing.assert_allclose(predicted, model.predict(x), rtol=1e-6, atol=1e-6)
