"""A link between ranks as collective formulas see it: what a rank can send, what a step costs."""

from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How a library moves bytes over a link: fixed costs, and the rate that it reaches."""

    launch_s: float  # of one collective
    alpha_s: float  # of one step to a neighbour
    rate_frac: float  # share of the line rate that large messages reach
    copy_frac: float  # time of a rank's own part, as a share of sending it
    ramp_s: float  # extra time of bulk protocols: none for tiny messages, all for large ones
    ramp_bytes: float  # bytes on the wire at which half of it is paid


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchReduction:
    """Reduction inside the switch (NVLS, SHARP): a rank sends its data once and reads sums."""

    rate_frac: float  # of the line rate
    extra_s: float  # fixed cost beyond an ordinary collective
    n_ranks_min: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectKernel:
    """A kernel that reads the memory of its peers: one shot, or reduce then gather."""

    launch_s: float
    sync_s: float  # of the second shot
    rate_frac: float  # of the line rate
    n_ranks_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkModel:
    """What connects the ranks of one group; rates are of one rank, one direction."""

    name: str  # link class, e.g. nvlink4
    bytes_per_s: float  # line rate
    pair_bytes_per_s: float | None  # between two ranks of a mesh; None: a switch gives all
    contended_frac: float  # share of the rate left to each when more than two use the link
    has_tree: bool
    ring: Protocol  # all-reduce, all-gather, reduce-scatter
    pairwise: Protocol  # all-to-all, point-to-point
    switch: SwitchReduction | None = None
    direct: DirectKernel | None = None

    @property
    def alpha_s(self) -> float:
        """Latency of one step."""
        return self.ring.alpha_s

    def line_bytes_per_s(self, n_ranks: int) -> float:
        """What one rank of a group can send: a mesh offers only the links to its members."""
        if self.pair_bytes_per_s is not None:
            return min(self.bytes_per_s, (n_ranks - 1) * self.pair_bytes_per_s)
        return self.bytes_per_s * (self.contended_frac if n_ranks > 2 else 1.0)
