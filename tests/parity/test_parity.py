"""TensorFlow.js's answers, case by case (README.md says what the files hold, check.py how they are judged)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest
from check import (
    Case,
    Verdict,
    Wrong,
    api_cases,
    judge_api,
    judge_op,
    judge_optim,
    judge_print,
    ops_cases,
    optim_cases,
    print_cases,
    resolve,
)

import pullback as pb

# Cases that we answer otherwise on purpose: id -> one line of reason.
EXCUSED: dict[str, str] = {
    "customGrad/5": "a Python number is taken as the gradient of a scalar",
    "customGrad/9": "a Python number is taken as the value",
    "abs/11": "tfjs gives dy * sign(real part) for a complex input; ours is dy * z / abs(z), as in PyTorch",
    "conv2d/6": "tfjs counts the windows of the second axis by the filter of the first: 4 for 5",
    "conv2d/8": "tfjs counts the windows of the second axis by the filter and the stride of the first: 2 for 5",
    "conv3d/1": 'tfjs shifts "same" windows by half of a stride that is longer than the window; TensorFlow does not',
    "maxPool3d/1": 'tfjs shifts "same" windows by half of a stride that is longer than the window; TensorFlow does not',
    "variable/9": "tfjs refuses a name that is given again; here a notebook's cell can be run twice",
}

# Ops of the files that are still to come, by subject.
NOT_YET: set[str] = set()

OPS = ops_cases()
PRINT = print_cases()
API = api_cases()
OPTIM = optim_cases() if importlib.util.find_spec("pullback.train") else []


def by_id(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def expect_passed(judge: Callable[[Case], Verdict], case: Case) -> None:
    verdict = judge(case)
    if verdict.id in EXCUSED:
        if verdict.outcome != "failed":
            pytest.fail(f"{verdict.outcome}: take {verdict.id} out of EXCUSED", pytrace=False)
        pytest.skip(EXCUSED[verdict.id])
    if verdict.skipped:
        pytest.skip(verdict.reason)
    if not verdict.passed:
        pytest.fail(verdict.reason, pytrace=False)


def exists(op: str) -> bool:
    try:
        resolve(pb, op)
    except Wrong:
        return False
    return True


@by_id(OPS)
def test_ops_match_recorded(case: Case) -> None:
    if case["py_op"] in NOT_YET and not exists(case["py_op"]):
        pytest.skip("not in pullback yet")
    expect_passed(judge_op, case)


@by_id(PRINT)
def test_print_matches_recorded(case: Case) -> None:
    expect_passed(judge_print, case)


@by_id(API)
def test_api_matches_recorded(case: Case) -> None:
    expect_passed(judge_api, case)


@by_id(OPTIM)
def test_optimizers_match_recorded(case: Case) -> None:
    expect_passed(judge_optim, case)


def test_names_listed_as_missing_are_missing() -> None:
    here = sorted(op for op in NOT_YET if exists(op))
    assert not here, f"take out of NOT_YET: {here}"
    unknown = sorted(NOT_YET - {case["py_op"] for case in OPS})
    assert not unknown, f"no case has {unknown}"


def test_excused_cases_exist() -> None:
    unknown = sorted(EXCUSED.keys() - {case["id"] for case in [*OPS, *PRINT, *API, *OPTIM]})
    assert not unknown, f"no case has {unknown}"
