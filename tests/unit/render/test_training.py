"""Commands of runs: layout, batch and recomputation are the plan's."""

import shlex

import pytest

from fakes.deployed import deployed, deployed_pool, run_pool, training
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.render.commands.training import Rendezvous, framework_of, run_command, training_scripts

MEGATRON = PoolLayout(tp=2, pp=2, dp=4, sharding="zero1", n_servers_per_replica=2)
FSDP = PoolLayout(tp=1, pp=1, dp=16, sharding="zero3", n_servers_per_replica=2)
STEPS = RunSteps(micro_batch=2, global_batch=256, recompute="full", vp=2, fabric="400 Gbit/s")


def words(one):
    text = run_command(one, Rendezvous()).replace("\\\n", " ")
    return dict(zip(shlex.split(text), [*shlex.split(text)[1:], ""], strict=True))


def test_megatron_gets_the_layout():
    found = words(run_pool(MEGATRON, STEPS))
    assert found["--tensor-model-parallel-size"] == "2"
    assert found["--pipeline-model-parallel-size"] == "2"
    assert found["--num-virtual-stages-per-pipeline-rank"] == "2"
    assert found["--micro-batch-size"] == "2"
    assert found["--global-batch-size"] == "256"
    assert "--use-distributed-optimizer" in found
    assert "--sequence-parallel" in found
    assert found["--recompute-granularity"] == "full"


def test_samples_are_sequences_of_all_epochs():
    found = words(run_pool(MEGATRON, STEPS))
    assert found["--train-samples"] == str(2 * 8_192_000_000 // 8192)


def test_the_launcher_starts_a_process_for_each_accelerator():
    found = words(run_pool(MEGATRON, STEPS))
    assert (found["--nnodes"], found["--nproc-per-node"]) == ("2", "8")


def test_torchtitan_shards_over_all_ranks():
    found = words(run_pool(FSDP, STEPS, "torchtitan"))
    assert found["--parallelism.data_parallel_shard_degree"] == "-1"
    assert found["--training.steps"] == str(-(-2_000_000 // 256))
    assert found["--activation_checkpoint.mode"] == "full"


def test_hybrid_sharding_shards_within_a_server():
    layout = PoolLayout(tp=1, pp=1, dp=16, sharding="hsdp", n_servers_per_replica=2)
    found = words(run_pool(layout, STEPS, "torchtitan"))
    assert found["--parallelism.data_parallel_shard_degree"] == "8"
    assert found["--parallelism.data_parallel_replicate_degree"] == "2"


@pytest.mark.parametrize(("method", "is_narrow"), [("lora", False), ("qlora", True)])
def test_adapters_are_trained_with_peft(method, is_narrow):
    one = run_pool(FSDP, STEPS, run=training(method=method, lora_rank=32))
    found = words(one)
    assert framework_of(one) == "trl"
    assert found["--lora_r"] == "32"
    assert found["--gradient_accumulation_steps"] == "8"  # 256 / (2 x 16)
    assert ("--load_in_4bit" in found) is is_narrow


def test_the_rendezvous_is_the_schedulers():
    text = run_command(run_pool(MEGATRON, STEPS), Rendezvous(rank="$R", address="$A"))
    assert '--node-rank "$R" --master-addr "$A"' in text


def test_only_runs_get_a_script():
    (script,) = training_scripts(deployed(deployed_pool(), run_pool(MEGATRON, STEPS)))
    assert script.path == "train-pretrain.sh"
    assert b"deadline: 480.0 h predicted, 720.0 h allowed" in script.content
    assert b"network as planned: 400 Gbit/s" in script.content
