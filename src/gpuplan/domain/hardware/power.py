"""What drives the power of an accelerator, and the constants that turn it into watts."""

from typing import Literal

from gpuplan.domain.noun import dataclass

# Boards joined by switches, plain cards in a server, a card with fans of its own in a PC, or
# processors alone.
BuildName = Literal["island", "island, old", "island, liquid", "cards", "desktop", "processors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """How hard an accelerator works on average, as shares of its data sheet."""

    compute_frac: float  # achieved flop/s over the dense 16-bit peak, whatever the precision
    weight_memory_frac: float = 0.0  # weights read per second over the memory's rate
    other_memory_frac: float = 0.0  # cache, activations: the rest of the traffic
    weight_bytes_per_param: float = 2.0  # narrow weights cost more per byte: they are unpacked
    busy_frac: float = 1.0  # share of time in which any kernel runs

    @property
    def asked_frac(self) -> float:
        """Shares of arithmetic and memory together."""
        return self.compute_frac + self.weight_memory_frac + self.other_memory_frac


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerConstants:
    """Load = busy · (1 − exp(−(memory·√u_m + compute·√u_c)))."""

    memory_ratio: float
    compute_ratio: float
    unpack_ratio: float  # exponent of 2 bytes over the weight's bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CapCurve:
    """How the clock falls under a power cap."""

    static_frac: float  # of the limit: drawn at any clock
    burst_ratio: float  # demand over average draw: bursts meet the cap before the average does
    clock_exponent_ratio: float  # dynamic power over clock
    knee_frac: float  # clock below which the voltage falls no further


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBuild:
    """What surrounds the accelerators of a machine, as far as power goes."""

    host_base_w: float
    host_w_per_accelerator: float
    fan_frac: float  # of what the boards draw
    second_socket_w: float = 0.0  # beside more than one accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """Power of one server at the wall, by cause."""

    accelerators_w: float
    host_w: float  # processors, memory, adapters, drives
    losses_w: float  # power supplies and fans

    @property
    def wall_w(self) -> float:
        """What the feed delivers."""
        return self.accelerators_w + self.host_w + self.losses_w
