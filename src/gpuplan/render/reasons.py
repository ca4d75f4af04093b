"""The numbers of the plan that a file follows from, as comments."""

from collections.abc import Iterable, Iterator

from gpuplan.domain.plan.answer import SloResult
from gpuplan.domain.plan.deployed import Deployed, DeployedPool


def head(deployed: Deployed) -> list[str]:
    """Where a file comes from."""
    return [f"Rendered by gpuplan from {deployed.origin}."]


def reasons(one: DeployedPool) -> Iterator[str]:
    """Why the pool is what it is: load, replicas, latency, money."""
    pool, load = one.pool, one.load
    if load is not None and load.peak_requests_per_s:
        yield f"{pool.workload}: {load.peak_requests_per_s:.3g} requests/s at the peak."
    spare = f", {pool.n_spare_replicas} of them to spare" if pool.n_spare_replicas else ""
    spread = pool.layout.share or f"{pool.layout.role} {pool.layout.spread.name}".strip()
    ending = "" if pool.n_replicas == 1 else "s"
    what = "" if one.run is not None else f"{pool.n_replicas} replica{ending}{spare}, "
    fleet = f"{pool.n_accelerators} x {pool.accelerator}"
    yield f"{fleet} ({what}{spread}, {pool.precision}); {pool.source}."
    yield from (_target_text(each) for each in one.promises if each.reached_s is not None)
    if pool.use.peak_frac is not None and pool.use.safe_frac is not None:
        yield (
            f"Utilization {pool.use.peak_frac:.0%} at the peak; SLOs hold up to "
            f"{pool.use.safe_frac:.0%}."
        )


def _target_text(slo: SloResult) -> str:
    assert slo.reached_s is not None
    reached, limit = slo.reached_s.value, slo.limit_s
    if limit >= 3600:
        return f"{slo.what}: {reached / 3600:.1f} h predicted, {limit / 3600:.1f} h allowed."
    return f"{slo.what}: {reached * 1e3:.0f} ms predicted, {limit * 1e3:.0f} ms allowed."


def commented(lines: Iterable[str], mark: str = "#") -> str:
    """Lines as a block of comments; what comes from outside cannot leave its line."""
    return "".join(f"{mark} {' '.join(line.split())}\n" for line in lines)
