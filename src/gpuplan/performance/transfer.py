"""Bytes between places, in: size and route; out: seconds, and whether a step waits for them."""

from dataclasses import dataclass

from gpuplan.errors import InputError, one

# Assumption: copies from pinned memory reach 0.8 of one direction, 25 of 31.5 GB/s on Gen4; a
# measured one on Gen5 reached 0.88 [ml-engineering].
PINNED_FRAC = 0.8
# Assumption: pageable memory is first copied by one host core into a pinned buffer, at 6 GB/s on
# any generation.
PAGEABLE_BYTES_PER_S = 6e9
LAUNCH_S = 10e-6
# A transfer that is not hidden deserves a finding above this share of the step.
NOTABLE_FRAC = 0.1
LANE_BYTES_PER_S = {3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}  # one direction, after coding


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCopy:
    """One copy from host to device per step, and what it does to the step."""

    copy_s: float
    step_s: float  # of the whole step, copy included
    exposed_s: float  # part of the copy that the step waits for
    exposed_frac: float  # of the step

    @property
    def is_notable(self) -> bool:
        """Worth a finding: the device idles more than a tenth of its time."""
        return self.exposed_frac > NOTABLE_FRAC


def pcie_bytes_per_s(generation: int, n_lanes: int = 16) -> float:
    """Line rate of one direction."""
    if generation not in LANE_BYTES_PER_S or n_lanes < 1:
        found = f"got generation {generation}, {n_lanes} lanes"
        raise one(InputError, "transfer", "pcie", found, "use generation 3 to 6 and 1 to 16 lanes")
    return LANE_BYTES_PER_S[generation] * n_lanes


def host_copy_time_s(
    message_bytes: float, line_bytes_per_s: float, *, is_pinned: bool = True
) -> float:
    """Host to device or back. Pageable memory adds a copy by a host core."""
    reached = line_bytes_per_s * PINNED_FRAC
    rate = reached if is_pinned else min(PAGEABLE_BYTES_PER_S, reached)
    return LAUNCH_S + message_bytes / rate


def step_with_copy(copy_s: float, compute_s: float, *, is_overlapped: bool) -> HostCopy:
    """A pipelined copy runs beside the computation (maximum), another before it (sum).

    Only copies from pinned memory can overlap; the caller says whether they do.
    """
    step_s = max(copy_s, compute_s) if is_overlapped else copy_s + compute_s
    exposed_s = step_s - compute_s
    exposed_frac = exposed_s / step_s if step_s > 0 else 0.0
    return HostCopy(copy_s=copy_s, step_s=step_s, exposed_s=exposed_s, exposed_frac=exposed_frac)


def network_transfer_time_s(
    message_bytes: float, line_bytes_per_s: float, *, efficiency_frac: float = 0.7
) -> float:
    """Bulk data over a wide-area line; long-lived flows reach about 70 % of it (Assumption)."""
    if not 0 < efficiency_frac <= 1:
        found = f"got {efficiency_frac}"
        raise one(
            InputError, "transfer", "efficiency_frac", found, "use a share above 0, at most 1"
        )
    return message_bytes / (line_bytes_per_s * efficiency_frac)
