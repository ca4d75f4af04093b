"""Power and energy, in: how hard an accelerator works; out: watts, joules, and what a cap costs."""

from math import exp, sqrt

from gpuplan.domain.hardware.devices import Accelerator, PowerDraw
from gpuplan.domain.hardware.power import (
    BuildName,
    CapCurve,
    NodeBuild,
    NodePower,
    PowerConstants,
    Utilization,
)
from gpuplan.errors import CatalogError, InputError, one

# Idle with a model in memory over idle without, and over the limit: medians of published
# listings [measured:nvidia-smi-listings].
LOADED_OVER_IDLE_RATIO = 1.5
LOADED_OVER_LIMIT_FRAC = 0.17
# Below this share of the limit the clock collapses: 2 to 4 times slower, unpredictably.
CLIFF_FRAC = 0.45
# Processors, memory, adapters and switches at work. Machines around a switched island hold 1.1 kW
# of them beside eight accelerators, those of the years before Hopper 0.7; machines with plain cards
# 0.2 to 0.4, more where a second processor serves several cards. Fans follow the heat: 18 % of
# what passive boards draw, 3 % where liquid takes it, none where boards bring their own. Supplies
# lose 6 %. Set by hand on published wall readings of 17 machines [MLPerf-power].
BUILDS: dict[BuildName, NodeBuild] = {
    "island": NodeBuild(host_base_w=20.0, host_w_per_accelerator=140.0, fan_frac=0.18),
    "island, old": NodeBuild(host_base_w=20.0, host_w_per_accelerator=85.0, fan_frac=0.18),
    "island, liquid": NodeBuild(host_base_w=20.0, host_w_per_accelerator=140.0, fan_frac=0.03),
    "cards": NodeBuild(
        host_base_w=150.0, host_w_per_accelerator=15.0, fan_frac=0.18, second_socket_w=90.0
    ),
    "desktop": NodeBuild(host_base_w=150.0, host_w_per_accelerator=15.0, fan_frac=0.0),
    # Memory, board and drives beside the sockets. Assumption: no reading stands behind it.
    "processors": NodeBuild(host_base_w=40.0, host_w_per_accelerator=50.0, fan_frac=0.1),
}
MODERN_ISLAND = "2022"  # launched in this year or later
OWN_FANS = ("GeForce",)
LOSS_FRAC = 0.06
NODE_SPREAD_FRAC = 0.18  # holds four fifths of the readings of held-out nodes


def limit_w(accelerator: Accelerator) -> float:
    """Power limit of the board; without one no power can be predicted."""
    limit = accelerator.power.limit_w
    if limit is None:
        where, what = f"accelerators.{accelerator.id}.power_limit", "no limit is published"
        fix = "give one in a catalog overlay, e.g. 400 W"
        raise one(CatalogError, "power", where, what, fix)
    return limit


def loaded_idle_w(power: PowerDraw, limit: float) -> float:
    """Draw with a model in memory and nothing to do."""
    if power.loaded_idle_w is not None:
        return power.loaded_idle_w
    if power.idle_w is not None:
        return min(power.idle_w * LOADED_OVER_IDLE_RATIO, limit)
    return LOADED_OVER_LIMIT_FRAC * limit


def load_frac(use: Utilization, constants: PowerConstants) -> float:
    """Share of the span between idle and limit: concave, for a busy board has a high floor."""
    if use.busy_frac <= 0:
        return 0.0
    unpacked = (2.0 / use.weight_bytes_per_param) ** constants.unpack_ratio
    memory = use.weight_memory_frac * unpacked + use.other_memory_frac
    while_busy = constants.memory_ratio * sqrt(memory / use.busy_frac)
    while_busy += constants.compute_ratio * sqrt(use.compute_frac / use.busy_frac)
    return use.busy_frac * (1.0 - exp(-while_busy))


def accelerator_power_w(
    accelerator: Accelerator, use: Utilization, constants: PowerConstants
) -> float:
    """Average draw of one accelerator at this load; never above its limit."""
    limit = limit_w(accelerator)
    idle = loaded_idle_w(accelerator.power, limit)
    return idle + max(0.0, limit - idle) * load_frac(use, constants)


def cap_slowdown(uncapped_w: float, cap_w: float, *, limit: float, curve: CapCurve) -> float:
    """Time over uncapped time, 1 or more: the clock that dynamic power ∝ clock^exponent allows."""
    _check_cap(cap_w)
    demand = min(curve.burst_ratio * uncapped_w, limit)
    if cap_w >= demand:
        return 1.0
    static = min(curve.static_frac * limit, 0.9 * demand)
    share = max(cap_w - static, 0.01 * demand) / (demand - static)
    knee_share = curve.knee_frac**curve.clock_exponent_ratio
    if share >= knee_share:
        return float(share ** (-1.0 / curve.clock_exponent_ratio))
    return float(knee_share / (curve.knee_frac * share))


def is_cliff(cap_w: float, limit: float) -> bool:
    """The cap is so low that no slowdown can be predicted."""
    return cap_w < CLIFF_FRAC * limit


def node_power(
    accelerators_w: float, n_accelerators: int, *, build: BuildName = "island"
) -> NodePower:
    """Server at the wall from the draw of its accelerators; ±18 %."""
    kind = BUILDS[build]
    host = kind.host_base_w + kind.host_w_per_accelerator * n_accelerators
    host += kind.second_socket_w if n_accelerators > 1 else 0.0
    fans = kind.fan_frac * accelerators_w
    losses = fans + LOSS_FRAC * (accelerators_w + host + fans)
    return NodePower(accelerators_w=accelerators_w, host_w=host, losses_w=losses)


def build_of(accelerator: Accelerator, *, is_liquid: bool = False) -> BuildName:
    """The kind of server that such accelerators usually sit in."""
    if accelerator.is_cpu:
        return "processors"
    if accelerator.form_factor.startswith("PCIe"):
        return "desktop" if any(word in accelerator.name for word in OWN_FANS) else "cards"
    if is_liquid:
        return "island, liquid"
    return "island" if accelerator.lifecycle.launched >= MODERN_ISLAND else "island, old"


def _check_cap(cap_w: float) -> None:
    if cap_w <= 0:
        raise one(InputError, "power", "cap_w", f"got {cap_w}", "use a cap above 0 W")
