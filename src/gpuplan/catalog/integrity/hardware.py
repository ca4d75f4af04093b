"""Rules that hold between the figures of one piece of hardware, or of two."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from gpuplan.catalog.integrity.ratios import (
    GEFORCE_RATIOS,
    KNOWN_RATIOS,
    RATIO_TOLERANCE,
    USUAL_RATIOS,
)
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId, Server
from gpuplan.domain.system.findings import Finding, Severity, error, warning
from gpuplan.units import GB, GIB, TFLOP

VECTORS_ONLY = ("Apple",)  # makers whose GPUs have no matrix units

NVLINK_BYTES_PER_S: Mapping[str, float] = MappingProxyType(
    {
        "NVLink 2": 150 * GB,
        "NVLink 3": 300 * GB,
        "NVLink 4": 450 * GB,
        "NVLink 5": 900 * GB,
        "NVLink 6": 1800 * GB,
    }
)
"""All links of one accelerator, one direction: twice as much is the marketing figure."""

SUPERCHIP = re.compile(r"g[hb]\d{3}")  # Grace with Hopper or Blackwell
PCIE_BYTES_PER_S: Mapping[str, float] = MappingProxyType(
    {"PCIe 3.0": 15.76 * GB, "PCIe 4.0": 31.6 * GB, "PCIe 5.0": 63.1 * GB, "PCIe 6.0": 126 * GB}
)
"""Sixteen lanes, one direction, after line coding."""

MEMORY_BYTES_PER_S: Mapping[str, float] = MappingProxyType(
    {
        "HBM2": 8 * 307 * GB,  # eight stacks, the most that one package carries
        "HBM2e": 8 * 463 * GB,
        "HBM3": 8 * 820 * GB,
        "HBM3e": 8 * 1229 * GB,
        "HBM4": 12 * 2750 * GB,  # twelve stacks of Instinct at the pin rate of Rubin
        "GDDR6": 960 * GB,  # 384 bits of 20 Gbit/s
        "GDDR6X": 1152 * GB,
        "GDDR7": 2048 * GB,  # 512 bits of 32 Gbit/s
    }
)
"""The most that a memory technology gives one accelerator [ml-engineering]."""

FLOP_PER_BYTE = (25.0, 700.0)  # matrix peak against memory rate of everything sold so far
TENSOR_GAIN = 1.8  # matrix units outdo vector units by at least this
CEILING = (0.4, 1.0)  # best measured matrix product against the peak
DRIVER_SHARE = 0.9  # error correction takes a sixteenth, reserves a few per cent more
USABLE_FRAC = 0.85  # of the size in the name of a MIG profile, at the least
ROUNDING_GIB = 0.5  # profile names round to whole GB


def dense_ratio(catalog: Catalog) -> Iterator[Finding]:
    """A peak off its usual ratio to bf16: a sparse figure, or one of other units."""
    models = {o.item: o.overlay_value for o in catalog.overrides if o.quantity == "like"}
    for accelerator in catalog.accelerators.values():
        peaks = accelerator.peak_flop_per_s
        base = peaks.get("bf16", peaks.get("fp16"))
        if base is None:
            continue
        is_geforce = accelerator.name.startswith("GeForce")
        for precision, usual in (GEFORCE_RATIOS if is_geforce else USUAL_RATIOS).items():
            expected = KNOWN_RATIOS.get((_root(accelerator.id, models), precision), usual)
            found = peaks.get(precision, expected * base) / base
            if abs(found / expected - 1) > RATIO_TOLERANCE:
                yield error(
                    "dense-ratio",
                    f"{accelerator.id}.peak_{precision}",
                    f"{found:.3g} times the 16-bit peak, {expected:g} expected",
                    "take the dense matrix rate, or document the exception",
                )


def vector_rate(catalog: Catalog) -> Iterator[Finding]:
    """A 16-bit peak near the fp32 vector rate: the rate of the wrong units."""
    for accelerator in catalog.accelerators.values():
        if accelerator.vendor in VECTORS_ONLY:
            continue
        peaks = accelerator.peak_flop_per_s
        for precision in ("bf16", "fp16"):
            if precision in peaks and "fp32" in peaks:
                gain = peaks[precision] / peaks["fp32"]
                if gain < TENSOR_GAIN:
                    yield error(
                        "vector-rate",
                        f"{accelerator.id}.peak_{precision}",
                        f"only {gain:.2f} times fp32",
                        "take the matrix rate",
                    )


def ceiling_above_peak(catalog: Catalog) -> Iterator[Finding]:
    """A measured matrix product above the peak, or so far below that the peak is not dense."""
    for accelerator in catalog.accelerators.values():
        fact = catalog.fact(accelerator.id, "matmul_ceiling_bf16")
        peak = accelerator.peak_flop_per_s.get("bf16")
        if fact is None or peak is None:
            continue
        share = float(fact.value) * TFLOP / peak
        if not CEILING[0] <= share <= CEILING[1]:
            yield error(
                "ceiling-above-peak",
                f"{accelerator.id}.peak_bf16",
                f"best measured product is {share:.0%} of it",
                "check dense against sparse",
            )


def balance(catalog: Catalog) -> Iterator[Finding]:
    """Peak and memory rate that no machine has together: one of them is in other units."""
    for accelerator in catalog.accelerators.values():
        peaks = accelerator.peak_flop_per_s
        peak = peaks.get("bf16", peaks.get("fp16"))
        if peak is None:
            continue
        found = peak / accelerator.memory.bytes_per_s
        if not FLOP_PER_BYTE[0] <= found <= FLOP_PER_BYTE[1]:
            yield Finding(
                severity="error" if not accelerator.is_cpu else "note",
                rule="balance",
                where=f"{accelerator.id}.memory_bandwidth",
                what=f"{found:.0f} flop per byte",
                fix="check peak and bandwidth",
            )


def memory_order(catalog: Catalog) -> Iterator[Finding]:
    """Visible must be below what the driver counts, and that within what is marketed."""
    for accelerator in catalog.accelerators.values():
        memory = accelerator.memory
        if not memory.visible_bytes < memory.driver_bytes <= memory.marketed_bytes:
            yield error(
                "memory-order",
                f"{accelerator.id}.memory",
                f"visible {memory.visible_bytes / GIB:.2f}, "
                f"driver {memory.driver_bytes / GIB:.2f}, "
                f"marketed {memory.marketed_bytes / GIB:.2f} GiB",
                "visible < driver <= marketed",
            )
        elif memory.driver_bytes < DRIVER_SHARE * memory.marketed_bytes:
            yield error(
                "memory-order",
                f"{accelerator.id}.memory_driver",
                f"{memory.driver_bytes / memory.marketed_bytes:.0%} of marketed",
                "one die, or GB read as bytes?",
            )


def memory_technology(catalog: Catalog) -> Iterator[Finding]:
    """A memory rate beyond what the memory's technology can do."""
    for accelerator in catalog.accelerators.values():
        memory = accelerator.memory
        most = MEMORY_BYTES_PER_S.get(memory.kind, float("inf"))
        if memory.bytes_per_s > most:
            yield error(
                "memory-technology",
                f"{accelerator.id}.memory_bandwidth",
                f"{memory.bytes_per_s / GB:g} GB/s of {memory.kind}",
                f"at most {most / GB:g} GB/s",
            )


