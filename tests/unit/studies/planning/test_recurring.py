"""Documents that come every day are done within their deadline, and the plan says how surely."""

from datetime import date

import pytest

from gpuplan import api

TODAY = date(2026, 11, 16)


def planned(deadline_h=24, docs=1e6):
    batch = {"docs_per_day": docs, "deadline_h": deadline_h}
    work = {
        "name": "daily",
        "kind": "batch_inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "batch": batch,
        "request": {"input_tokens": 1000, "output_tokens": 100},
    }
    policy = {"accelerators": {"allowed": ["H100"]}}
    tree = {"version": 1, "name": "t", "workloads": [work], "policy": policy}
    return api.plan(tree, today=TODAY, n_samples=50).to_dict()


def test_the_deadline_is_a_row_that_is_met_with_a_probability():
    document = planned()
    [row] = document["plan"]["slo"]["promises"]
    assert (row["what"], row["limit_s"], row["is_kept"]) == ("deadline", 86400.0, True)
    assert 0 < row["reached_s"]["low"] < row["reached_s"]["value"] < row["limit_s"]
    assert document["risk"]["probability_frac"] >= 0.8
    assert [fleet["probability_frac"] >= 0.5 for fleet in document["risk"]["fleets"]]


@pytest.mark.parametrize("deadline_h", [6, 24])
def test_what_is_busy_is_the_share_of_the_deadline(deadline_h):
    document = planned(deadline_h)
    [row], [pool] = document["plan"]["slo"]["promises"], document["plan"]["pools"]
    busy = row["reached_s"]["value"] / (deadline_h * 3600)
    assert busy == pytest.approx(pool["use"]["peak_frac"])
