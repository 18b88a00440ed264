"""Names from other libraries: functions, methods and keyword arguments are answered with what they are here."""

from __future__ import annotations

import copy
import doctest
import importlib
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, MissingNameError, PullbackError
from pullback.names.table import ALIASES, FUNCTIONS, FURTHER, KEYWORDS, METHODS, MODULES, UNNEEDED_KEYWORDS

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {
    "Tensor": pb.Tensor,
    "Layer": pb.layers.Layer,
    "Optimizer": pb.train.Optimizer,
    "GradientTape": pb.GradientTape,
    "Dataset": pb.data.Dataset,
}
MEANT = {
    "pb": pb,
    "np": np,
    "x": pb.Tensor,
    "model": type(pb.sequential()),
    "optimizer": pb.train.Optimizer,
    "tape": pb.GradientTape,
    "dataset": pb.data.Dataset,
}
OURS = re.compile(rf"(?<![\w.])({'|'.join(MEANT)})\.([A-Za-z_][\w.]*\w|[A-Za-z])")
BY_NAME = {name: answer for names in FUNCTIONS.values() for name, answer in names.items()} | FURTHER
ANSWERS = [*BY_NAME.values(), *(a for names in METHODS.values() for a in names.values()), *UNNEEDED_KEYWORDS.values()]


def parameters() -> set[str]:
    """Return every keyword that some public function, class or method takes."""
    found = set()
    for module in map(importlib.import_module, MODULES.values()):
        for name in getattr(module, "__all__", None) or dir(module):
            thing = getattr(module, name)
            made = [thing, *vars(thing).values()] if inspect.isclass(thing) else [thing]
            for function in (f for f in made if callable(f) and not inspect.ismodule(f)):
                try:
                    found.update(inspect.signature(function).parameters)
                except (ValueError, TypeError):
                    continue
    for method in (pb.Model.fit, pb.Model.compile):
        found.update(inspect.signature(method).parameters)
    return found | {*pb.train.optim.step.OptimizerOptions.__annotations__}


# ---- the table is true


@pytest.mark.parametrize("answer", sorted(set(ANSWERS)))
def test_names_suggested_by_errors_exist(answer: str) -> None:
    for start, path in OURS.findall(answer):
        thing = MEANT[start]
        for name in path.split("."):
            assert hasattr(thing, name), f"{start}.{path} in {answer!r}"
            thing = getattr(thing, name)
    for kind in re.findall(r"pb\.layers\.activation\('(\w+)'\)", answer):
        pb.layers.activation(kind)


def test_keywords_suggested_by_errors_exist() -> None:
    ours = parameters() | {"argnums"}
    assert not {here for names in KEYWORDS.values() for here in names} - ours


def test_table_of_foreign_names_has_no_existing_names() -> None:
    assert not [name for name in BY_NAME if "." not in name and hasattr(pb, name)]
    there = [name for name in BY_NAME if "." in name]
    assert not [name for name in there if hasattr(getattr(pb, name.split(".")[0]), name.split(".")[1])]
    assert not [(kind, name) for kind, names in METHODS.items() for name in names if hasattr(CLASSES[kind], name)]
    assert not [name for name in METHODS["Layer"] if hasattr(MEANT["model"], name)]


def test_names_in_table_of_foreign_names_are_unique() -> None:
    names = [name for library in FUNCTIONS.values() for name in library] + [*FURTHER]
    assert len(names) == len(set(names))


def test_names_page_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "script" / "names_table.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


# ---- functions


@pytest.mark.parametrize(("there", "here"), ALIASES.items())
def test_aliases_of_gradient_functions(there: str, here: str) -> None:
    assert getattr(pb, there) is getattr(pb, here)
    assert there not in dir(pb)


def test_tensorflow_js_spelling_of_gradients() -> None:
    x = pb.tensor1d([1.0, 2.0])
    assert pb.valueAndGrad(lambda x: x.square())(x).grad.tolist() == [2, 4]
    value, grads = pb.valueAndGrads(lambda a, b: a.mul(b))([x, x])
    assert (value.tolist(), grads[0].tolist()) == ([1, 4], [1, 2])
    own = pb.customGrad(lambda x, save: (save([x]), (x.square(), lambda dy, saved: dy.mul(saved[0].abs())))[1])
    assert pb.grad(lambda x: own(x))(x).tolist() == [1, 2]
    v = pb.variable(3.0, name="names/v")
    assert pb.variableGrads(lambda: v.square()).grads["names/v"].item() == 6


