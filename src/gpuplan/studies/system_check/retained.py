"""Data that a workload retains: dataset, checkpoints, artifacts and logs, over the horizon."""

from collections.abc import Iterator

from gpuplan.design.rules import assumed
from gpuplan.design.storage import capacity_growth
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import DataPath, Retention, Training, Workload
from gpuplan.domain.system.parts import CapacityPoint, HeldData
from gpuplan.studies.system_check.placement import Placement
from gpuplan.studies.system_check.surroundings import state_bytes
from gpuplan.units import DAY, GB, TB

LOG_BYTES_PER_S = 0.1 * GB / DAY  # of one accelerator: Assumption: metrics at 15 s and text logs
KEYS = "workloads[].data_path.retention"


def retained(
    scenario: Scenario, work: Workload, placement: Placement
) -> tuple[tuple[CapacityPoint, ...], tuple[Assumption, ...]]:
    """What storage must hold from now to the end of the horizon; nothing without a data path."""
    path = work.data_path
    if path is None or path.staging is None:
        return (), ()
    kept = path.retention or Retention()
    checkpoint_bytes, notes = _checkpoint_bytes(work, placement)
    log = LOG_BYTES_PER_S if kept.log_bytes_per_s is None else kept.log_bytes_per_s
    held = HeldData(
        dataset_bytes=path.staging.dataset_bytes,
        dataset_growth_frac=kept.dataset_growth_frac or 0.0,
        checkpoint_bytes=checkpoint_bytes,
        artifacts_bytes_per_s=kept.artifacts_bytes_per_s or 0.0,
        log_bytes_per_s=log * placement.n_accelerators,
    )
    points = capacity_growth(held, scenario.budget.horizon_s)
    return points, (*notes, *_assumed(path))


def _checkpoint_bytes(work: Workload, placement: Placement) -> tuple[float, tuple[Assumption, ...]]:
    """Retained checkpoints: the state as given, of the model, or at most all device memory."""
    if not work.is_training:
        return 0.0, ()
    run, build = work.work, placement.build
    given = run.checkpoint.state_bytes if isinstance(run, Training) and run.checkpoint else None
    size = given or state_bytes(work)
    notes = assumed(build, "links.kept_checkpoints")
    if size is None:
        size = placement.n_accelerators * placement.accelerator.memory.visible_bytes
        why = "neither a model nor its state is given: at most what device memory holds"
        key = "workloads[].training.checkpoint.state_tb"
        notes += (assume("size of a checkpoint", f"{size / TB:.2f} TB", why, key),)
    return build.links.n_kept_checkpoints * size, notes


def _assumed(path: DataPath) -> Iterator[Assumption]:
    kept = path.retention or Retention()
    if kept.dataset_growth_frac is None:
        yield assume("growth of the dataset", "0 %/month", "none is given", KEYS)
    if kept.log_bytes_per_s is None:
        each = f"{LOG_BYTES_PER_S * DAY / GB:g} GB/day and accelerator"
        yield assume("retained logs", each, "metrics and text logs, none deleted", KEYS)
    if kept.artifacts_bytes_per_s is None:
        yield assume("retained artifacts", "none", "none are given", KEYS)