def form_factor(catalog: Catalog) -> Iterator[Finding]:
    """Figures of one form factor under the name of another."""
    for accelerator in catalog.accelerators.values():
        form, limit_w = accelerator.form_factor, accelerator.power.limit_w or 0.0
        n_domain = accelerator.scale_up.n_domain_max if accelerator.scale_up else 1
        severity: Severity = "error"
        if form.startswith("SXM") and (limit_w < 300 or n_domain < 8):
            what = f"SXM with {limit_w:g} W and {n_domain} in one domain"
            # A user may cap a board's power; a domain cannot be capped.
            severity = "error" if n_domain < 8 else "warning"
        elif form == "PCIe LP" and limit_w > 75:
            what = f"a slot-powered card of {limit_w:g} W"
        elif form.startswith("PCIe") and (limit_w > 600 or n_domain > 4):
            what = f"PCIe with {limit_w:g} W and {n_domain} in one domain"
        else:
            continue
        yield Finding(
            severity=severity,
            rule="form-factor",
            where=f"{accelerator.id}.form_factor",
            what=what,
            fix="take the figures of this form factor",
        )


def form_factor_pair(catalog: Catalog) -> Iterator[Finding]:
    """A PCIe board that outdoes the SXM board of its name."""
    for accelerator in catalog.accelerators.values():
        sister = catalog.accelerators.get(
            AcceleratorId(re.sub(r"-sxm\d?", "-pcie", accelerator.id))
        )
        if sister is None or sister.id == accelerator.id:
            continue
        if (
            sister.memory.bytes_per_s > accelerator.memory.bytes_per_s
            or (sister.power.limit_w or 0) >= (accelerator.power.limit_w or float("inf"))
            or _best_peak(sister) > _best_peak(accelerator)
        ):
            yield warning(
                "form-factor-pair",
                sister.id,
                f"outdoes {accelerator.id}",
                "unless one is capped, the two are mixed up",
            )


