"""Slurm, SkyPilot, dstack and Terraform: the machines of the plan."""

import json
import shutil
import subprocess

import pytest
import yaml

from fakes.deployed import deployed, deployed_pool, node, run_pool
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.render.schedulers.clouds import board, dstack_files, skypilot_files, terraform_files
from gpuplan.render.schedulers.slurm import slurm_files

RUN = run_pool(
    PoolLayout(tp=2, pp=1, dp=8, sharding="zero1", n_servers_per_replica=2),
    RunSteps(micro_batch=1, global_batch=64),
)


def only(files):
    (found,) = files
    return found


def options(script):
    lines = script.content.decode().splitlines()
    return dict(
        line[10:].split("=", 1) for line in lines if line.startswith("#SBATCH --") and "=" in line
    )


def test_slurm_runs_over_the_planned_nodes():
    found = options(only(slurm_files(deployed(RUN))))
    assert (found["nodes"], found["gpus-per-node"]) == ("2", "8")


def test_slurm_waits_a_fifth_longer_than_the_longest_prediction():
    # 20 days, a tenth above, a fifth to spare
    assert options(only(slurm_files(deployed(RUN))))["time"] == "26-09:36:00"


def test_slurm_starts_every_replica():
    found = options(only(slurm_files(deployed(deployed_pool()))))
    assert (found["array"], found["gpus-per-node"]) == ("1-3", "2")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("one", [RUN, deployed_pool()], ids=["run", "service"])
def test_scripts_are_shell(one):
    script = only(slurm_files(deployed(one)))
    checked = subprocess.run(["bash", "-n"], input=script.content, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("card", "name"),
    [("h100-sxm", "H100"), ("a100-sxm-80gb", "A100-80GB"), ("l40s", "L40S"), ("mi300x", "MI300X"),
     ("rtx-4090", "RTX4090"), ("b200-sxm", "B200"), ("a100-pcie-40gb", "A100")],
)  # fmt: skip
def test_boards_are_spelled_as_those_tools_do(card, name):
    assert board(deployed_pool(card)) == name


def test_skypilot_asks_for_the_planned_machine():
    rented = deployed_pool(node=node(cloud="aws", name="p5.48xlarge", region="us-east-1"))
    task = yaml.safe_load(only(skypilot_files(deployed(rented))).content)
    resources = task["resources"]
    assert resources["accelerators"] == "H100:2"
    assert (resources["infra"], resources["instance_type"]) == ("aws/us-east-1", "p5.48xlarge")
    assert task["service"]["replica_policy"] == {"min_replicas": 3, "max_replicas": 3}


def test_skypilot_scales_by_the_planned_load_of_a_replica():
    task = yaml.safe_load(only(skypilot_files(deployed(deployed_pool(n_replicas_least=1)))).content)
    assert task["service"]["replica_policy"]["target_qps_per_replica"] == 1.7  # 3.4 over two


def test_skypilot_runs_on_all_nodes():
    task = yaml.safe_load(only(skypilot_files(deployed(RUN))).content)
    assert (task["num_nodes"], task["resources"]["accelerators"]) == (2, "H100:8")
    assert "$SKYPILOT_NODE_RANK" in task["run"]


def test_spot_is_asked_for_where_it_was_planned():
    task = yaml.safe_load(
        only(skypilot_files(deployed(deployed_pool(node=node(is_spot=True))))).content
    )
    assert task["resources"]["use_spot"] is True


def test_dstack_scales_between_the_bounds():
    found = yaml.safe_load(only(dstack_files(deployed(deployed_pool(n_replicas_least=1)))).content)
    assert found["replicas"] == "1..3"
    assert found["resources"]["gpu"] == "H100:2"
    assert found["scaling"] == {"metric": "rps", "target": 2}


def test_dstack_runs_a_task():
    found = yaml.safe_load(only(dstack_files(deployed(RUN))).content)
    assert (found["type"], found["nodes"]) == ("task", 2)
    assert "scaling" not in found


def test_terraform_gets_the_node_groups():
    values, variables = (json.loads(file.content) for file in terraform_files(deployed(RUN)))
    group = values["gpuplan_node_groups"]["pretrain"]
    assert (group["node_count"], group["accelerators_per_node"]) == (2, 8)
    assert set(variables["variable"]) == set(values)
