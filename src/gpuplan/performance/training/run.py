"""Whole training runs and given utilizations: arithmetic that a reader can redo by hand."""

from dataclasses import dataclass
from typing import NamedTuple

from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.domain.training.time import Fabric
from gpuplan.performance.training import process_groups as links
from gpuplan.performance.training.step import race_s

FORWARD_BACKWARD = 6.0  # flop per parameter and token [Kaplan2020]
AGAIN = 2.0  # one more forward pass
BYTES_16 = 2.0
# Backward and what it computes again, of the time of a step with full recompute: 3 of 4 passes.
BACKWARD_FRAC = 0.75
HIDING = 8.0  # sharpness of overlap when only rates are given
# 16-bit weights, and 32-bit master weights with both moments of Adam.
CHECKPOINT_BYTES_PER_PARAM = 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenStep:
    """A step whose compute time is given and whose links are not."""

    compute_s: float  # of one micro-batch
    n_params: float
    n_micro_batches: int
    weight_bytes: float = BYTES_16
    gradient_bytes: float = BYTES_16


class GivenParts(NamedTuple):
    """Where the seconds of one step go."""

    compute_s: float
    exposed_s: float
    traffic_s: float  # on links, hidden or not

    @property
    def step_s(self) -> float:
        """The step as a whole: compute and exposed traffic."""
        return self.compute_s + self.exposed_s


def checkpoint_bytes(n_params: float, bytes_per_param: float = CHECKPOINT_BYTES_PER_PARAM) -> float:
    """What a job must save to go on where it stopped."""
    return n_params * bytes_per_param


def given_compute_s(
    n_params: float, n_tokens: float, *, flop_per_s: float, has_full_recompute: bool
) -> float:
    """Compute of one accelerator's tokens at the arithmetic rate that it reaches."""
    per_param = FORWARD_BACKWARD + (AGAIN if has_full_recompute else 0.0)
    return per_param * n_params * n_tokens / flop_per_s


def given_step(given: GivenStep, layout: ParallelLayout, fabric: Fabric) -> GivenParts:
    """Compute that is given beside the traffic of fully or hybrid sharded data parallelism."""
    weights = given.n_params * given.weight_bytes
    gradients = given.n_params * given.gradient_bytes
    shards = links.process_group("shard", layout, fabric)
    gathered_s = 2.0 * links.gather_s(weights, shards, fabric)
    gathered_s += links.gather_s(gradients, shards, fabric)
    compute_s = given.n_micro_batches * given.compute_s
    exposed_s = given.n_micro_batches * (
        race_s(given.compute_s, gathered_s, HIDING) - given.compute_s
    )
    copies = links.process_group("replica", layout, fabric)
    reduced_s = links.all_reduce_s(gradients / layout.n_shards, copies, fabric)
    hiding_s = BACKWARD_FRAC * given.compute_s
    exposed_s += race_s(hiding_s, reduced_s, HIDING) - hiding_s
    traffic_s = given.n_micro_batches * gathered_s + reduced_s
    return GivenParts(compute_s, exposed_s, traffic_s)