def link_direction(catalog: Catalog) -> Iterator[Finding]:
    """A link faster than its generation in one direction: the two-way figure."""
    for accelerator in catalog.accelerators.values():
        up, host = accelerator.scale_up, accelerator.host_link
        if up is not None:
            most = next(
                (rate for name, rate in NVLINK_BYTES_PER_S.items() if up.name.startswith(name)),
                accelerator.memory.bytes_per_s,
            )
            if up.bytes_per_s > most or (up.pair_bytes_per_s or 0) > up.bytes_per_s:
                yield error(
                    "link-direction",
                    f"{accelerator.id}.scale_up_bandwidth",
                    f"{up.bytes_per_s / GB:g} GB/s, pair {(up.pair_bytes_per_s or 0) / GB:g}",
                    f"one direction, at most {most / GB:g}",
                )
            if up.n_domain > up.n_domain_max:
                yield error(
                    "link-direction",
                    f"{accelerator.id}.scale_up_domain",
                    f"{up.n_domain} of at most {up.n_domain_max}",
                    "largest must be largest",
                )
        if host is not None:
            most = PCIE_BYTES_PER_S.get(host.name[:8], host.bytes_per_s)
            if host.bytes_per_s > most:
                yield error(
                    "link-direction",
                    f"{accelerator.id}.host_link_bandwidth",
                    f"{host.bytes_per_s / GB:g} GB/s",
                    f"one direction, at most {most / GB:g}",
                )


def host_link(catalog: Catalog) -> Iterator[Finding]:
    """A superchip whose processor is reached over PCIe: its chips are joined by NVLink-C2C."""
    for accelerator in catalog.accelerators.values():
        host = accelerator.host_link
        is_superchip = accelerator.vendor == "NVIDIA" and SUPERCHIP.match(str(accelerator.id))
        if is_superchip and host is not None and host.name.startswith("PCIe"):
            where = f"{accelerator.id}.host_link_name"
            yield error("host-link", where, host.name, "NVLink-C2C joins Grace to its GPUs")


def idle_power(catalog: Catalog) -> Iterator[Finding]:
    """Idle at or above the limit, or more without a model than with one."""
    for accelerator in catalog.accelerators.values():
        power = accelerator.power
        known = [w for w in (power.idle_w, power.loaded_idle_w, power.limit_w) if w is not None]
        if known != sorted(known) or len(set(known)) != len(known):
            yield error(
                "idle-power",
                f"{accelerator.id}.power",
                f"idle {power.idle_w}, loaded {power.loaded_idle_w}, limit {power.limit_w} W",
                "idle < loaded idle < limit",
            )


