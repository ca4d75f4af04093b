"""What a server of a service sends, by hand: text of its requests, and KV caches that travel."""

from types import SimpleNamespace as Fake

import pytest

from gpuplan.studies.explanation.network import network_needs
from gpuplan.studies.naming import model_named


def needs(*, n_prefill=0, n_nodes=2, stated=(None,), planned=None, rate=6.0):
    """Six requests a second of 1,000 + 200 tokens on two servers, unless said otherwise."""
    work = Fake(model=Fake(name="Llama-3.1-8B"), cache_precision=None)
    line = Fake(offer="node", cloud="", n_nodes=n_nodes)
    layout = Fake(n_prefill=n_prefill, network_bytes_per_s=planned)
    pool = Fake(workload="chat", purchases=(line,), layout=layout)
    demand = Fake(peak_requests_per_s=rate, input_tokens=1000.0, output_tokens=200.0)
    nodes = [Fake(node=Fake(name="node", cloud=None, network_bytes_per_s=one)) for one in stated]
    inputs = Fake(
        scenario=Fake(workload=lambda name: work if name == "chat" else None),
        request=Fake(store=None),
        market=Fake(ways=(*nodes, Fake(node=Fake(name="x", cloud=None, network_bytes_per_s=1.0)))),
    )
    services = [Fake(sizings=[Fake(workload="chat", demand=demand)])]
    return list(network_needs(inputs, Fake(pools=(pool,)), services))


def test_text_of_requests_is_shared_by_the_servers():
    (found,) = needs()
    assert found.sent_bytes_per_s == pytest.approx(6 * (4 * 1000 + 300 * 200) / 2)
    assert found.nics_bytes_per_s is None
    assert "KV" not in found.what


def test_kv_caches_travel_between_prefill_and_decode_servers():
    (found,) = needs(n_prefill=1)
    cache = 1000 * model_named("Llama-3.1-8B").kv_bytes_per_token()
    assert cache == 1000 * 2 * 32 * 8 * 128 * 2
    assert found.sent_bytes_per_s == pytest.approx(6 * (64_000 + cache) / 2)
    assert found.what.endswith("KV transfer")


def test_the_slowest_stated_nics_count_unless_the_replica_was_planned_with_others():
    (found,) = needs(stated=(50e9, 12.5e9, None))
    assert found.nics_bytes_per_s == 12.5e9
    (found,) = needs(stated=(50e9,), planned=25e9)
    assert found.nics_bytes_per_s == 25e9


def test_nothing_is_said_without_servers_or_requests():
    assert needs(n_nodes=0) == []
    assert needs(rate=None) == []
