"""What one iteration of a setup does, with the link that joins its ranks."""

from functools import lru_cache
from typing import Generic, TypeVar

from gpuplan.calibration.links import fabric_link, link_of
from gpuplan.candidates.propose import n_in_server
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.links import LinkModel
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.serving import LoraUse, ServingLayout, StorageFormats
from gpuplan.domain.model.network import Model
from gpuplan.performance.collectives import all_to_all_curve
from gpuplan.performance.kernels.columns import all_floats
from gpuplan.performance.kernels.step import StepWork
from gpuplan.performance.serving.exchange import point_to_point_curve
from gpuplan.performance.serving.work import step_work

NETWORK = "network"  # a scale-up link of this name is a network between nodes
LINK_ENGINES = {"trtllm": "tensorrt-llm"}
# Deployments whose work is kept: a sweep over loads derives it once.
N_KEPT = 1024
Thing = TypeVar("Thing")


class ById(Generic[Thing]):
    """Equal only to itself: a frozen value as a key, without comparing all that it holds."""

    __slots__ = ("value",)

    def __init__(self, value: Thing) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.value is other.value


def setup_work(setup: ServingSetup) -> StepWork:
    """Work of one iteration, before any efficiency."""
    return deployment_work(
        ById(setup.model),
        ById(setup.accelerator),
        setup.storage,
        setup.layout,
        setup.engine.name,
        setup.load.adapters,
    )


@lru_cache(maxsize=N_KEPT)
def deployment_work(
    model: ById[Model],
    accelerator: ById[Accelerator],
    storage: StorageFormats,
    layout: ServingLayout,
    engine: str,
    adapters: LoraUse | None,
) -> StepWork:
    """Work that does not depend on the load."""
    work = step_work(
        model.value,
        accelerator.value,
        storage=storage,
        layout=layout,
        link=_link(accelerator.value, layout, engine),
        adapters=adapters,
    )
    return all_floats(_over_servers(work, layout, n_in_server(accelerator.value)))


def _link(accelerator: Accelerator, layout: ServingLayout, engine_name: str) -> LinkModel:
    """What joins the ranks of one stage, which stand in one server."""
    scale_up = accelerator.scale_up
    if scale_up is not None and scale_up.name == NETWORK:
        return fabric_link(scale_up.bytes_per_s)
    engine = LINK_ENGINES.get(engine_name, engine_name)
    n_ranks = layout.tp if layout.is_expert_parallel_over_servers else layout.n_joined
    return link_of(accelerator, n_ranks=max(2, n_ranks), engine=engine)


def _over_servers(work: StepWork, layout: ServingLayout, n_server: int) -> StepWork:
    """Stages and experts of several servers send over the network, each rank its share of all NICs.

    Of the pairs of ranks, those inside a server do not load its NICs.
    """
    if layout.network_bytes_per_s is None:
        return work
    if layout.is_expert_parallel_over_servers:
        n, n_here = layout.ep, min(n_server, layout.ep // 2)
        share = (n - 1) / (n_here * (n - n_here))
        dispatch = all_to_all_curve(n, fabric_link(share * layout.network_bytes_per_s))
        return work._replace(exchange=work.exchange._replace(dispatch=dispatch))
    if layout.pp == 1:
        return work
    stage = point_to_point_curve(fabric_link(layout.network_bytes_per_s))
    return work._replace(exchange=work.exchange._replace(stage=stage))
