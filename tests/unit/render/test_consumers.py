"""The tools themselves read their files, where they are installed (`python3 dev.py consumers`)."""

import argparse
import json
import os
import shlex
import subprocess
from shutil import which

import pytest
import yaml

from fakes.deployed import deployed, deployed_pool, node, run_pool, served_model, spread_pool
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.render.targets import rendered

RUN = run_pool(
    PoolLayout(tp=2, pp=1, dp=8, sharding="zero1", n_servers_per_replica=2),
    RunSteps(micro_batch=1, global_batch=64),
)
POOLS = {
    "steady": deployed_pool(),
    "scaled": deployed_pool(n_replicas_least=1),
    "spot": deployed_pool("l40s", node=node(is_spot=True, cloud="", name="", region="")),
    "amd": deployed_pool("mi300x", node=node(cloud="", name="", region="")),
    "wide": spread_pool(PoolLayout(tp=8, pp=2, n_servers_per_replica=2)),
    "sglang": deployed_pool(served=served_model("sglang", "0.5.9")),
    "run": RUN,
    "prefill": spread_pool(PoolLayout(tp=2, pp=1, role="prefill", network_bytes_per_s=4e11)),
}


@pytest.mark.parametrize("name", POOLS)
def test_dstack_parses_its_configuration(name):
    models = pytest.importorskip(
        "dstack._internal.core.models.configurations", reason="dstack is not installed"
    )
    one = POOLS[name]
    (file,) = rendered(deployed(one), "dstack")
    found = models.parse_apply_configuration(yaml.safe_load(file.content))
    n = 8 if one.run is not None else one.n_per_pod
    assert (found.resources.gpu.count.min, found.resources.gpu.count.max) == (n, n)


@pytest.mark.parametrize("name", POOLS)
def test_skypilot_parses_its_task(name, tmp_path):
    sky = pytest.importorskip("sky", reason="SkyPilot is not installed")
    one = POOLS[name]
    (file,) = rendered(deployed(one), "skypilot")
    document = yaml.safe_load(file.content)
    document["resources"].pop("infra", None)  # clouds' catalogs are fetched from the network
    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(document))
    task = sky.Task.from_yaml(str(path))
    (resources,) = task.resources
    assert sum(resources.accelerators.values()) == (8 if one.run is not None else one.n_per_pod)
    assert (task.service is None) is (one.run is not None)


def test_terraform_reads_json_of_the_types_that_it_is_told():
    values, variables = (json.loads(file.content) for file in rendered(deployed(RUN), "terraform"))
    told = variables["variable"]["gpuplan_node_groups"]["type"]
    (group,) = values["gpuplan_node_groups"].values()
    assert all(f"{name} = " in told for name in group)


def test_terraform_validates_its_variables(tmp_path):
    """The program itself: syntax, types, and values that fit them."""
    program = which("terraform")
    if program is None:
        pytest.skip("terraform is not installed")
    for file in rendered(deployed(RUN, POOLS["spot"]), "terraform"):
        (tmp_path / file.path).write_bytes(file.content)
    quiet = {**os.environ, "TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1"}
    for job in (["validate"], ["plan", "-input=false", "-refresh=false"]):
        done = subprocess.run(
            [program, *job, "-no-color"],
            check=False,
            cwd=tmp_path,
            env=quiet,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _words(one, engine):
    (file,) = rendered(deployed(one), engine)
    text = file.content.decode().partition("set -eu\n")[2]
    return shlex.split(text.replace("\\\n", " "))


LAYOUTS = {
    "one": PoolLayout(tp=1, pp=1),
    "tp": PoolLayout(tp=8, pp=1),
    "pp": PoolLayout(tp=8, pp=2, n_servers_per_replica=2),
    "dp-ep": PoolLayout(tp=1, pp=1, dp=8, ep=8),
    "decode": PoolLayout(tp=4, pp=1, role="decode", network_bytes_per_s=4e11),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_vllm_parses_its_command(name):
    """`python3 dev.py consumers --engine vllm`: the parser of the newest vLLM."""
    pytest.importorskip("vllm", reason="vLLM is not installed")
    platforms = pytest.importorskip("vllm.platforms")
    cpu = pytest.importorskip("vllm.platforms.cpu")
    platforms._current_platform = cpu.CpuPlatform()  # a machine without GPUs parses too
    arguments = pytest.importorskip("vllm.utils.argparse_utils")
    launcher = pytest.importorskip("vllm.entrypoints.launchers.cli_args")
    parser = launcher.make_arg_parser(arguments.FlexibleArgumentParser())
    one = spread_pool(LAYOUTS[name])
    words = _words(one, "vllm")
    found = parser.parse_args(["--model", *words[2:]])
    layout, settings = LAYOUTS[name], one.served.settings
    sizes = (found.tensor_parallel_size, found.pipeline_parallel_size, found.data_parallel_size)
    assert sizes == (layout.tp, layout.pp, layout.dp)
    assert found.enable_expert_parallel is (layout.ep > 1)
    assert (found.max_num_seqs, found.max_model_len) == (settings.max_sequences, 32768)
    assert (found.max_num_batched_tokens, found.quantization) == (settings.max_batch_tokens, "fp8")
    sent = found.kv_transfer_config
    assert (sent.kv_connector if sent else None) == ("NixlConnector" if layout.role else None)


@pytest.mark.parametrize("name", LAYOUTS)
def test_sglang_parses_its_command(name):
    """`python3 dev.py consumers --engine sglang`: the parser of the newest SGLang."""
    arguments = pytest.importorskip("sglang.srt.server_args", reason="SGLang is not installed")
    parser = argparse.ArgumentParser()
    arguments.ServerArgs.add_cli_args(parser)
    one = spread_pool(LAYOUTS[name], served=served_model("sglang", "0.5.23"))
    found = parser.parse_args(_words(one, "sglang")[3:])
    layout = LAYOUTS[name]
    assert (found.tp_size, found.pp_size) == (layout.tp * layout.dp, layout.pp)
    assert (found.dp_size, found.ep_size) == (layout.dp, layout.ep)
    assert (found.max_running_requests, found.context_length) == (256, 32768)