@pytest.mark.parametrize(
    ("name", "answer"),
    {
        "jit": "pb.jit is pb.compile.",
        "reduce_sum": "pb.reduce_sum is pb.sum.",
        "tidy": "pb.tidy is not needed: memory is Python's",
        "dispose": "pb.dispose is not needed: memory is Python's",
        "memory": "pb.memory is not needed: memory is Python's",
        "dispose_variables": "pb.dispose_variables is not needed: memory is Python's",
        "set_backend": "pb.set_backend is not needed",
        "no_grad": "pb.no_grad is not needed: nothing is recorded outside pb.grad",
        "backward": r"pb.backward is pb.grad\(f\)\(x\), or tape.gradient\(y, x\)",
        "requires_grad": "pb.requires_grad is not needed",
        "elementwise_grad": "pb.elementwise_grad is pb.grad",
        "jacfwd": r"pb.jacfwd is pb.jacobian\(f, mode='forward'\).",
        "float32": "pb.float32 is NumPy's: np.float32, or the text 'float32'.",
        "logSumExp": "pb.logSumExp is pb.log_sum_exp.",
        "topkAsync": "pb.topkAsync is pb.topk.",
        "whereAsync": r"pb.whereAsync is np.argwhere\(x\).",
        "meanSquaredError": "pb.meanSquaredError is pb.losses.mean_squared_error.",
        "Adam": "pb.Adam is pb.train.adam.",
        "Dense": "pb.Dense is pb.layers.Dense.",
        "dense": "pb.dense is pb.layers.dense.",
        "LSTM": "pb.LSTM is pb.layers.lstm.",
        "interp": "pb.interp is np.interp: NumPy's functions take tensors",
        "sofmax": "Did you mean pb.softmax",
        "grda": "Did you mean pb.grad",
        "zzzzzz": r"dir\(pb\) lists its names.",
    }.items(),
)
def test_missing_name_error(name: str, answer: str) -> None:
    assert not hasattr(pb, name)
    with pytest.raises(AttributeError, match=rf"module 'pullback' has no attribute '{name}'. {answer}") as caught:
        getattr(pb, name)
    assert isinstance(caught.value, PullbackError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("module", "name", "answer"),
    [
        (pb.train, "SGD", "pb.train.SGD is pb.train.sgd."),
        (pb.train, "adma", "Did you mean pb.train.adam"),
        (pb.train, "jit", "pb.train.jit is pb.compile."),
        (pb.layers, "Linear", "pb.layers.Linear is pb.layers.dense."),
        (pb.layers, "dens", "Did you mean pb.layers.dense"),
        (pb.layers, "Conv2D", "pb.layers.Conv2D is pb.layers.conv2d."),
        (pb.losses, "meanSquaredError", "pb.losses.meanSquaredError is pb.losses.mean_squared_error."),
        (pb.losses, "mean_square_error", "Did you mean pb.losses.mean_squared_error"),
        (pb.metrics, "binaryAccuracy", "pb.metrics.binaryAccuracy is pb.metrics.binary_accuracy."),
        (pb.random, "PRNGKey", "pb.random.PRNGKey is not needed"),
        (pb.random, "randomNormal", "pb.random.randomNormal is pb.random.random_normal."),
        (pb.data, "from_tensor_slices", "pb.data.from_tensor_slices is pb.data.Dataset.from_arrays."),
        (pb.linalg, "inverse", "pb.linalg.inverse is pb.linalg.inv."),
        (pb.linalg, "matmul", "pb.linalg.matmul is pb.matmul."),
        (pb.image, "resizeBilinear", "pb.image.resizeBilinear is pb.image.resize_bilinear."),
        (pb.callbacks, "earlyStopping", "pb.callbacks.earlyStopping is pb.callbacks.early_stopping."),
        (pb.initializers, "heNormal", "pb.initializers.heNormal is pb.initializers.he_normal."),
        (pb.regularizers, "L1L3", "Did you mean pb.regularizers.L1L2"),
        (pb.signal, "hannWindow", "pb.signal.hannWindow is pb.signal.hann_window."),
        (pb.spectral, "FFT", "pb.spectral.FFT is pb.spectral.fft."),
        (pb.special, "gamaln", "Did you mean pb.special.gammaln"),
        (pb.errors, "ShapError", "Did you mean pb.errors.ShapeError"),
    ],
)
def test_missing_name_error_in_modules(module: object, name: str, answer: str) -> None:
    with pytest.raises(AttributeError, match=answer):
        getattr(module, name)
    assert not hasattr(module, name)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("from pullback import jit", "cannot import name 'jit' from 'pullback'. pb.jit is pb.compile."),
        ("from pullback import grad, grda", "cannot import name 'grda' from 'pullback'. Did you mean pb.grad"),
        ("from pullback.train import SGD", "cannot import name 'SGD' from 'pullback.train'. .* is pb.train.sgd."),
    ],
)
def test_missing_import_error(statement: str, message: str) -> None:
    with pytest.raises(ImportError, match=message) as caught:
        exec(statement, {})
    assert isinstance(caught.value, PullbackError)


