"""Write docs/ops.md, the table of all ops, from the registry.  With ``--check``, only say whether it is up to date."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import pullback as pb
from pullback.core.lowering import opaque
from pullback.core.op import Op, list_ops
from pullback.interop.numpy import find_call
from pullback.ops.special import Through

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ops.md"
MODULES = ["", "fused", "image", "linalg", "losses", "math", "random", "signal", "special", "spectral"]
NUMPY = {"": (np, np.linalg), "linalg": (np.linalg, np), "spectral": (np.fft,)}  # where the same name means the same
OTHERWISE = {"diag"}  # NumPy's is another function

# The functions of TensorFlow.js 4.22 that take or give tensors, as it writes them.  Case and underscores aside, ours
# have the same names.
TFJS = """
abs acos acosh add addN all any argMax argMin as1D as2D as3D as4D as5D asScalar asin asinh atan atan2 atanh avgPool
avgPool3d basicLSTMCell batchNorm batchNorm2d batchNorm3d batchNorm4d batchToSpaceND bincount bitwiseAnd
booleanMaskAsync broadcastArgs broadcastTo cast ceil clipByValue clone complex concat concat1d concat2d concat3d
concat4d conv1d conv2d conv2dTranspose conv3d conv3dTranspose cos cosh cumprod cumsum denseBincount depthToSpace
depthwiseConv2d diag dilation2d div divNoNan dot dropout einsum elu ensureShape equal erf euclideanNorm exp
expandDims expm1 eye fill flatten floor floorDiv gather gatherND greater greaterEqual imag inTopKAsync isFinite isInf
isNaN leakyRelu less lessEqual linspace localResponseNormalization log log1p logSigmoid logSoftmax logSumExp
logicalAnd logicalNot logicalOr logicalXor lowerBound matMul max maxPool maxPool3d maxPoolWithArgmax maximum mean
meshgrid min minimum mirrorPad mod moments movingAverage mul multiRNNCell multinomial neg norm notEqual oneHot ones
onesLike outerProduct pad pad1d pad2d pad3d pad4d pool pow prelu prod rand randomGamma randomNormal
randomStandardNormal randomUniform randomUniformInt range real reciprocal relu relu6 reshape reshapeAs reverse
reverse1d reverse2d reverse3d reverse4d round rsqrt scalar scatterND searchSorted selu separableConv2d
setdiff1dAsync sigmoid sign sin sinh slice slice1d slice2d slice3d slice4d softmax softplus spaceToBatchND
sparseToDense split sqrt square squaredDifference squeeze stack step stridedSlice sub sum tan tanh tensor tensor1d
tensor2d tensor3d tensor4d tensor5d tensor6d tensorScatterUpdate tile toBool toFloat toInt topk transpose
truncatedNormal unique unsortedSegmentSum unstack upperBound where zeros zerosLike
fused.conv2d fused.depthwiseConv2d fused.matMul
image.cropAndResize image.flipLeftRight image.grayscaleToRGB image.nonMaxSuppression image.nonMaxSuppressionPadded
image.nonMaxSuppressionWithScore image.resizeBilinear image.resizeNearestNeighbor image.rgbToGrayscale
image.rotateWithOffset image.threshold image.transform
linalg.bandPart linalg.gramSchmidt linalg.qr
losses.absoluteDifference losses.computeWeightedLoss losses.cosineDistance losses.hingeLoss losses.huberLoss
losses.logLoss losses.meanSquaredError losses.sigmoidCrossEntropy losses.softmaxCrossEntropy
math.confusionMatrix signal.frame signal.hammingWindow signal.hannWindow signal.stft
spectral.fft spectral.ifft spectral.irfft spectral.rfft
"""

HEAD = """\
# Ops

Every op: its names here, in TensorFlow.js and in NumPy, which of its inputs it can be differentiated by, and whether
`pb.compile` makes machine code of it.

- **Differentiable in** names the inputs; the derivative is exact, forward and reverse, to any order. *(zero)*: it is
  zero wherever it exists. [Conventions](conventions.md) says what is given where it does not exist.
- **Compiled**: to machine code; *scalar*: by elements, *fold*: as a sum is, *view*: without work, *made_of*: from
  other ops, *call*: a routine of BLAS; the other words say what is gone through. **Opaque**: NumPy runs it between
  compiled steps.
