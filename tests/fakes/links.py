"""Links with round figures, for tests that reason about formulas."""

from dataclasses import replace

from gpuplan.domain.hardware.links import DirectKernel, LinkModel, Protocol, SwitchReduction

PLAIN = Protocol(
    launch_s=0.0, alpha_s=1e-6, rate_frac=1.0, copy_frac=0.0, ramp_s=0.0, ramp_bytes=1.0
)


def plain_link(bytes_per_s: float = 100e9) -> LinkModel:
    """A ring on a perfect link: one microsecond a step, nothing else."""
    return LinkModel(
        name="plain",
        bytes_per_s=bytes_per_s,
        pair_bytes_per_s=None,
        contended_frac=1.0,
        has_tree=False,
        ring=PLAIN,
        pairwise=PLAIN,
    )


def steady_link(bytes_per_s: float, *, rate_frac: float, alpha_s: float) -> LinkModel:
    """A link of which only rate and latency are known: trees, but no ramp, switch or kernels."""
    protocol = replace(PLAIN, alpha_s=alpha_s, rate_frac=rate_frac)
    return replace(plain_link(bytes_per_s), has_tree=True, ring=protocol, pairwise=protocol)


def rich_link(bytes_per_s: float = 450e9) -> LinkModel:
    """A link with every algorithm and every term."""
    full = Protocol(
        launch_s=5e-6, alpha_s=1e-6, rate_frac=0.8, copy_frac=0.5, ramp_s=2e-5, ramp_bytes=4e6
    )
    return replace(
        plain_link(bytes_per_s),
        has_tree=True,
        ring=full,
        pairwise=full,
        switch=SwitchReduction(rate_frac=0.68, extra_s=6e-5, n_ranks_min=5),
        direct=DirectKernel(launch_s=4e-6, sync_s=3e-6, rate_frac=0.6, n_ranks_max=8),
    )