def test_hasattr_probes_import_nothing() -> None:
    code = (
        "import sys, pullback as pb; assert not hasattr(pb, 'nonsense') and not hasattr(pb, '_repr_html_');"
        "assert 'pullback.train' not in sys.modules;"
        "import pullback.train as t; assert not hasattr(t, '__wrapped__') and not hasattr(t, 'jit')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for probe in ("__wrapped__", "_repr_html_", "_ipython_display_", "__path_hook__"):
        with pytest.raises(AttributeError) as caught:
            getattr(pb.losses, probe)
        assert str(caught.value) == f"module 'pullback.ops.losses' has no attribute '{probe}'"
    assert doctest.DocTestFinder().find(pb.errors)
    assert dict(inspect.getmembers(pb))["grad"] is pb.grad


# ---- methods


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda x: x.matMul(x), "'Tensor' object has no attribute 'matMul'. x.matMul is x.mat_mul."),
        (lambda x: x.as1D(), "x.as1D is x.as1d."),
        (lambda x: x.backward(), r"x.backward is pb.grad\(f\)\(x\), or tape.gradient\(y, x\)"),
        (lambda x: x.detach(), r"x.detach is pb.stop_gradient\(x\)."),
        (lambda x: x.cpu(), "x.cpu is not needed"),
        (lambda x: x.requires_grad, "x.requires_grad is not needed"),
        (lambda x: setattr(x, "requires_grad", True), "x.requires_grad is not needed"),
        (lambda x: x.unsqueeze(0), "x.unsqueeze is x.expand_dims."),
        (lambda x: x.dataSync(), r"x.dataSync is x.numpy\(\)."),
        (lambda x: x.array_sync(), r"x.array_sync is x.tolist\(\)."),
        (lambda x: x.buffer(), r"x.buffer is x.numpy\(\)"),
        (lambda x: pb.variable(1.0).assignAdd(1.0), "'Variable' object .* x.assignAdd is x.assign_add."),
        (lambda x: pb.sequential().parameters(), "model.parameters is model.trainable_variables."),
        (lambda x: pb.sequential().fitDataset(x), "model.fitDataset is model.fit_dataset."),
        (lambda x: pb.layers.dense(1).getWeights(), "'Dense' object .* model.getWeights is model.get_weights."),
        (lambda x: pb.train.sgd(0.1).step(), r"optimizer.step is optimizer.minimize\(f\)"),
        (lambda x: pb.train.sgd(0.1).applyGradients({}), "optimizer.applyGradients is optimizer.apply_gradients."),
        (lambda x: pb.GradientTape().gradients(x, x), r"tape.gradients is tape.gradient\(y, x\)."),
        (lambda x: pb.data.Dataset.from_tensor_slices(x), "pb.data.Dataset.from_arrays."),
    ],
)
def test_missing_method_error(call, answer: str) -> None:
    for x in (pb.tensor([1.0, 2.0]), pb.variable([1.0, 2.0])):
        with pytest.raises(MissingNameError, match=answer.replace("'Tensor'", f"'{type(x).__name__}'")):
            call(x)
    with pytest.raises(MissingNameError, match=re.sub("'Tensor' object", "object", answer)):
        pb.grad(lambda x: call(x) * 1.0)(np.ones(2))


