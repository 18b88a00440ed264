"""The ``pullback`` command, as a user runs it."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from inspect import cleandoc
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from pullback.command import main
from pullback.command.info import collect_facts
from pullback.command.tour import EXAMPLES
from pullback.compiler.runtime.llvm import llvm_available
from pullback.compiler.target import get_target, list_isa_names

ROOT = Path(__file__).resolve().parents[2]
COMMAND = str(Path(sys.executable).with_name("pullback"))

# What the examples of TensorFlow.js's documentation print, in the order of the tour.
PRINTED = [
    ["0.0588235, 0.2, 1, 0.2, 0.0588235"],
    ["-1, -2", "1, 2"],
    ["-1, -4", "-1, -2", "1, 2"],
    ["45, 38", "1, 1", "1, 1"],
    [
        "0.4947368, -0.2829268, Infinity",
        "0.1052632, -0.0487805, Infinity",
        "-0.0520776, -0.0138013, -Infinity",
    ],
    ["36", "1, 4", "1, 2"],
    ["0, 1, 1, 4", "0, 1, 1, 2"],
    ["0, -1, 8, -8, 0.027", "0, 1, 2, 2, 0.3"],
]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_module_runs_as_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["pullback", "--version"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("pullback", run_name="__main__")
    assert not stopped.value.code
    assert capsys.readouterr().out == run("--version").stdout


@pytest.fixture(scope="module")
def tour() -> str:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        assert main(["tour"]) == 0
    assert not err.getvalue(), "warnings or errors in the tour"
    return out.getvalue()


def chapters(text: str) -> list[str]:
    return re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]


def test_tour_shows_code(tour: str) -> None:
    shown = chapters(tour)
    assert len(shown) == len(EXAMPLES)
    for chapter, (title, code) in zip(shown, EXAMPLES.items(), strict=True):
        lines = [line[4:] for line in chapter.removeprefix(f"{title}\n\n").splitlines()]
        assert "\n".join(lines).startswith(cleandoc(code))


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_tour_output(tour: str, number: int) -> None:
    printed = re.findall(r"^Tensor\n    \[?([^\]\n]*)\]?$", chapters(tour)[number], re.MULTILINE)
    assert printed == PRINTED[number]


def test_tour_training_loss_decreases(tour: str) -> None:
    last = chapters(tour)[-1]
    losses = [float(loss) for loss in re.findall(r"^step +\d+: loss (\S+)$", last, re.MULTILINE)]
    assert len(losses) > 3
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 3


def test_info_versions_cpu_blas_threads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {"pullback", "python", "llvmlite", "cpu features", "blas", "threads"} <= facts.keys()
    assert facts["numpy"] == np.__version__
    assert facts["python"].startswith(".".join(map(str, sys.version_info[:3])))


def test_info_missing_packages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("pullback.command.info.version", absent)
    assert main(["info"]) == 0
    assert re.search(r"^llvmlite +absent$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")
def test_info_compile_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLBACK_MAX_ISA", list_isa_names()[0])
    compiled_for = collect_facts()["compiled for"]
    assert compiled_for.startswith(f"{list_isa_names()[0]}, 128 bits")
    assert ("no FMA" in compiled_for) == (not get_target().has_fma)
    monkeypatch.setenv("PULLBACK_MAX_ISA", "sse9")
    assert "choose one of" in collect_facts()["compiled for"]
    monkeypatch.delenv("PULLBACK_MAX_ISA")
    monkeypatch.setattr("pullback.command.info.find_blas", dict)
    assert "no OpenBLAS" in collect_facts()["compiled for"]


def absent(package: str) -> str:
    from importlib.metadata import PackageNotFoundError

    raise PackageNotFoundError(package)


def test_bench_ratios_and_missing_peers(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    hidden = tmp_path / "torch.py"
    hidden.write_text("raise ImportError('hidden for this test')\n")
    options = ["--rounds", "2", "--only", "scalars,second", "--peers", "torch", "--json", str(figures)]
    path = f"{tmp_path}{os.pathsep}{ROOT / 'src'}"
    done = run("bench", *options, cwd=ROOT, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    assert "torch is absent" in done.stdout
    row = re.search(r"^Rosenbrock, 2 scalars +(\S+) +(\S+)$", done.stdout, re.MULTILINE)
    assert row
    assert all(float(figure) > 0 for figure in row.groups())
    assert "geometric mean" in done.stdout
    found = json.loads(figures.read_text())
    assert found["found"].keys() == {"scalars", "second"}
    assert all(row["ratios"]["by hand"] > 0 for row in found["found"].values())
    assert all(found[fact] for fact in ("cpu", "isa", "revision", "date"))


def test_bench_unknown_benchmark() -> None:
    done = run("bench", "--only", "nonsense", cwd=ROOT)
    assert done.returncode == 2
    assert "no nonsense among chain, constants" in done.stderr


def test_bench_footprint_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "footprint", "--help"]) == 0
    assert "import pullback" in capfd.readouterr().out


def test_bench_outside_repository(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("pullback.command.bench.find_benchmarks", lambda: None)
    assert main(["bench"]) == 1
    assert "there is no benchmarks/ here" in capsys.readouterr().err


def test_bench_finds_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.command import bench

    monkeypatch.setattr(bench, "__file__", str(tmp_path / "a" / "b" / "c" / "installed.py"))
    monkeypatch.chdir(tmp_path)
    assert bench.find_benchmarks() is None
    (tmp_path / "src" / "pullback").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "eager.py").touch()
    assert bench.find_benchmarks() == tmp_path / "benchmarks"


@pytest.mark.parametrize("arguments", [[], ["nonsense"]])
def test_pullback_command_without_subcommand_exits_with_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: pullback" in capsys.readouterr().err


def test_bench_results_equal_handwritten() -> None:
    done = run("bench", "--rounds", "1", "--only", "chain,rosenbrock,mlp,lstm,big", "--peers", "", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("script", "row"), [("compiled.py", "gather"), ("larger.py", "kalman"), ("loops.py", "kalman/25")]
)
def test_bench_rows_of_compiled_programs_with_calls_of_numpy(script: str, row: str) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / script), "--only", row, "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "ERROR" not in done.stdout
    assert "geometric mean" in done.stdout or "need no more temporaries" in done.stdout, done.stdout + done.stderr


def test_report_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("import numpy as np\n\n\ndef f(x, y=2.0):\n    return np.sum(np.sqrt(x) * y)\n")
    assert main(["report", f"{script}:f", "--args", "[0.0, 1.0]", "--out", str(tmp_path / "page.html")]) == 0
    assert "derivative of sqrt at script.py:5" in capsys.readouterr().out
    assert "np.sqrt(x)" in (tmp_path / "page.html").read_text("utf-8")


def test_report_of_function_that_is_not_compiled_has_no_kernels(tmp_path: Path) -> None:
    pages = []
    for name, body in (("plain", "x * x"), ("branch", "x * x if x > 0 else -x")):
        script = tmp_path / f"{name}.py"
        script.write_text(f"def f(x):\n    return {body}\n")
        assert main(["report", f"{script}:f", "--args", "2.0", "--out", str(tmp_path / "page.html")]) == 0
        pages.append((tmp_path / "page.html").read_text("utf-8"))
    assert [bool(re.search(r'"kernels": ?\[\]', page)) for page in pages] == [not llvm_available(), True]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (["script.py"], "script.py:function"),
        (["{script}:g"], "no function 'g'"),
        (["{script}:f", "--args", "x + 1"], "--args must be numbers"),
        (["{script}:f"], "f:"),
    ],
    ids=["no function", "unknown function", "arguments", "missing argument"],
)
def test_report_command_rejects_bad_arguments(
    given: list[str], answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("def f(x):\n    return x\n")
    with pytest.raises(SystemExit):
        main(["report", *(g.format(script=script) for g in given)])
    assert answer in capsys.readouterr().err


def test_pullback_version_option() -> None:
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"pullback \d+\.\d+\.\d+\n", done.stdout)


def test_command_with_closed_reader_returns_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1, encoding="utf-8") as out, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        assert main(["info"]) == 1
        print("what follows goes nowhere")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no broken pipes of this kind")
def test_command_with_closed_stdout_ends_without_traceback() -> None:
    done = subprocess.run(["sh", "-c", f"{COMMAND} tour | head -1"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1. The gradient of a function")
    assert "Traceback" not in done.stderr
