"""What more of each resource brings to a training step, and what money buys best."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.scenario.build import USUAL
from gpuplan.domain.training.scaling import ResourceGain, ScaleRequest, Spend
from gpuplan.units import GBIT, HOURS_PER_MONTH

MORE = 1.1
BUDGET_USD = 10_000.0
NICS_MONTHS = 36  # over which bought NICs and ports are paid
Time = Callable[[ScaleRequest, Accelerator, int], float]  # of one step


class ScaleCase(NamedTuple):
    """A job at its largest number of accelerators."""

    request: ScaleRequest
    accelerator: Accelerator
    nics_bytes_per_s: float  # of one server
    n: int


def gains(case: ScaleCase, time_s: Time) -> Iterator[ResourceGain]:
    """A tenth more of each resource: share of the step that it saves, and what that is worth."""
    before = time_s(case.request, case.accelerator, case.n)
    price = case.request.price_usd_per_h
    for resource, (request, device) in _changes(case, MORE).items():
        gain = 1.0 - time_s(request, device, case.n) / before
        worth = None if price is None else gain * case.n * price * HOURS_PER_MONTH
        yield ResourceGain(resource=resource, step_gain_frac=gain, worth_usd_per_month=worth)


def _changes(case: ScaleCase, ratio: float) -> dict[str, tuple[ScaleRequest, Accelerator]]:
    request, device = case.request, case.accelerator
    peaks = {name: ratio * peak for name, peak in device.peak_flop_per_s.items()}
    memory = replace(device.memory, bytes_per_s=ratio * device.memory.bytes_per_s)
    link = device.scale_up
    loader = request.loader_samples_per_s
    faster = link and replace(link, bytes_per_s=ratio * link.bytes_per_s)
    return {
        "FLOPs": (request, replace(device, peak_flop_per_s=peaks)),
        "HBM": (request, replace(device, memory=memory)),
        "NVLink": (request, replace(device, scale_up=faster)),
        "NIC": (_with_nics(case, ratio * case.nics_bytes_per_s), device),
        "storage": (replace(request, loader_samples_per_s=loader and ratio * loader), device),
    }


def _with_nics(case: ScaleCase, bytes_per_s: float) -> ScaleRequest:
    """The request with servers that send and receive at this rate, of the same kind of network."""
    links = case.request.links
    kind = "" if " per " in links.fabric else links.fabric
    changed = replace(links, adapters_bytes_per_s=bytes_per_s, fabric=kind)
    return replace(case.request, links=changed)


def spends(case: ScaleCase, time_s: Time) -> Iterator[Spend]:
    """The next sum a month on each resource or on code, most speed first; needs a price."""
    if not case.request.price_usd_per_h:
        return
    found = (each(case, time_s) for each in (_accelerators, _nics, _storage, _code))
    yield from sorted(found, key=lambda one: -one.speed_gain_frac)


def _speed(case: ScaleCase, time_s: Time) -> float:
    return case.n / time_s(case.request, case.accelerator, case.n)


def _accelerators(case: ScaleCase, time_s: Time) -> Spend:
    """Whole servers only; fewer than one buys nothing."""
    each = (case.request.price_usd_per_h or 0.0) * HOURS_PER_MONTH
    n_node = case.request.links.n_node
    more = int(BUDGET_USD / each) // n_node * n_node
    speed = (case.n + more) / time_s(case.request, case.accelerator, case.n + more)
    buys = f"{more} more" if more else f"less than one server of {n_node}"
    gain = speed / _speed(case, time_s) - 1.0
    return Spend(what="accelerators", buys=buys, speed_gain_frac=gain)


def _nics(case: ScaleCase, time_s: Time) -> Spend:
    """NICs and switch ports at the usual price of a Gbit/s, paid over three years."""
    prices = USUAL.prices
    usd_per_gbit = prices.adapter_usd_per_gbit.mid + prices.switch_usd_per_gbit.mid
    n_nodes = max(1, case.n // case.request.links.n_node)
    gbit = BUDGET_USD * NICS_MONTHS / usd_per_gbit / n_nodes
    # More than four times as fast is another generation, not more of the same.
    gbit = min(gbit, 3 * case.nics_bytes_per_s / GBIT)
    request = _with_nics(case, case.nics_bytes_per_s + gbit * GBIT)
    gain = case.n / time_s(request, case.accelerator, case.n) / _speed(case, time_s) - 1.0
    return Spend(what="NICs", buys=f"{gbit:,.0f} Gbit/s per server", speed_gain_frac=gain)


def _storage(case: ScaleCase, time_s: Time) -> Spend:
    """Local NVMe at its usual price over three years: enough that data is always there."""
    tb = BUDGET_USD * NICS_MONTHS / USUAL.prices.nvme_usd_per_tb.mid
    waits = case.request.loader_samples_per_s is not None
    buys = f"{tb:,.0f} TB of local NVMe" if waits else "nothing: no --loader-samples-per-s binds"
    unbound = replace(case.request, loader_samples_per_s=None)
    gain = case.n / time_s(unbound, case.accelerator, case.n) / _speed(case, time_s) - 1.0
    return Spend(what="storage", buys=buys, speed_gain_frac=gain)


def _code(case: ScaleCase, time_s: Time) -> Spend:
    """Kernels that run a tenth faster; what that takes is yours to judge."""
    request, device = _changes(case, MORE)["FLOPs"]
    gain = case.n / time_s(request, device, case.n) / _speed(case, time_s) - 1.0
    return Spend(what="code", buys="10 % faster kernels", speed_gain_frac=gain)
