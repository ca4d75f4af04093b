"""Flags of `plan` that stand for keys of a scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import Description
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.document import Document, KeyPath, show_path

WORK: KeyPath = ("workloads", 0)
# flag → key of the scenario; the flag is what assumptions name
KEYS: dict[str, KeyPath] = {
    "model": (*WORK, "model"),
    "precision": (*WORK, "precision"),
    "kv_precision": (*WORK, "kv_precision"),
    "users": (*WORK, "demand", "users"),
    "active": (*WORK, "demand", "active_frac"),
    "requests_per_hour": (*WORK, "demand", "requests_per_user_per_h"),
    "rate": (*WORK, "demand", "requests_per_s"),
    "requests_per_day": (*WORK, "demand", "requests_per_day"),
    "concurrency": (*WORK, "demand", "concurrent_requests"),
    "think_time_s": (*WORK, "request", "think_time_s"),
    "input_tokens": (*WORK, "request", "input_tokens"),
    "output_tokens": (*WORK, "request", "output_tokens"),
    "prefix_cache_hit_rate": (*WORK, "request", "prefix_hit_frac"),
    "ttft_p95_ms": (*WORK, "slo", "ttft_p95_ms"),
    "tpot_p95_ms": (*WORK, "slo", "tpot_p95_ms"),
    "e2e_p95_s": (*WORK, "slo", "e2e_p95_s"),
    "on": ("policy", "accelerators", "allowed"),
    "cloud": ("policy", "clouds", "allowed"),
    "region": ("policy", "regions", "allowed"),
    "survive": ("policy", "survive"),
    "max_utilization": ("policy", "max_utilization_frac"),
    "budget": ("budget", "usd_per_month"),
    "growth": ("growth", "per_month_frac"),
    "power_kw": ("site", "power_kw"),
    "indicative_prices": ("policy", "indicative_prices_allowed"),
}


def option_of(flag: str) -> str:
    """The flag as it is typed: --ttft-p95-ms."""
    return "--" + flag.replace("_", "-")


def how_to_set(path: KeyPath) -> str:
    """The flag that sets a key, or the change that does."""
    flag = next((flag for flag, key in KEYS.items() if key == path), None)
    return option_of(flag) if flag else f"--set {show_path(path)}=…"


def with_flags(document: Document, given: Mapping[str, Any]) -> Document:
    """The document with the keys that flags stand for; None is a flag that was not given."""
    problems = []
    for flag, value in given.items():
        if value is None:
            continue
        plain = list(value) if isinstance(value, tuple) else value
        try:
            document = document.with_value(KEYS[flag], plain, origin=option_of(flag))
        except (TypeError, IndexError) as error:
            fix = f"correct {show_path(KEYS[flag])} in {document.name} first"
            problems.append(Problem(option_of(flag), f"cannot be set: {error}", fix))
    if problems:
        raise InputError(document.name, problems)
    return document


def still_assumed(notes: Sequence[Assumption], document: Document) -> tuple[Assumption, ...]:
    """Assumptions of a description but those whose key an option has set since."""
    options = tuple(how_to_set(path) for path in document.origins)
    return tuple(note for note in notes if not note.change.endswith(options))


def still_described(found: Description, document: Document) -> Description:
    """A description without what options have set since."""
    keys = {show_path(path) for path in document.origins}
    understood = tuple(each for each in found.understood if each.key not in keys)
    assumed = still_assumed(found.assumptions, document)
    return replace(found, tree=document.data, understood=understood, assumptions=assumed)
