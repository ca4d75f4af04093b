"""fleet.yaml: every key arrives in its unit, every mistake is told with its line."""

from pathlib import Path

import pytest

from gpuplan.errors import InputError
from gpuplan.inputs.fleet import read_fleet

WHOLE = """
router: {rule: session, pool_rule: order, max_resends: 2}
clients: {timeout_s: 30, timeout_of: first_token, max_retries: 2}
kv_transfer: {link_gb_per_s: 50, latency_ms: 2}
services:
  - {name: chat, share_frac: 0.7, pools: [{pool: a, weight: 2}], decode_pools: [{pool: b}]}
  - {name: code, share_frac: 0.3, pools: [{pool: b}]}
pools:
  - name: a
    replicas: 2
    min_replicas: 1
    max_replicas: 6
    autoscaling: {target_requests: 20, hours: [{from_hour: 8, to_hour: 18, min_replicas: 3}]}
    failures: {mtbf_h: 100, mttr_min: 5, repair: fixed}
    start: {boot_s: 60, load_s: 20}
  - name: b
    on: L40S
    replicas: 1
    spot: {mean_h: 2, away_min: 3}
    restarts: {first_s: 10, every_h: 1}
    admission: {max_outstanding: 8, max_queued: 4}
"""


def read(tmp_path: Path, text: str):
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    return read_fleet(file)


def test_a_key_of_an_earlier_release_is_read(tmp_path: Path):
    old = read(tmp_path, WHOLE.replace("kv_transfer:", "handover:"))
    assert old.link == read(tmp_path, WHOLE).link
    with pytest.raises(InputError, match="handover"):
        read(tmp_path, WHOLE + "handover: {link_gb_per_s: 1}\n")


def test_every_key_arrives_in_its_unit(tmp_path: Path):
    found = read(tmp_path, WHOLE)
    a, b = found.pools
    assert (a.size.n_first, a.size.n_least, a.size.n_most) == (2, 1, 6)
    assert a.failures.mtbf_s == 360_000
    assert a.failures.mttr_s == 300
    assert a.failures.is_fixed_repair
    assert a.start.total_s == 80
    assert a.scaler.floors[0].n_least == 3
    assert b.on == "L40S"
    assert (b.spot.mean_s, b.spot.notice_s, b.spot.away_s) == (7200, 30, 180)
    assert b.restarts.every_s == 3600
    assert (b.admission.max_outstanding, b.admission.max_held) == (8, 4)
    assert found.clients.is_first_token
    assert found.link.link_bytes_per_s == 50e9
    assert found.link.latency_s == pytest.approx(0.002)
    assert found.shares_frac == (0.7, 0.3)
    assert found.services[0].decode_pools[0].pool == "b"
    told = [assumed.what for assumed in found.assumptions]
    assert told == [
        "retries", "first request", "affinity", "autoscaling of a", "spot capacity of b"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pools: []", "pools"),
        ("pools: [{name: a, replicas: 1, replicass: 2}]", "did you mean replicas"),
        ("pools: [{name: a}]", "replicas: missing"),
        ("pools: [{name: a, replicas: -1}]", "got -1"),
        ("pools: [{name: a, replicas: 1}]\nrouter: {rule: magic}", "unknown value 'magic'"),
        (WHOLE.replace("0.7", "0.9"), "sum to"),
        ("just text", "fleet.yaml"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(tmp_path: Path, text: str, told: str):
    with pytest.raises(InputError, match=told):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pools: [{name: a, replicas: 1}]\nrouter: {rule: session}\n", ["affinity"]),
        ("pools: [{name: a, replicas: 1}]\nrouter: {rule: session, guard_requests: 9}\n", []),
        (
            "pools: [{name: a, replicas: 1, max_replicas: 3, autoscaling: {target_requests: 9,"
            " interval_s: 15, down_window_s: 60,"
            " hours: [{from_hour: 8, to_hour: 9, min_replicas: 2}]}}]\n",
            ["first request"],
        ),
        ("pools: [{name: a, replicas: 1, spot: {mean_h: 3}}]\n", ["spot capacity of a"]),
        ("pools: [{name: a, replicas: 1, failures: {mtbf_h: 3}}]\n", ["repair of a"]),
        ("pools: [{name: a, replicas: 1}]\nclients: {max_retries: 2}\n", ["retries"]),
    ],
    ids=["affinity", "given", "clock", "spot", "repair", "retries"],
)
def test_defaults_that_decide_much_are_told(tmp_path, text, told):
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    assert [assumed.what for assumed in read_fleet(path).assumptions] == told


def test_repairs_of_what_never_fails_are_refused(tmp_path):
    path = tmp_path / "fleet.yaml"
    path.write_text("pools: [{name: a, replicas: 1, failures: {mttr_min: 3}}]\n")
    with pytest.raises(InputError, match="repairs replicas that never fail"):
        read_fleet(path)
