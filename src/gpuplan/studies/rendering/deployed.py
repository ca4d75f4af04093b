"""What the files of a plan are written from, in: inputs and an answer; out: its pools, whole.

The engine's settings are those that the plan was simulated with: they are taken from the same
candidate, not chosen again.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path

from gpuplan.catalog.offers import read_offers
from gpuplan.domain.inference.serving import EngineSettings, InferenceMemory
from gpuplan.domain.money.market import InstanceShape
from gpuplan.domain.plan.answer import (
    Answer,
    ChosenPlan,
    PlannedPool,
    PurchaseLine,
    Replay,
)
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.deployed import Deployed, DeployedPool, NodeShape, ServedModel
from gpuplan.domain.scenario.workload import Batch, Serving, Training, Workload
from gpuplan.domain.system.designed import DesignedPlan
from gpuplan.errors import InputError, one
from gpuplan.studies.day_replay.fresh import planned_candidate
from gpuplan.studies.inference.configuration import startup_of
from gpuplan.studies.naming import model_named
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.sizing.task import SizingTask, task_of

NAME_LENGTH = 40  # leaves room for what controllers append to the 63 characters of a DNS label
Shapes = Mapping[tuple[str, str], InstanceShape]


def deployed_of(inputs: PlanInputs, answer: Answer) -> Deployed:
    """Every pool of the plan with its model, engine and machine; InputError without a plan."""
    plan = answer.plan
    if plan is None:
        fix = "render a plan that was found; `gpuplan explain` says what stands in the way"
        raise one(InputError, answer.name, "plan", "there is none", fix)
    shapes = {
        (offer.cloud, offer.instance): offer.shape for offer in read_offers(inputs.request.store)
    }
    names = _names([f"{pool.workload} {pool.layout.role}".strip() for pool in plan.pools])
    made = answer.provenance
    origin = (
        f"plan {answer.name!r} of {made.as_of}, gpuplan {made.package_version}, "
        f"catalog {made.catalog_sha256[:12]}, scenario {made.scenario_sha256[:12]}"
    )
    pools = [
        _deployed(inputs, (answer, plan), pool, name, shapes)
        for pool, name in zip(plan.pools, names, strict=True)
    ]
    return Deployed(
        name=_label(answer.name),
        origin=origin,
        pools=tuple(pools),
        teams=inputs.scenario.teams,
    )


def with_racks(deployed: Deployed, designed: DesignedPlan) -> Deployed:
    """With the racks of the servers that stand on the user's site."""
    plans = (made.facility for made in designed.groups)
    return replace(deployed, facilities=tuple(plan for plan in plans if plan and plan.slots))


def _deployed(
    inputs: PlanInputs,
    made: tuple[Answer, ChosenPlan],
    pool: PlannedPool,
    name: str,
    shapes: Shapes,
) -> DeployedPool:
    answer, plan = made
    workload = inputs.scenario.workload(pool.workload)
    load = next((each for each in answer.load if each.workload == pool.workload), None)
    card = inputs.catalog.accelerators[pool.accelerator]  # type: ignore[index]
    replay = next((each for each in plan.replays if each.workload == pool.workload), None)
    least = pool.n_replicas if replay is None else _least(pool, replay)
    in_flight = None if load is None else load.n_in_flight
    return DeployedPool(
        name=name,
        pool=pool,
        card=card,
        node=_role_node(plan, pool, shapes),
        model=_repository(workload, inputs.request.store),
        load=load,
        promises=tuple(each for each in plan.slo.promises if each.workload == pool.workload),
        n_replicas_least=min(least, pool.n_replicas),
        served=_served(inputs, workload, pool, in_flight),
        run=workload.work if workload and isinstance(workload.work, Training) else None,
        team=(workload.team or "") if workload else "",
    )


def _repository(workload: Workload | None, store: Path | None) -> str:
    """Where an engine finds the model: owner/name of an abbreviated one, the folder of a file."""
    name = workload.model.name if workload and workload.model else None
    if not name or "/" in name:
        return (name or "").removesuffix("/config.json")
    try:
        known = model_named(name, store).name
    except InputError:  # its speed is the user's own figure: nothing else knows it
        return name
    return "/".join(known.split("/")[:2])  # of a pipeline, not its part


