"""Records trainings by Keras 3 on torch: reads the cases in keras_fits.json and writes the file again with its answers.

KERAS_BACKEND=torch python record_keras_fits.py
"""

import json
from pathlib import Path

import keras
from fit_cases import make, run_fit

FILE = Path(__file__).parent / "keras_fits.json"


def find(kind, name):
    return getattr(keras.optimizers.schedules if kind == "schedules" else getattr(keras, kind), name)


def record(case):
    dtype = "int32" if case["kind"] == "tok" else "float32"
    layers = [make(find, "layers", one) for one in case["layers"]]
    model = keras.Sequential([keras.layers.Input(case["shape"], dtype=dtype), *layers])
    return {**case, "answer": run_fit(case, find, model, [w.path for w in model.weights])}


cases = [record({key: x for key, x in case.items() if key != "answer"}) for case in json.loads(FILE.read_text())]
FILE.write_text("[" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]\n")
