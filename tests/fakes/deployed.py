"""Pools as renderers get them: a served model, a wide one, a share of a card, runs."""

from dataclasses import replace

from fakes.plans import estimate, pool
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import EngineSettings
from gpuplan.domain.plan.answer import PlannedLoad, SloResult
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.domain.plan.deployed import Deployed, DeployedPool, NodeShape, ServedModel
from gpuplan.domain.scenario.workload import Training

SETTINGS = EngineSettings(
    name="vllm", memory_use_frac=0.9, max_sequences=256, max_batch_tokens=8192, block_tokens=16,
    sampler_bytes_per_logit=38.0, counts_graphs=False,
)  # fmt: skip


def served_model(engine: str = "vllm", version: str = "0.15", **changes) -> ServedModel:
    found = ServedModel(
        engine=EngineChoice(name=engine, version=version),
        settings=SETTINGS,
        is_published_precision=False,
        cache_precision="bf16",
        max_context_tokens=32768,
        startup_s=200.0,
        n_running=16.4,
    )
    return replace(found, **changes)


def node(**changes) -> NodeShape:
    found = NodeShape(
        cloud="acme", name="n2-H100x2", region="eu-1", n_nodes=3, n_accelerators=2, n_vcpu=80,
        ram_bytes=400e9,
    )  # fmt: skip
    return replace(found, **changes)


def promise(what: str = "ttft p95", limit_s: float = 2.0, reached_s: float = 0.4) -> SloResult:
    return SloResult(
        workload="chat", what=what, limit_s=limit_s, reached_s=estimate(reached_s), is_kept=True
    )


def load() -> PlannedLoad:
    return PlannedLoad(
        workload="chat", kind="online_inference", model="org/model", peak_requests_per_s=3.4,
        mean_requests_per_s=2.0, residence_s=9.6, n_in_flight=32.8, lines=(),
    )  # fmt: skip


def deployed_pool(accelerator: str = "h100-sxm", **changes) -> DeployedPool:
    found = DeployedPool(
        name="chat",
        pool=replace(pool(), accelerator=accelerator),
        card=read_catalog().accelerators[accelerator],
        node=node(),
        model="org/model",
        load=load(),
        promises=(promise(), promise("tpot p95", 0.04, 0.03)),
        n_replicas_least=3,
        served=served_model(),
    )
    return replace(found, **changes)


def spread_pool(layout: PoolLayout, accelerator: str = "h100-sxm", **changes) -> DeployedPool:
    """A served pool with this layout."""
    one = deployed_pool(accelerator, **changes)
    return replace(one, pool=replace(one.pool, layout=layout))


def training(**changes) -> Training:
    found = Training(
        method="full", n_tokens=8.192e9, n_samples=None, n_epochs=2.0, sequence_tokens=8192
    )
    return replace(found, **changes)


def run_pool(
    layout: PoolLayout, steps: RunSteps, engine: str = "megatron", **changes
) -> DeployedPool:
    """A training run over two servers of eight."""
    whole = replace(
        pool(16), layout=layout, steps=steps, engine=engine, n_replicas=1, n_spare_replicas=0,
        precision="bf16",
    )  # fmt: skip
    return deployed_pool(
        name="pretrain",
        pool=whole,
        node=node(n_nodes=2, n_accelerators=8),
        served=None,
        load=None,
        promises=(promise("deadline", 30 * 86400.0, 20 * 86400.0),),
        run=changes.pop("run", training()),
        **changes,
    )


def deployed(*pools: DeployedPool) -> Deployed:
    return Deployed(name="shop", origin="plan 'shop' of 2026-11-16", pools=pools)
