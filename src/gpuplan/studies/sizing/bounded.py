"""A candidate with the least that it can cost, before anything is simulated."""

from dataclasses import replace

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.sizing import NotSized
from gpuplan.studies.sizing.simulator import FleetSimulator


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedCandidate:
    """A candidate with the least that it can cost."""

    candidate: Candidate
    simulator: FleetSimulator | None
    n_least: int
    n_at_loads: Ints  # at least, at every load
    cost_usd_per_h: float | None  # at the peak of the first period
    costs_usd_per_h: Floats | None  # at every load
    may_be_likely: bool  # some number of replicas could reach the probability asked for

    @property
    def order(self) -> tuple[bool, bool, float, bool, int, int, int, float, str]:
        """Priced first, then likely, cheap, whole, few, of one engine, in its usual steps, joined.

        Beside one that is likely enough, those that never are need not be simulated.
        """
        cost, candidate = self.cost_usd_per_h, self.candidate
        n_tokens = candidate.settings.max_batch_tokens if candidate.settings else 0
        return (
            cost is None,
            not self.may_be_likely,
            cost or 0.0,
            candidate.share is not None,
            candidate.n_accelerators,
            candidate.layout.n_engines,
            -n_tokens,
            -self.network_bytes_per_s,
            candidate.name,
        )

    @property
    def network_bytes_per_s(self) -> float:
        """Between the servers of a replica; 0 within one."""
        return self.candidate.layout.network_bytes_per_s or 0.0

    @property
    def apart_from_network(self) -> Candidate:
        """The candidate whatever its network."""
        layout = replace(self.candidate.layout, network_bytes_per_s=None)
        return replace(self.candidate, layout=layout)

    def skipped(self, why: str) -> NotSized:
        """The candidate with why it is not sized."""
        return NotSized(
            candidate=self.candidate,
            n_replicas_least=self.n_least,
            cost_least_usd_per_h=self.cost_usd_per_h,
            why=why,
        )
