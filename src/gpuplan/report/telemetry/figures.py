"""Figures beside a diagnosis, ready to show: minutes, stretches, backlog, targets, work."""

from collections.abc import Iterator

from gpuplan.domain.sheet import Table
from gpuplan.domain.telemetry.figures import BandsOverTime, ServiceFigures
from gpuplan.report.document import Document, pick, pick_each
from gpuplan.report.table import table
from gpuplan.units import MINUTE


def times_body(times: BandsOverTime | None) -> Document:
    """Minutes with their bands, stretches, and the band that suits this pool."""
    if times is None:
        return {"minutes": [], "episodes": [], "suggested_band": None, "tail": None}
    tail = {"calm": "calm_frac", "utilization": "use_frac", "wait_growth": "wait_growth_ratio"}
    return {
        "minutes": pick_each(times.minutes, "at_s", "band", utilization="use_frac"),
        "episodes": pick_each(times.episodes, "band", "begin_s", "end_s"),
        "suggested_band": {
            "low": times.suggested_low_frac,
            "high": times.suggested_high_frac,
        },
        "tail": times.tail and pick(times.tail, "n_devices", **tail),
    }


def service_body(service: ServiceFigures) -> Document:
    """Backlog, SLO and work as a document; None where nothing says it."""
    backlog = {
        "waiting_requests": "n_waiting_requests",
        "clear_s_with_one_more_replica": "clear_s",
        "n_more_replicas": "n_replicas_more",
    }
    rates = ("growth_requests_per_s", "served_requests_per_s", "deficit_frac")
    tokens = ("output_tokens_per_s", "input_tokens_per_s", "j_per_output_token")
    return {
        "backlog": service.backlog and pick(service.backlog, *rates, **backlog),
        "slo": service.slo
        and pick(
            service.slo, "limit_s", "attainment_frac", "binding_phase", burn_rate="burn_rate_ratio"
        ),
        "work": service.work and pick(service.work, *tokens, "mfu_frac", "mbu_frac"),
    }


def service_tables(service: ServiceFigures) -> Iterator[Table]:
    """What engines say, each a row with its value."""
    rows = [*_backlog(service), *_slo(service), *_work(service)]
    columns = {"figure": lambda row: row[0], ">value": lambda row: row[1]}
    yield table("Service and work", rows, columns)


def _backlog(service: ServiceFigures) -> Iterator[tuple[str, str]]:
    found = service.backlog
    if found is None:
        return
    yield "requests waiting", f"{found.n_waiting_requests:,.0f}"
    yield "growth of the backlog (requests/s)", f"{found.growth_requests_per_s:.2f}"
    if found.deficit_frac is not None:
        yield "deficit (share of demand)", f"{found.deficit_frac:.0%}"
    if found.clear_s is not None:
        yield "time to clear with one replica more (min)", f"{found.clear_s / MINUTE:,.0f}"
    if found.n_replicas_more is not None:
        yield "replicas more that drain it", str(found.n_replicas_more)


def _slo(service: ServiceFigures) -> Iterator[tuple[str, str]]:
    found = service.slo
    if found is None:
        return
    yield f"SLO attainment (TTFT within {found.limit_s:g} s)", f"{found.attainment_frac:.1%}"
    yield "burn rate of the error budget (1 %)", f"{found.burn_rate_ratio:.1f}"
    yield "binding phase", found.binding_phase


def _work(service: ServiceFigures) -> Iterator[tuple[str, str]]:
    found = service.work
    if found is None:
        return
    yield "output tokens/s", f"{found.output_tokens_per_s:,.0f}"
    if found.j_per_output_token is not None:
        yield "energy per output token (J)", f"{found.j_per_output_token:.3g}"
    if found.mfu_frac is not None:
        yield "model FLOPs utilization (MFU)", f"{found.mfu_frac:.1%}"
    if found.mbu_frac is not None:
        yield "model bandwidth utilization (MBU, weights)", f"{found.mbu_frac:.1%}"
