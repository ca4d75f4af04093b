"""Any described data path: the chain is in order, and the judgement follows from it."""

import json

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.scenarios import read_scenario_text
from gpuplan.catalog.load import read_catalog
from gpuplan.pipeline.check import check_scenario
from gpuplan.report.system.check import check_document

CATALOG = read_catalog()
KINDS = (
    "local_nvme",
    "local_ssd",
    "hdd_nfs",
    "ssd_nfs",
    "hdd_array",
    "parallel_fs",
    "object",
    "object_cached",
)
PATHS = st.fixed_dictionaries(
    {
        "sample_kb": st.floats(0.1, 1e6),
        "samples_per_s_per_accelerator": st.floats(0.01, 1e5),
        "samples_per_file": st.sampled_from([1, 2, 1000]),
        "cache_hit_frac": st.sampled_from([0.0, 0.5, 1.0]),
        "storage": st.fixed_dictionaries(
            {"kind": st.sampled_from(KINDS)},
            optional={
                "network_gbit_per_s": st.floats(0.1, 1000),
                "gb_per_s": st.floats(0.01, 500),
                "iops": st.floats(10, 1e7),
            },
        ),
        "loader": st.fixed_dictionaries(
            {"samples_per_s_per_core": st.floats(0.1, 1e4)},
            optional={
                "cores": st.floats(1, 300),
                "workers": st.integers(0, 64),
                "gpu_decode": st.booleans(),
            },
        ),
    }
)


@settings(max_examples=60, deadline=None)
@given(path=PATHS, nodes=st.integers(1, 6))
def test_judgement_follows_from_the_chain(path, nodes):
    data = {
        "name": "any",
        "workloads": [
            {"name": "w", "kind": "generic", "work": {"accelerators": 8 * nodes}, "data_path": path}
        ],
        "owned": [{"accelerator": "H100", "nodes": nodes, "accelerators_per_node": 8}],
    }
    result = check_scenario(read_scenario_text(yaml.safe_dump(data)), CATALOG)
    shares = [b.busy_frac for b in result.works[0].bottlenecks]
    assert shares == sorted(shares)
    assert all(0 < share < 1 for share in shares)
    assert result.is_ok == (not shares or shares[0] >= 0.7)
    if not result.is_ok:
        paid = [s for s in result.balanced[:-1] if s.usd is not None]
        assert all(s.usd.mid <= result.budget_usd * (1 + 1e-9) for s in paid)
    json.dumps(check_document(result), allow_nan=False)