- **NumPy** has the function under this name, and it works on tensors if it takes arrays: `np.sin(x)` is `pb.sin(x)`.
"""


def normalize_name(name: str) -> str:
    """Return what is compared of a name: ``setdiff1dAsync`` is ``setdiff1d`` here, ``isNaN`` is ``is_nan``."""
    return name.replace("_", "").removesuffix("Async").lower()


THEIRS = {normalize_name(name): name for name in TFJS.split()}


def list_public() -> dict[str, Any]:
    """Return everything users call that computes with tensors, by the name after ``pb.``.

    The shortest name comes first.
    """
    made = {}
    for prefix in MODULES:
        module = getattr(pb, prefix) if prefix else pb
        space = {name: getattr(module, name) for name in dir(module)}  # also modules that are imported when first used
        for name, value in space.items():
            ours = inspect.isfunction(value) and inspect.unwrap(value).__module__.startswith("pullback.ops")
            if ours and (not prefix or name in module.__all__):
                made[f"{prefix}.{name}" if prefix else name] = value
    return made


PUBLIC = list_public()


def list_names(function: Any) -> list[str]:
    """Return every public name of a function, its own first."""
    all_names = [name for name, value in PUBLIC.items() if value is function]
    return sorted(all_names, key=lambda name: name.split(".")[-1] != function.__name__)


def find_tfjs_name(function: Any) -> str:
    found_names = (THEIRS[normalize_name(name)] for name in list_names(function) if normalize_name(name) in THEIRS)
    return next(found_names, "")


def spell_module(space: Any) -> str:
    return str(space.__name__).replace("numpy", "np")


BY_NUMPY = {
    value: f"{spell_module(space)}.{value.__name__}"
    for space in (np.fft, np.linalg, np)
    for name, value in vars(space).items()
    if hasattr(value, "__name__") and not name.startswith("_")
}


def find_numpy_name(function: Any, kernel: Any = None) -> str:
    """NumPy's (or SciPy's) name: of the kernel, of what stands for it here, or the same name as ours."""
    if isinstance(kernel, Through):
        return f"scipy.special.{kernel.name}"
    if kernel in BY_NUMPY:
        return BY_NUMPY[kernel]
    same = [
        (candidate, f"{spell_module(space)}.{word}")
        for name in list_names(function)
        for prefix, _, word in [name.rpartition(".")]
        for space in NUMPY.get(prefix, ())
        if callable(candidate := getattr(space, word, None)) and word not in OTHERWISE
    ]
    known = (text for candidate, text in same if find_call(candidate) is not None)
    return next(chain(known, (text for _, text in same)), "")


def is_zero_rule(formula: Any) -> bool:
    """Return whether a rule gives zeros whatever it is given."""
    called = {*formula.__code__.co_names} - {"np"} if hasattr(formula, "__code__") else set()
    return bool(called) and called <= {"make_zero_cotangent", "zeros_like"}


def list_inputs(op: Op) -> str:
    """Return the inputs in which it has a derivative; one that is whole numbers in every sample has none."""
    if op.variadic:
        return op.inputs[0]
    samples = [given for given, _ in op.acts.samples()]
    moving = [
        any(getattr(given[i], "dtype", np.dtype(float)).kind in "fc" for given in samples)
        for i in range(len(op.inputs))
    ]
    live = [i for i in range(len(op.inputs)) if moving[i] and op.d.differentiable(i)]
    if not live:
        return "none"
    zero = all(is_zero_rule(op.d.formulas[i]) for i in live)
    return ", ".join(op.inputs[i] for i in live) + (" (zero)" if zero else "")


def mark_code(text: str) -> str:
    return f"`{text}`" if text else "–"


def format_row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def format_table(head: str, rows: Iterator[str]) -> str:
    columns = head.split(", ")
    return "\n".join([format_row(*columns), "|" + "---|" * len(columns), *rows])


def format_op(op: Op) -> str:
    called = list_names(op.function)
    name = ", ".join(map(mark_code, called or [op.name]))
    order = "any" if op.flows else "–"
    compiled = "opaque" if isinstance(op.lower, opaque) else f"compiled ({type(op.lower).__name__})"
    return format_row(
        name,
        mark_code(find_tfjs_name(op.function)),
        mark_code(find_numpy_name(op.function, op.kernel)),
        list_inputs(op),
        order,
        compiled,
    )


def format_function(function: Callable[..., Any]) -> str:
    summary = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    summary = summary.removeprefix("Return ")  # a row names what it returns
    summary = summary[:1].upper() + summary[1:]
    return format_row(
        ", ".join(map(mark_code, list_names(function))),
        mark_code(find_tfjs_name(function)),
        mark_code(find_numpy_name(function)),
        summary,
    )


def write_page() -> str:
    ops = sorted(list_ops(), key=lambda op: (list_names(op.function) or [op.name])[0])
    seen = {id(op.function) for op in ops}
    rest = {id(f): f for f in PUBLIC.values() if id(f) not in seen}
    functions = sorted(rest.values(), key=list_names)
    facts = "op, TensorFlow.js, NumPy, differentiable in, order, compiled or opaque"
    return "\n".join([
        HEAD,
        f"## The {sum(bool(list_names(op.function)) for op in ops)} ops that users call\n",
        format_table(facts, (format_op(op) for op in ops if list_names(op.function))),
        f"\n## {len(rest)} functions made of ops\n\nTheir derivatives are those of the ops they are made of.\n",
        format_table("function, TensorFlow.js, NumPy, what it gives", map(format_function, functions)),
        "\n## Ops that the others are made of\n\nNames to override; not part of `pb`, nor methods of `Tensor`.\n",
        format_table(facts, (format_op(op) for op in ops if not list_names(op.function))),
        "",
    ])  # fmt: skip


if __name__ == "__main__":
    text = write_page()
    if "--check" not in sys.argv:
        PAGE.write_text(text, "utf-8")
    elif not PAGE.exists() or PAGE.read_text("utf-8") != text:
        sys.exit("docs/ops.md is not what the registry says: run python script/ops_table.py")
