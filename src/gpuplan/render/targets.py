"""The table of targets: each is a function from a plan's pools to files."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from gpuplan.domain.plan.deployed import Deployed, RenderedFile
from gpuplan.errors import InputError, one, unknown_choice
from gpuplan.render.bom import bom_csv, bom_xlsx, rack_csv
from gpuplan.render.commands.engine import engine_scripts
from gpuplan.render.commands.training import training_scripts
from gpuplan.render.kubernetes.capacity import (
    karpenter_files,
    keda_files,
    kserve_files,
    kueue_files,
)
from gpuplan.render.kubernetes.platforms import dynamo_files, llm_d_files
from gpuplan.render.kubernetes.serving import kubernetes_files
from gpuplan.render.monitoring.grafana import grafana_files
from gpuplan.render.monitoring.prometheus import prometheus_files
from gpuplan.render.schedulers.clouds import dstack_files, skypilot_files, terraform_files
from gpuplan.render.schedulers.slurm import slurm_files


class Target(NamedTuple):
    """Who reads the files, what they are, and what a plan must have for them."""

    write: Callable[[Deployed], Iterable[RenderedFile]]
    what: str
    needs: str  # said where a plan gives no file


RACKED = ("racks", "xlsx", "all")  # targets that say where servers stand
SERVED = "a language model behind this engine"
ANY_WORK = "a named model that is served by an engine, or a training run"

TARGETS = {
    "kubernetes": Target(
        kubernetes_files, "Deployment, LeaderWorkerSet, JobSet, PDB, HPA", ANY_WORK
    ),
    "kubernetes-dra": Target(
        partial(kubernetes_files, dra=True), "the same with ResourceClaims", ANY_WORK
    ),
    "kserve": Target(kserve_files, "InferenceService", "a served model within one server"),
    "kueue": Target(kueue_files, "queues and quotas", "accelerators"),
    "keda": Target(keda_files, "ScaledObject by requests in flight", "vLLM or SGLang"),
    "karpenter": Target(karpenter_files, "NodePool", "servers rented from AWS or Azure"),
    "llm-d": Target(llm_d_files, "values of ModelService", "vLLM within one server, no slices"),
    "dynamo": Target(dynamo_files, "DynamoGraphDeployment", "vLLM or SGLang on whole NVIDIA GPUs"),
    "vllm": Target(partial(engine_scripts, engine="vllm"), "vllm serve", SERVED),
    "sglang": Target(partial(engine_scripts, engine="sglang"), "sglang.launch_server", SERVED),
    "tensorrt-llm": Target(partial(engine_scripts, engine="trtllm"), "trtllm-serve", SERVED),
    "training": Target(training_scripts, "torchrun with Megatron-LM, torchtitan or TRL", "a run"),
    "slurm": Target(slurm_files, "sbatch scripts", ANY_WORK),
    "skypilot": Target(skypilot_files, "tasks and services", f"{ANY_WORK}, on GPUs or CPUs"),
    "dstack": Target(dstack_files, "tasks and services", f"{ANY_WORK}, on GPUs or CPUs"),
    "terraform": Target(terraform_files, "variables of node groups", "nodes"),
    "prometheus": Target(prometheus_files, "recording and alert rules", "a served model, or GPUs"),
    "grafana": Target(grafana_files, "dashboard", "pools"),
    "bom": Target(bom_csv, "bill of materials, CSV", "pools"),
    "racks": Target(
        rack_csv, "rack sheet, CSV", "servers of known height on your own site (site.rack)"
    ),
    "xlsx": Target(bom_xlsx, "bill of materials and rack sheet, workbook", "pools"),
}


def rendered(deployed: Deployed, target: str) -> tuple[RenderedFile, ...]:
    """Files of one target, or of all that the plan gives any for; InputError where it gives none.

    "all" leaves out the second way to ask for the same devices: nobody applies both.
    """
    if target == "all":
        return tuple(
            RenderedFile(path=f"{name}/{file.path}", content=file.content)
            for name, each in TARGETS.items()
            if name != "kubernetes-dra"
            for file in each.write(deployed)
        )
    if target not in TARGETS:
        raise unknown_choice("render", "--to", target, [*TARGETS, "all"])
    found = tuple(TARGETS[target].write(deployed))
    if not found:
        what = f"the plan has nothing for {target}, which needs {TARGETS[target].needs}"
        fix = "use another target; --to all writes every one that fits"
        raise one(InputError, "render", "--to", what, fix)
    return found
