"""Measure what the page of benchmarks shows, on the CPU that this runs on, and write its tables and charts anew.

``python benchmarks/record.py`` takes about an hour on a quiet machine; ``--only compiled`` measures one suite,
``--list`` only says what would be run.  Figures of the page's own CPU replace those in ``benchmarks/figures``; those of
another CPU are written to a folder there, and the page gets a section for it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from recording import find_cpu

from pullback.compiler.target import get_own_target

HERE = Path(__file__).resolve().parent
FIGURES = HERE / "figures"
# For each suite the commands whose figures make up its file, and the rounds.
SUITES = {
    "eager": (["eager.py --peers torch"], 20),
    "compiled": (["compiled.py"], 5),
    "larger": (["larger.py"], 3),
    "loops": (["loops.py"], 3),
    "first-call": (["larger.py --first-call", "compiled.py --first-call"], 1),
    "trainings": (["trainings.py"], 3),
}


def choose_folder(cpu: str) -> Path:
    """Return where figures of a CPU are: the page's own CPU has no folder of its own."""
    recorded = {json.loads(file.read_text("utf-8"))["cpu"] for file in FIGURES.glob("*.json")}
    return FIGURES if cpu in recorded else FIGURES / re.sub(r"\W+", "-", cpu.lower()).strip("-")


def list_runs(suites: list[str], folder: Path) -> dict[Path, list[list[str]]]:
    """Return for each file to write the commands: each suite as the CPU is, and with AVX2 where it has AVX-512."""
    isa = get_own_target().isa
    runs: dict[Path, list[list[str]]] = {}
    for name in [isa, *(["avx2"] if isa == "avx512" else [])]:
        cap = [f"--isa={name}"] if name != isa else []
        for suite in suites:
            commands, rounds = SUITES[suite]
            runs[folder / f"{suite}-{name}.json"] = [[*c.split(), f"--rounds={rounds}", *cap] for c in commands]
    return runs


def run_commands(commands: list[list[str]], file: Path) -> None:
    """Run benchmarks and write their figures together to a file."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "figures.json")
        for script, *options in commands:
            subprocess.run([sys.executable, HERE / script, *options, "--json", part], check=False)
            if not part.exists():
                sys.exit(f"{script} wrote no figures")
            its = json.loads(part.read_text("utf-8"))
            found |= its["found"]
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({**its, "found": found}, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", metavar="SUITES", default=",".join(SUITES), help="which suites: " + ",".join(SUITES))
    parser.add_argument("--list", action="store_true", help="print the commands and the files, and run nothing")
    given = parser.parse_args()
    suites = given.only.split(",")
    if unknown := [suite for suite in suites if suite not in SUITES]:
        parser.error(f"--only: no {', '.join(unknown)} among {', '.join(SUITES)}")
    cpu = find_cpu()
    print(f"{cpu}, {get_own_target().isa}")
    for file, commands in list_runs(suites, choose_folder(cpu)).items():
        for command in commands:
            print(f"{' '.join(command)} -> {file.relative_to(HERE)}", flush=True)
        if not given.list:
            run_commands(commands, file)
    if given.list:
        return 0
    return subprocess.run([sys.executable, HERE.parent / "script" / "benchmark_figures.py"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
