"""Prefill/decode disaggregation, in: a setup and its layout; out: how its KV caches travel."""

from gpuplan.calibration.links import fabric_link, link_of
from gpuplan.candidates.propose import n_in_server
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.simulation.engine import KvTransfer
from gpuplan.performance.collectives import point_to_point_time_s

# Assumption: a request is announced to its decode engine, which then reads the blocks remotely.
CONNECTOR_S = 2e-3
MESSAGE_BYTES = 1e8  # of about one prompt: the rate of long messages counts


def kv_transfer(setup: ServingSetup, spread: ServingLayout) -> KvTransfer:
    """From one prefill engine: every rank sends its part over its share of the server's NICs.

    Inside a server, over the links that join its accelerators.
    """
    card, n_ranks = setup.accelerator, spread.engine.n_accelerators
    if spread.network_bytes_per_s is None:
        link, n_lanes = link_of(card, n_ranks=2, engine=setup.engine.name), n_ranks
    else:
        share = n_ranks / max(n_ranks, n_in_server(card))
        link, n_lanes = fabric_link(share * spread.network_bytes_per_s), 1
    one_s, two_s = (point_to_point_time_s(n * MESSAGE_BYTES, link) for n in (1, 2))
    return KvTransfer(
        cache_bytes_per_token=setup.model.kv_bytes_per_token(setup.storage.cache),
        link_bytes_per_s=n_lanes * MESSAGE_BYTES / (two_s - one_s),
        latency_s=CONNECTOR_S + 2 * one_s - two_s,
    )
