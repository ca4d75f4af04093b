"""A real plan of a small service as a document, with the facts that it is checked with."""

from copy import deepcopy
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest

from gpuplan.domain.plan.facts import ReplayedRequests
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.pipeline.plan import plan
from gpuplan.report.plan.document import plan_text
from gpuplan.studies.day_replay.fresh import plan_facts
from gpuplan.studies.planning.inputs import plan_inputs

SCENARIO = {
    "version": 1,
    "name": "assistant",
    "workloads": [
        {
            "name": "assistant",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "demand": {"requests_per_s": 20},
            "request": {"input_tokens": 800, "output_tokens": 150},
            "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 30},
        }
    ],
    "budget": {"usd_per_month": 50000},
    "policy": {"accelerators": {"allowed": ["H100"]}, "max_accelerators": 64},
}


@pytest.fixture(scope="session")
def planned():
    """The document as a reader of plan.yaml has it, and facts with the replay made once."""
    request = PlanRequest(target="assistant", tree=SCENARIO, today=date(2026, 11, 16), n_samples=20)
    answer = plan(request)
    document = read_yaml_text(plan_text(answer), name="plan.yaml").data
    facts = plan_facts(plan_inputs(request), answer)
    return SimpleNamespace(document=document, facts=_with_kept_replay(facts), answer=answer)


def _with_kept_replay(facts):
    kept = facts.replay("assistant")
    return replace(facts, replay=lambda name: kept)


@pytest.fixture
def document(planned):
    return deepcopy(planned.document)


@pytest.fixture
def facts(planned):
    return planned.facts


@pytest.fixture
def failed():
    """Names of the checks that fail."""
    return lambda checks: [check.name for check in checks if not check.ok]


@pytest.fixture
def pool(document):
    return document["plan"]["pools"][0]


@pytest.fixture
def replayed():
    """Requests whose latencies are given; half of them may be late."""

    def made(ttft_s, tpot_s=0.01, n=4000):
        column = np.full(n, 1.0)
        return ReplayedRequests(
            n_replicas=1,
            arrive_s=np.arange(n) * 0.1,
            ttft_s=np.asarray(ttft_s) * column,
            tpot_s=tpot_s * column,
            e2e_s=(np.asarray(ttft_s) + 100 * tpot_s) * column,
            output_tokens=np.full(n, 100),
            is_finished=np.ones(n, dtype=np.int64),
        )

    return made