def mig_profile(catalog: Catalog) -> Iterator[Finding]:
    """A profile that does not fit its accelerator, or has all memory of its name: some is kept."""
    for profile in catalog.mig_profiles:
        where = f"mig.{profile.accelerator}.{profile.name}"
        whole = catalog.accelerators.get(profile.accelerator)
        if whole is None:
            yield error("mig-profile", where, "of an unknown accelerator", "name one we have")
            continue
        room = whole.memory.marketed_bytes + profile.n_max * ROUNDING_GIB * GIB
        named = re.match(r"^(\d)g\.(\d+)gb$", profile.name)
        sound = (
            named is not None
            and int(named[1]) == profile.n_compute_slices
            and USABLE_FRAC * float(named[2]) <= profile.memory_bytes / GIB < float(named[2])
            and profile.n_max * profile.n_compute_slices <= profile.n_compute_slices_total
            and profile.n_max * profile.memory_bytes <= room
        )
        if not sound:
            yield error(
                "mig-profile",
                where,
                "slices, memory or name do not fit together",
                "check name, count and total",
            )


def server_parts(catalog: Catalog) -> Iterator[Finding]:
    """A server that names a part which the catalog does not have."""
    for server in catalog.servers.values():
        if server.accelerator not in catalog.accelerators:
            yield error(
                "server-parts",
                f"{server.id}.accelerator",
                server.accelerator,
                "name an accelerator of the catalog",
            )
        for nic in (server.host.fabric_nic, server.host.front_nic):
            if nic and nic not in catalog.network.nics:
                yield error(
                    "server-parts", f"{server.id}.nic", nic, "name an adapter of the catalog"
                )


def server_power(catalog: Catalog) -> Iterator[Finding]:
    """A server that provisions less than its accelerators or than was measured."""
    for server in catalog.servers.values():
        limit_w = server.power.limit_w
        least_w = _least_power_w(server, catalog)
        if limit_w is not None and limit_w < least_w:
            yield error(
                "server-power",
                f"{server.id}.power_limit",
                f"{limit_w:g} W for parts of {least_w:g} W",
                "provision at least what the parts draw",
            )
        idle, peak = server.power.measured_idle_w, server.power.measured_peak_w
        if idle is not None and peak is not None and idle >= peak:
            yield error(
                "server-power",
                f"{server.id}.power_measured_idle",
                f"{idle:g} W against a peak of {peak:g} W",
                "idle below peak",
            )


def switch_power(catalog: Catalog) -> Iterator[Finding]:
    """A switch that typically draws more than its limit."""
    for switch in catalog.network.switches.values():
        if (switch.typical_w or 0) > (switch.limit_w or float("inf")):
            yield error(
                "switch-power",
                f"{switch.id}.power_typical",
                f"{switch.typical_w} W",
                f"at most {switch.limit_w} W",
            )


def shared_name(catalog: Catalog) -> Iterator[Finding]:
    """Two accelerators that a person could not tell apart by name."""
    known: dict[str, str] = {}
    for accelerator in catalog.accelerators.values():
        for word in {accelerator.id.lower(), accelerator.name.lower()}:
            key = re.sub(r"[^a-z0-9]", "", word)
            first = known.setdefault(key, accelerator.id)
            if first != accelerator.id:
                yield error(
                    "shared-name",
                    f"{accelerator.id}.name",
                    f"reads like {first}",
                    "give it a name of its own",
                )


def _root(item: str, models: Mapping[str, str]) -> str:
    """The shipped accelerator that a user's own was modelled on."""
    for _ in models:
        item = models.get(item, item)
    return item


def _least_power_w(server: Server, catalog: Catalog) -> float:
    accelerator = catalog.accelerators.get(server.accelerator)
    board_w = (accelerator.power.limit_w if accelerator else None) or 0.0
    return max(server.n_accelerators * board_w, server.power.measured_peak_w or 0.0)


def _best_peak(accelerator: Accelerator) -> float:
    return max(accelerator.peak_flop_per_s.values(), default=0.0)
