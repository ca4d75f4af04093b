"""What one iteration of a setup does, with the link that joins its ranks."""

from gpuplan.calibration.links import fabric_link, link_of
from gpuplan.domain.links import LinkModel
from gpuplan.domain.performance import ServingSetup
from gpuplan.performance.kernels.step import StepWork
from gpuplan.performance.work import step_work

NETWORK = "network"  # a scale-up link of this name is a network between machines
LINK_ENGINES = {"trtllm": "tensorrt-llm"}


def setup_work(setup: ServingSetup) -> StepWork:
    """Work of one iteration, before any efficiency."""
    return step_work(
        setup.model,
        setup.accelerator,
        storage=setup.storage,
        layout=setup.layout,
        link=setup_link(setup),
        adapters=setup.load.adapters,
    )


def setup_link(setup: ServingSetup) -> LinkModel:
    """What joins the ranks of one replica."""
    island = setup.accelerator.scale_up
    if island is not None and island.name == NETWORK:
        return fabric_link(island.bytes_per_s)
    engine = LINK_ENGINES.get(setup.engine.name, setup.engine.name)
    n_ranks = setup.layout.tp * setup.layout.dp * setup.layout.cp
    return link_of(setup.accelerator, n_ranks=max(2, n_ranks), engine=engine)
