"""Request by request as vLLM's own scheduler: first token, end, preemptions, and steps."""

import gzip
import json

import pytest

from oracles.recorded import DRAFTED, n_differing, recorded, simulated
from oracles.vllm.runs import by_ids, ours
from oracles.vllm_page import MODES, admission, transfer_errors, transfers, vllm_section

KEPT = json.loads(gzip.decompress(DRAFTED.read_bytes()))
DRAFTS = sorted(name for name in KEPT if "transfer" not in KEPT[name]["case"])
STREAMS = recorded("vllm")["streams"]


@pytest.mark.parametrize("method", ["jump", "step"])
@pytest.mark.parametrize("version", ["0.32.0", "0.15.1"])
@pytest.mark.parametrize("regime", sorted(STREAMS))
def test_every_request_is_as_the_engine_served_it(regime: str, version: str, method: str):
    stream, step = STREAMS[regime], recorded("vllm")["step"]
    differing = {
        mode: n_differing(
            simulated(stream, step, admission(version, mode, stream["limits"]), method), answer
        )
        for mode, answer in stream["answers"][version].items()
    }
    assert differing == {"sync": 0, "async": 0, "async-eos": 0}


@pytest.mark.parametrize("method", ["jump", "step"])
@pytest.mark.parametrize("name", DRAFTS)
def test_drafts_stages_adapters_and_groups_are_scheduled_as_the_engine_does(name: str, method: str):
    kept, differing = KEPT[name], {}
    for version, given in kept["answers"].items():
        case, answer = by_ids(kept["case"], given)
        differing[version] = n_differing(ours(case, version, method), answer)
    assert differing == dict.fromkeys(differing, 0)
    assert "0.32.0" in differing


@pytest.mark.parametrize("mode", MODES)
def test_what_a_kv_connector_waits_for_is_missing_from_first_tokens(mode: str):
    """Ours transfers and admits at once: up to two steps of the decode engine are missing.

    What is transferred is decoded as fast as by the engine: nothing else is missing of the end.
    """
    for kept in transfers(mode):
        off = transfer_errors(kept)
        assert off.prefill_s == pytest.approx(0.0, abs=1e-9)
        assert -0.32 < off.ttft_frac <= 0.0
        assert -0.08 < off.e2e_frac <= 0.0
        assert off.n_preemptions == 0


def test_the_page_tells_what_the_runs_say():
    rows = [row for row in vllm_section() if row.startswith("| ")]
    assert len(rows) == 1 + len(STREAMS)
    counted = [cell.split(" of ") for row in rows[1:] for cell in row.split("|") if " of " in cell]
    assert all(equal.strip() == n.strip() for equal, n in counted)
