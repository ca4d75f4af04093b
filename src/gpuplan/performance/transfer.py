"""Bytes between places, in: size and route; out: seconds, and whether a step waits for them."""

from gpuplan.errors import InputError, one

# Assumption: copies from pinned memory reach 0.8 of one direction, 25 of 31.5 GB/s on Gen4; a
# measured one on Gen5 reached 0.88 [ml-engineering].
PINNED_FRAC = 0.8
# Assumption: pageable memory is first copied by one host core into a pinned buffer, at 6 GB/s on
# any generation.
PAGEABLE_BYTES_PER_S = 6e9
LAUNCH_S = 10e-6


def host_copy_time_s(
    message_bytes: float, line_bytes_per_s: float, *, is_pinned: bool = True
) -> float:
    """Host to device or back. Pageable memory adds a copy by a host core."""
    reached = line_bytes_per_s * PINNED_FRAC
    rate = reached if is_pinned else min(PAGEABLE_BYTES_PER_S, reached)
    return LAUNCH_S + message_bytes / rate


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
