"""cluster.yaml: units, defaults, and problems with their lines."""

import pytest

from gpuplan.errors import InputError
from gpuplan.inputs.cluster import read_cluster
from shared_data import ROOT

TEXT = """
nodes:
  - {accelerator: A100, nodes: 4, accelerators_per_node: 8, ram_gib: 512, cpus: 64,
     nodes_per_rack: 2}
teams:
  - name: a
    wait_p90_min: 30
    cohort: all
    quotas: [{accelerator: A100, accelerators: 16, borrow: 8, lend: 4}]
policy: {order: kueue, blocking: skip, preempts: true, half_life_h: 24}
failures: {mtbf_h: 1000, mttr_h: 6}
maintenance: [{start_h: 10, duration_h: 2, first_node: 1, nodes: 2}]
burst: {above_queued_accelerators: 32, accelerators: 16, start_min: 10}
jobs: {checkpoint_min: 30, restart_min: 5, limit_ratio: 2}
"""


def read(tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(text, encoding="utf-8")
    return read_cluster(path)


def test_keys_become_nouns_in_base_units(tmp_path):
    found = read(tmp_path, TEXT)
    (group,), (team,) = found.groups, found.teams
    assert (group.n_accelerators, group.ram_bytes, group.n_cpus) == (32, 512 * 2**30, 64.0)
    assert group.n_nodes_per_rack == 2
    assert (team.wait_p90_s, team.cohort) == (1800.0, "all")
    (quota,) = team.quotas
    assert (quota.n_accelerators, quota.n_borrow, quota.n_lend) == (16.0, 8.0, 4.0)
    assert found.policy.half_life_s == 86_400.0
    assert (found.policy.order, found.policy.preempts) == ("kueue", True)
    assert found.failures is not None
    assert (found.failures.mtbf_s, found.failures.mttr_s) == (3.6e6, 21_600.0)
    (window,) = found.maintenance
    assert (window.start_s, window.duration_s, window.first_node) == (36_000.0, 7200.0, 1)
    assert found.burst is not None
    assert (found.burst.n_accelerators, found.burst.start_s) == (16, 600.0)
    assert (found.defaults.checkpoint_s, found.defaults.restart_s) == (1800.0, 300.0)
    assert found.defaults.limit_ratio == 2.0


def test_little_is_enough(tmp_path):
    found = read(tmp_path, "nodes: [{accelerator: A100, nodes: 1, accelerators_per_node: 8}]\n")
    assert found.policy.blocking == "easy"
    assert found.teams == ()
    assert found.burst is None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("accelerators: 16, borrow", "accelerators: x, borrow", "accelerators"),
        ("accelerator: A100, accelerators", "accelerator: B, accelerators", "no B here"),
        ("first_node: 1, nodes: 2", "first_node: 3, nodes: 2", "past the last of 4 nodes"),
        ("order: kueue", "order: best", "order"),
        ("mtbf_h: 1000", "mtbf_days: 1000", "mtbf_days"),
        ("  - name: a", "  - {name: a}\n  - name: a", "'a' twice"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, old, new, what):
    with pytest.raises(InputError, match=what):
        read(tmp_path, TEXT.replace(old, new))


def test_services_point_at_teams_types_and_whole_days(tmp_path):
    service = "{name: s, team: z, accelerator: B, accelerators_per_replica: 1, replicas_by_hour: "
    text = TEXT + f"services: [{service}[{', '.join(['1'] * 30)}]}}]\n"
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    shown = str(caught.value)
    assert all(part in shown for part in ("no team 'z'", "no B here", "30 hours"))


@pytest.mark.parametrize("name", ["six-teams", "day-night"])
def test_examples_are_read(name):
    assert read_cluster(ROOT / "examples" / "clusters" / f"{name}.yaml").n_accelerators > 0


def test_a_node_of_millions_is_refused_before_it_is_laid_out(tmp_path):
    with pytest.raises(InputError, match="at most 1024"):
        read(tmp_path, TEXT.replace("accelerators_per_node: 8", "accelerators_per_node: 8000000"))


@pytest.mark.parametrize(
    ("policy", "blocking"),
    [("{order: kueue}", "skip"), ("{order: drf}", "skip"), ("{order: priority}", "easy"),
     ("{order: kueue, blocking: strict}", "strict"), ("{}", "easy")],
)  # fmt: skip
def test_queues_of_teams_need_no_word_about_blocking(tmp_path, policy, blocking):
    nodes = "nodes: [{accelerator: H100-SXM, nodes: 1, accelerators_per_node: 8}]\n"
    assert read(tmp_path, f"{nodes}policy: {policy}\n").policy.blocking == blocking
