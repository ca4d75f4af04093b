"""A drawn scenario as a plan, and what is asked of every plan."""

import warnings
from datetime import date
from functools import lru_cache
from typing import Any

import yaml

from gpuplan import api
from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.plan.certificate import Check
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.plan_file import plan_of
from gpuplan.report.plan.document import plan_document, plan_text
from gpuplan.verification.certify import disagreement

TODAY = date(2026, 11, 16)
Tree = dict[str, Any]


def planned(tree: Tree, **options: Any) -> Answer:
    """The plan; warnings are errors."""
    return _planned(yaml.safe_dump(tree), tuple(sorted(options.items())))


@lru_cache(maxsize=64)
def _planned(text: str, options: tuple[tuple[str, Any], ...]) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return api.plan(yaml.safe_load(text), today=TODAY, **{"n_samples": 20, **dict(options)})


def forget() -> None:
    """Plan anew what was planned before."""
    _planned.cache_clear()


def failed(checks: tuple[Check, ...]) -> list[str]:
    """Disagreements in words."""
    return [f"{check.name}: {disagreement(check)}" for check in checks if not check.ok]


def reopened(answer: Answer) -> Answer:
    """The answer as a reader of its file has it."""
    return plan_of(read_yaml_text(plan_text(answer), name="plan.yaml"))


def document(answer: Answer) -> Tree:
    """What `--json` prints."""
    return plan_document(answer)


def with_allowed(tree: Tree, *names: str) -> Tree:
    """The same scenario on these accelerators alone."""
    policy = {**tree["policy"], "accelerators": {"allowed": list(names)}}
    return {**tree, "policy": policy}
