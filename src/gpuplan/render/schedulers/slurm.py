"""Batch scripts for Slurm: a run over its nodes, or replicas as an array of jobs."""

from collections.abc import Iterator
from math import ceil

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile
from gpuplan.render.commands.engine import wrapped
from gpuplan.render.commands.training import Rendezvous, n_nodes, notes_of, per_node, run_command
from gpuplan.render.reasons import commented, head, reasons
from gpuplan.render.text import text_file

MARGIN = 1.2  # of the predicted time, before Slurm ends a run
SLURM = Rendezvous(rank="$SLURM_NODEID", address="$MASTER_ADDR")
FIRST_NODE = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'


def slurm_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """A script for each run and for each served pool."""
    for one in deployed.pools:
        notes = [*head(deployed), *reasons(one)]
        if one.run is not None:
            yield text_file(f"{one.name}.sbatch", _run(one, [*notes, *notes_of(one)]))
        elif one.served is not None:
            yield text_file(f"{one.name}.sbatch", _serve(one, notes))


def _script(options: list[tuple[str, object]], notes: list[str], body: str) -> str:
    requested = "".join(f"#SBATCH --{name}={value}\n" for name, value in options)
    return f"#!/usr/bin/env bash\n{requested}{commented(notes)}set -eu\n{body}\n"


def _run(one: DeployedPool, notes: list[str]) -> str:
    options: list[tuple[str, object]] = [
        ("job-name", one.name),
        ("nodes", n_nodes(one)),
        ("ntasks-per-node", 1),
        ("gpus-per-node", per_node(one)),
        *_time(one),
        ("exclusive", "user"),
        ("requeue", ""),
    ]
    inner = run_command(one, SLURM).replace("'", "'\\''")
    body = f"{FIRST_NODE}\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\nsrun bash -c '{inner}'"
    return _script(options, notes, body).replace("--requeue=\n", "--requeue\n")


def _time(one: DeployedPool) -> list[tuple[str, object]]:
    reached = [each.reached_s for each in one.promises if each.reached_s is not None]
    if not reached:
        return []
    minutes = ceil(MARGIN * reached[0].high / 60)
    days, rest = divmod(minutes, 24 * 60)
    return [("time", f"{days}-{rest // 60:02d}:{rest % 60:02d}:00")]


def _serve(one: DeployedPool, notes: list[str]) -> str:
    assert one.served is not None
    options: list[tuple[str, object]] = [
        ("job-name", one.name),
        ("array", f"1-{one.pool.n_replicas}"),
        ("nodes", one.pool.layout.n_servers_per_replica),
        ("ntasks-per-node", 1),
        ("gpus-per-node", one.n_per_pod),
    ]
    return _script(options, notes, f"srun {wrapped(one, one.served)}")
