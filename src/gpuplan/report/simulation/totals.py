"""Sums over a simulated run as a table: what the fleet delivered, and what it took."""

from gpuplan.domain.sheet import Table
from gpuplan.domain.simulation.outcome import EngineTotals
from gpuplan.domain.simulation.simulation import NetworkSimulation, Simulation, StreamedSimulation
from gpuplan.report.formats import count
from gpuplan.units import KWH

Run = Simulation | StreamedSimulation | NetworkSimulation


def _hit_rows(totals: EngineTotals) -> list[tuple[str, str]]:
    if not totals.n_hit_tokens:
        return []
    share = totals.n_hit_tokens / totals.n_asked_tokens
    return [("prompt tokens found in the cache", f"{100 * share:.1f} %")]


def totals_table(found: Run) -> Table:
    """Rates, shares, power and counts; without an objective nothing is within it."""
    statistics, totals = found.statistics, found.outcome.totals
    delivery = statistics.delivery
    is_given = found.slo.is_given
    good = "within the objective" if is_given else "served (no objective was given)"
    within = f"  of them {good}"
    rows = [
        ("requests a second", f"{delivery.requests_per_s:,.2f}"),
        *([(within, f"{delivery.good_requests_per_s:,.2f}")] if is_given else []),
        ("output tokens a second", f"{statistics.output_tokens_per_s:,.0f}"),
        *([(within, f"{delivery.good_output_tokens_per_s:,.0f}")] if is_given else []),
        ("busy share of the time", f"{100 * statistics.busy_frac:.1f} %"),
        ("precision: useful share of paid time", f"{100 * statistics.precision_frac:.1f} %"),
        (f"recall: requests {good}", f"{100 * statistics.recall_frac:.1f} %"),
        (f"recall: tokens {good}", f"{100 * delivery.token_recall_frac:.1f} %"),
        *_power_rows(found),
        *_hit_rows(totals),
        ("preemptions", count(totals.n_preemptions)),
        ("iterations", count(totals.n_steps)),
        ("simulated", f"{totals.span_s:,.1f} s"),
        ("requests simulated a second", f"{found.outcome.n_requests / found.wall_s:,.0f}"),
    ]
    return Table(
        title="The fleet", columns=("measure", "value"), rows=tuple(rows), right=("value",)
    )


def _power_rows(found: Run) -> list[tuple[str, str]]:
    power = found.power
    if power is None:
        return []
    rows = [
        ("power of the accelerators", f"{power.mean_power_w.value / 1e3:,.2f} kW"),
        ("energy of the accelerators", f"{power.energy_j.value / KWH:,.3f} kWh"),
    ]
    each = power.energy_j_per_output_token
    return rows if each is None else [*rows, ("energy per output token", f"{each.value:.3f} J")]
