"""The catalog's nouns as rows: plain values under stable keys, None where nothing is published."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.software import SoftwareMatrix
from gpuplan.domain.model.network import Model
from gpuplan.domain.money.market import Discount, Offer, Region
from gpuplan.domain.provenance import Source
from gpuplan.report.document import pick, pick_each
from gpuplan.units import GB, GBIT, KW, KWH, MM, TB, TFLOP

Row = dict[str, Any]
FABRIC_NAMES = {"efa": "EFA", "infiniband": "InfiniBand", "roce": "RoCE", "tcp": "TCP"}


def accelerator_rows(catalog: Catalog) -> list[Row]:
    """Every accelerator with what decides most choices."""
    return [_accelerator_row(a) for a in catalog.accelerators.values()]


def _accelerator_row(a: Accelerator) -> Row:
    peaks = a.peak_flop_per_s
    sixteen = peaks.get("bf16") or peaks.get("fp16")
    return {
        "id": a.id,
        "name": a.name,
        "status": a.lifecycle.status,
        "visible_gib": round(a.memory.visible_bytes / 2**30, 2),
        "tb_per_s": round(a.memory.bytes_per_s / TB, 3),
        "bf16_tflop_per_s": sixteen / TFLOP if sixteen else None,
        "fp8_tflop_per_s": peaks["fp8"] / TFLOP if "fp8" in peaks else None,
        "link_gb_per_s": a.scale_up.bytes_per_s / GB if a.scale_up else None,
        "island": a.scale_up.n_domain if a.scale_up else None,
        "limit_w": a.power.limit_w,
    }


def server_rows(catalog: Catalog) -> list[Row]:
    """Every server."""
    return [
        {
            **pick(server, "id", "name", "accelerator", n="n_accelerators", cores="host.n_cores"),
            "ram_gb": _over(server.host.ram_bytes, GB),
            "rack_units": server.height_u,
            "weight_kg": server.weight_kg,
            "depth_mm": _over(server.depth_m, MM),
            "limit_kw": _over(server.power.limit_w, KW),
        }
        for server in catalog.servers.values()
    ]


def network_rows(catalog: Catalog) -> list[Row]:
    """Switches, NICs and links."""
    network = catalog.network
    rows: list[Row] = []
    for switch in network.switches.values():
        rows.append(_part_row("switch", switch.id, switch.name, switch.port_bytes_per_s))
        rows[-1] |= {"ports": switch.n_ports, "watts": switch.typical_w}
    for nic in network.nics.values():
        rows.append(_part_row("nic", nic.id, nic.name, nic.port_bytes_per_s))
        rows[-1] |= {"ports": nic.n_ports, "watts": nic.power_w}
    for link in network.links.values():
        rows.append(_part_row("link", link.id, link.name, link.bytes_per_s))
        rows[-1] |= {"ports": None, "watts": link.power_w}
    return rows


def _part_row(kind: str, part: str, name: str, bytes_per_s: float) -> Row:
    return {"kind": kind, "id": part, "name": name, "gbit_per_s": bytes_per_s * 8 / 1e9}


def storage_rows(catalog: Catalog) -> list[Row]:
    """Storage classes."""
    return [
        {
            **pick(s, "id", "name", iops="operations_per_s", **{"for": "scope"}),
            "read_gb_per_s": s.read_bytes_per_s / GB,
            "write_gb_per_s": s.write_bytes_per_s / GB,
            "usd_per_gb_month": s.usd_per_gb_month,
        }
        for s in catalog.storage.values()
    ]


def mig_rows(catalog: Catalog) -> list[Row]:
    """MIG profiles."""
    return [
        {
            **pick(p, "accelerator", profile="name", most="n_max"),
            "memory_gb": p.memory_bytes / GB,
            "compute_frac": round(p.compute_frac, 3),
        }
        for p in catalog.mig_profiles
    ]


def source_rows(sources: Iterable[Source]) -> list[Row]:
    """Publications that facts rest on."""
    return pick_each(sources, "key", "kind", "title", "publisher", "retrieved", "licence")


def model_rows(models: Sequence[Model]) -> list[Row]:
    """Every model with its size and what a token costs."""
    return [
        {
            "id": m.name,
            "kind": m.kind,
            "params_b": round(m.n_params / 1e9, 3),
            "active_b": round(m.n_active_params / 1e9, 3),
            "layers": m.main.n_layers,
            "kv_bytes_per_token": round(m.kv_bytes_per_token()),
            "context_tokens": m.max_context_tokens,
        }
        for m in models
    ]


def offer_rows(offers: Sequence[Offer]) -> list[Row]:
    """Cloud offers, cheapest per accelerator first."""
    ordered = sorted(offers, key=lambda o: o.usd_per_accelerator_h or o.usd_per_h)
    return [
        {
            "cloud": o.cloud,
            "instance": o.instance,
            "region": o.region,
            "accelerator": o.accelerator or "?".join(("", *o.shape.accelerators)),
            "n": o.n_accelerators,
            "usd_per_h": o.usd_per_h,
            "usd_per_accel_h": o.usd_per_accelerator_h,
            "spot_usd_per_h": o.spot_usd_per_h,
            "fabric": fabric_words(o),
            "price_date": o.price_date.isoformat(),
        }
        for o in ordered
    ]


def fabric_words(offer: Offer) -> str:
    """What joins such servers, e.g. 3200 Gbit/s EFA; none known where no source states it."""
    fabric, rate = offer.shape.fabric, offer.shape.network_bytes_per_s
    if fabric is None or rate is None:
        return "none known"
    return f"{rate / GBIT:g} Gbit/s {FABRIC_NAMES[fabric.kind]}"


def region_rows(regions: Sequence[Region]) -> list[Row]:
    """Regions with what power costs and emits there."""
    return [
        {
            "id": r.id,
            "name": r.name,
            "pue": r.pue_ratio,
            "usd_per_kwh": round(r.electricity.usd_per_j * KWH, 4) if r.electricity else None,
            "gco2_per_kwh": round(r.carbon[0].kg_per_j * KWH * 1000) if r.carbon else None,
            "carbon_is": f"{r.carbon[0].boundary} {r.carbon[0].method}" if r.carbon else None,
        }
        for r in regions
    ]


def software_rows(matrix: SoftwareMatrix) -> list[Row]:
    """What needs what: drivers, framework builds, architectures."""
    rows: list[Row] = [
        _need("architecture", a.id, f"{a.family}: {', '.join(sorted(a.precisions))}", a.source)
        for a in matrix.architectures
    ]
    rows += [
        _need("cuda", str(d.cuda), f"driver {d.linux} or newer", d.source)
        for d in matrix.drivers
        if not d.is_minor_floor
    ]
    rows += [
        _need("torch", str(t.torch), f"CUDA {', '.join(map(str, t.stable_cuda))}", t.source)
        for t in matrix.torch
    ]
    rows += [
        _need(p.package, str(p.version), f"torch {p.torch}, Python {p.python}", p.source)
        for p in matrix.packages
    ]
    return rows


def _need(kind: str, item: str, needs: str, source: str) -> Row:
    return {"kind": kind, "version": item, "needs": needs, "source": source}


def discount_rows(discounts: Sequence[Discount]) -> list[Row]:
    """Committed-use discounts."""
    keys = ("provider", "instrument", "term", "low_frac", "high_frac", "applies")
    return [
        {**pick(d, *keys), "evidence": "weak" if d.is_weak else "price list"} for d in discounts
    ]


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


LISTERS: dict[str, Callable[[Catalog], list[Row]]] = {
    "accelerators": accelerator_rows,
    "servers": server_rows,
    "network": network_rows,
    "storage": storage_rows,
    "mig": mig_rows,
}