def _least(pool: PlannedPool, replay: Replay) -> int:
    """Replicas of the quietest hour with spares; of one role, its share of the groups there."""
    if not pool.layout.role:
        return replay.n_replicas_least + pool.n_spare_replicas
    serving = pool.n_replicas - pool.n_spare_replicas
    share = replay.n_replicas_least / max(1, replay.n_replicas_most)
    return ceil(serving * share) + pool.n_spare_replicas


def _served(
    inputs: PlanInputs, workload: Workload | None, pool: PlannedPool, in_flight: float | None
) -> ServedModel | None:
    """The engine of a pool that serves a language model; None for all other work."""
    if workload is None or not isinstance(workload.work, Serving | Batch) or not pool.engine:
        return None
    task = task_of(workload, inputs.scenario, inputs.around)
    found = planned_candidate(task, pool)
    if found is None or found.engine is None or found.settings is None:
        return None
    return engine_of(task, found, _per_replica(in_flight, pool))


def engine_of(task: SizingTask, found: Candidate, n_running: float | None) -> ServedModel:
    """What the engine of a candidate is started with."""
    assert found.engine is not None
    assert found.settings is not None
    published = task.model.checkpoint
    memory = task.evaluator.memory(found, task.longest_tokens)
    start = startup_of(task.model, found.layout, memory.weights_bytes)
    return ServedModel(
        engine=found.engine,
        settings=found.settings,
        is_published_precision=found.precision == (published.quantized or published.base).name,
        cache_precision=found.cache_precision,
        max_context_tokens=_context(task, memory, found.settings),
        startup_s=start["total"].high,
        n_running=n_running,
    )


def _context(task: SizingTask, memory: InferenceMemory, settings: EngineSettings) -> int | None:
    """Tokens that a request may have: as asked, else all that the model knows and the cache holds.

    An engine that is told nothing takes the model's own limit, and refuses to start where its
    cache cannot hold one such request.
    """
    work = task.workload.work
    requested = work.max_context_tokens if isinstance(work, Serving | Batch) else None
    if requested is not None or memory.block_bytes <= 0:
        return requested
    resident = int(memory.cache_bytes // memory.block_bytes) * settings.block_tokens
    known = task.model.max_context_tokens
    return resident if known is None else min(known, resident)


def _per_replica(in_flight: float | None, pool: PlannedPool) -> float | None:
    serving = pool.n_replicas - pool.n_spare_replicas
    return None if in_flight is None or serving < 1 else in_flight / serving


def _node(pool: PlannedPool, shapes: Shapes) -> NodeShape:
    """The machine that carries most of the pool; pools on others' nodes have one of their own."""
    if not pool.purchases:
        return NodeShape(cloud="", name="", region="", n_nodes=0, n_accelerators=0)
    line = max(pool.purchases, key=_n_accelerators)
    shape = shapes.get((line.cloud, line.offer))
    return NodeShape(
        cloud=line.cloud,
        name=line.offer,
        region=line.region,
        n_nodes=line.n_nodes,
        n_accelerators=line.n_accelerators_per_node,
        n_vcpu=shape.n_vcpu if shape else None,
        ram_bytes=shape.ram_bytes if shape else None,
        is_spot=line.purchase == "spot",
    )


def _role_node(plan: ChosenPlan, pool: PlannedPool, shapes: Shapes) -> NodeShape:
    """The machine of a pool; engines that decode stand on the nodes that prefill pays for."""
    if pool.layout.role != "decode":
        return _node(pool, shapes)
    mine = [each for each in plan.pools if each.workload == pool.workload and each.purchases]
    return replace(_node(mine[0], shapes), n_nodes=0) if mine else _node(pool, shapes)


def _n_accelerators(line: PurchaseLine) -> int:
    return line.n_nodes * line.n_accelerators_per_node


def _names(workloads: list[str]) -> list[str]:
    """A name for each pool: its workload's, numbered where a workload has several."""
    labels = [_label(each) for each in workloads]
    return [
        label if labels.count(label) == 1 else f"{label}-{labels[: i + 1].count(label)}"
        for i, label in enumerate(labels)
    ]


def _label(text: str) -> str:
    """The text as a DNS label: lower case, digits and hyphens, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())[:NAME_LENGTH].strip("-")
    return plain if plain[:1].isalpha() else f"pool-{plain}".strip("-")