def test_missing_methods_are_hidden_from_dir() -> None:
    x, model = pb.tensor([1.0]), pb.sequential([pb.layers.dense(1)])
    for thing, name in ((x, "detach"), (x, "matMul"), (model, "parameters"), (model, "fitDataset")):
        assert not hasattr(thing, name)
        assert name not in dir(thing)
    assert "mat_mul" in dir(x)
    assert "fit_dataset" in dir(model)
    assert not hasattr(x, "_repr_latex_")
    copy.deepcopy(model)
    model.parameters = [1]  # an attribute of one's own is as ever
    assert model.parameters == [1]

    class Own(pb.Model):
        def train(self) -> str:
            return "own"

    assert Own().train() == "own"


# ---- keyword arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: pb.layers.dense(unit=3), r"Dense\(\) got an unexpected keyword argument 'unit'. Did you mean 'unit"),
        (lambda x: pb.layers.dense(units=3, inputShape=[2]), "'inputShape'. It is 'input_shape' here."),
        (lambda x: pb.layers.conv2d(3, kernelSize=2), "'kernelSize'. It is 'kernel_size' here."),
        (lambda x: pb.layers.dropout(p=0.5), "'p'. It is 'rate' here."),
        (lambda x: pb.train.adam(lr=0.1), r"adam\(\) got an unexpected keyword argument 'lr'. It is 'learning_rate'"),
        (lambda x: pb.train.sgd(lr=0.1), "'lr'. It is 'learning_rate' here."),
        (lambda x: pb.train.sgd(learningRate=0.1), "'learningRate'. It is 'learning_rate' here."),
        (lambda x: pb.train.adam(learning_rat=0.1), "Did you mean 'learning_rate'?"),
        (lambda x: pb.train.adam(0.1, foreach=True), "'foreach'. It takes learning_rate, beta1"),
        (lambda x: pb.sequential().fit(x, x, batchSize=2), r"fit\(\) .*'batchSize'. It is 'batch_size' here."),
        (lambda x: pb.sequential().fit(x, x, epoch=2), "'epoch'. Did you mean 'epochs'?"),
        (lambda x: pb.layers.dense(1, name="d")(x, train=True), r"layer 'd'\(\) .*'train'. It is 'training' here."),
        (lambda x: pb.Model(nam="m"), r"Model\(\) .*'nam'. Did you mean 'name'?"),
        (lambda x: pb.sum(x, dim=0), r"sum\(\) got an unexpected keyword argument 'dim'. It is 'axis' here."),
        (lambda x: x.sum(keepDims=True), "'keepDims'. It is 'keepdims' here."),
        (lambda x: x.mean(dim=0), "'dim'. It is 'axis' here."),
        (lambda x: pb.softmax(x, where=x), r"softmax\(\) .*'where'. It takes dim, axis."),
        (lambda x: pb.image.resize_bilinear(x, [2, 2], method=2), r"resize_bilinear\(\) .*'method'"),
        (lambda x: pb.concat([x, x], dim=0), r"concat\(\) .*'dim'. It is 'axis' here."),
        (lambda x: pb.reshape(x, newshape=(2, 1)), r"reshape\(\) .*'newshape'. Did you mean 'shape'?"),
        (lambda x: pb.reshape(x), r"reshape\(\) missing a required positional argument: it needs shape."),
        (lambda x: x.split(2, dim=0), "'dim'. It is 'axis' here."),
        (lambda x: pb.conv2d(x, x, stride=1), "'stride'. It is 'strides' here."),
        (lambda x: pb.zeros(size=3), "'size'. It is 'shape' here."),
        (lambda x: pb.tensor([1.0], requires_grad=True), "'requires_grad'. Not needed: pb.grad differentiates"),
        (lambda x: pb.variable(1.0, requires_grad=True), "'requires_grad'. It is 'trainable' here."),
        (lambda x: pb.Variable(initial_value=1.0), r"Variable\(\) .*'initial_value'. It is 'initial' here."),
        (lambda x: pb.vmap(pb.sum, in_dims=0), "'in_dims'. It is 'in_axes' here."),
        (lambda x: pb.grad(pb.sum, hasaux=True), "'hasaux'. It is 'has_aux' here."),
        (lambda x: pb.custom_grad(pb.sum, chek=True), "'chek'. Did you mean 'check'?"),
        (lambda x: pb.compile(pb.sum, static_argnum=0), "'static_argnum'. It is 'static_argnums' here."),
        (lambda x: pb.GradientTape(persist=True), r"GradientTape\(\) .*'persist'. Did you mean 'persistent'?"),
        (lambda x: pb.losses.mean_squared_error(y_true=x, y_pred=x), "'y_true'. It is 'labels' here."),
        (lambda x: pb.random.normal([2], stddev=2.0), "'stddev'. It is 'std_dev' here."),
        (lambda x: pb.data.Dataset.from_arrays(np.ones(3)).batch(batchSize=2), "'batchSize'. It is 'batch_size' here."),
        (lambda x: pb.callbacks.early_stopping(minDelta=0.1), "'minDelta'. It is 'min_delta' here."),
        (lambda x: pb.linalg.qr(x, fullMatrices=True), "'fullMatrices'. It is 'full_matrices' here."),
        (lambda x: pb.ones([2], device="cuda"), "'device'. Everything is in the CPU's memory."),
        (lambda x: pb.layers.dense({"units": 1, "inputShape": [2]}), "settings as keywords: units=…, input_shape=…"),
        (lambda x: pb.sequential().compile({"optimizer": "sgd", "loss": "mse"}), "as keywords: optimizer=…, loss=…"),
    ],
)  # fmt: skip
def test_unknown_keyword_error(call, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        call(pb.tensor([1.0, 2.0]))
    assert isinstance(caught.value, TypeError)
    assert caught.value.__cause__ is None


def test_unknown_keyword_error_under_transforms() -> None:
    for transform in (pb.grad, pb.compile, pb.vmap):
        with pytest.raises(ArgumentError, match="unexpected keyword argument 'dim'"):
            transform(lambda x: pb.sum(x, dim=0))(np.ones((2, 3)))


def test_call_errors_other_than_unknown_keyword_are_unchanged() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'shape'"):
        pb.zeros()
    with pytest.raises(TypeError, match="multiple values for argument 'shape'"):
        pb.zeros(3, shape=3)

    def fails(x, **settings):
        raise TypeError("of the function itself")

    with pytest.raises(TypeError, match="of the function itself"):
        pb.grad(fails)(1.0)
    with pytest.raises(
        ArgumentError, match=r"zeros: 3 is not a dtype; .* A shape is one argument: \(2, 3\), not 2, 3."
    ):
        pb.zeros(2, 3)


@pytest.mark.parametrize("name", ["zeros", "conv2d", "sum", "grad", "tensor", "custom_grad", "meshgrid"])
def test_public_functions_keep_signature_and_pickle(name: str) -> None:
    function = getattr(pb, name)
    assert function.__name__ == name
    assert pickle.loads(pickle.dumps(function)) is function
    assert "args" not in inspect.signature(function).parameters
    assert function.__doc__


def test_every_public_function_unpickles_in_new_process() -> None:
    pickled = {}
    for module in MODULES.values():
        home = importlib.import_module(module)
        for name in getattr(home, "__all__", None) or dir(home):
            function = getattr(home, name)
            if inspect.isfunction(function) and not name.startswith("_"):
                assert pickle.loads(pickle.dumps(function)) is function
                pickled[module, name] = pickle.dumps(function)
    program = """
import pickle, sys
for (module, name), pickled in pickle.load(sys.stdin.buffer).items():
    assert pickle.loads(pickled) is getattr(sys.modules[module], name), (module, name)
"""
    assert len(pickled) > 500
    subprocess.run([sys.executable, "-c", program], input=pickle.dumps(pickled), check=True)
