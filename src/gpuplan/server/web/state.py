"""What a page is asked, as its address says it: words or a scenario, and keys set over them."""

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any, NamedTuple
from urllib.parse import urlencode

import yaml

from gpuplan.errors import InputError, one

EXAMPLE = "Llama-3.3-70B chat for 6000 users"
ROOTS = ("workloads[", "policy.", "budget.", "site.", "growth.", "objective")
LISTS = ("policy.accelerators.allowed", "policy.purchases")
MAX_KEYS, MAX_TEXT = 40, 20_000
SAMPLES = 200
Pairs = Sequence[tuple[str, str]]


class PageState(NamedTuple):
    """The state of a page: everything that its address holds."""

    words: str
    scenario: str  # a scenario file as text; empty: the words say it
    keys: Mapping[str, str]  # of the scenario, with the value to set
    power_kw: float | None  # the most that a fleet may draw at its peak
    what_if: tuple[str, ...]
    pin: str  # accelerator,precision to answer for alone, at once; empty: all

    def body(self, *, without: Sequence[str] = (), pinned: str = "") -> dict[str, Any]:
        """The question to `plan`; pinned: to one accelerator and precision."""
        keys = {key: value for key, value in self.keys.items() if key not in without}
        keys |= _pinned(pinned or self.pin)
        requested: dict[str, Any] = {"words": self.words}
        if self.scenario:
            requested = {"scenario": _tree(self.scenario)}
        changes = [f"{key}={value}" for key, value in keys.items()]
        return {**requested, "changes": changes, "samples": SAMPLES, "brief": bool(self.pin)}

    def address(self, path: str = "/", **more: str | Sequence[str]) -> str:
        """The address of this state, for links."""
        pairs: dict[str, str | Sequence[str]] = {}
        if self.scenario:
            pairs["scenario"] = self.scenario
        else:
            pairs["words"] = self.words
        pairs |= self.keys
        if self.power_kw is not None:
            pairs["power_kw"] = f"{self.power_kw:g}"
        return f"{path}?{urlencode({**pairs, **more}, doseq=True)}"


def state_of(pairs: Pairs) -> PageState:
    """The state that an address holds; InputError where it cannot be read."""
    one_of = dict(pairs)
    keys: dict[str, str] = {}
    for name, value in pairs:
        if name.startswith(ROOTS) and value.strip():
            before = f"{keys[name]}, " if name in keys else ""
            keys[name] = before + value.strip()
    for name in LISTS:
        if name in keys and not keys[name].startswith("["):
            keys[name] = f"[{keys[name]}]"
    if len(keys) > MAX_KEYS or any(len(value) > MAX_TEXT for _, value in pairs):
        raise one(InputError, "page", "address", "holds too much", "ask for less at once")
    return PageState(
        words=one_of.get("words", "").strip() or EXAMPLE,
        scenario=one_of.get("scenario", "").strip(),
        keys=keys,
        power_kw=_number("power_kw", one_of.get("power_kw", "")),
        what_if=tuple(v.strip() for name, v in pairs if name == "what_if" and v.strip()),
        pin=one_of.get("pin", ""),
    )


def _pinned(pin: str) -> dict[str, str]:
    accelerator, _, precision = pin.partition(",")
    keys = {"policy.accelerators.allowed": f"[{accelerator}]", "workloads[0].precision": precision}
    return {key: value for key, value in keys.items() if value.strip("[]")}


def _number(name: str, text: str) -> float | None:
    if not text.strip():
        return None
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < 1e9:
        raise one(InputError, "page", name, f"{text[:40]!r} is no limit", "give a number above 0")
    return found


def _tree(text: str) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        fix = "paste a scenario file as `gpuplan init` writes it"
        raise one(InputError, "scenario", "text", str(error)[:300], fix) from None
    if not isinstance(tree, dict):
        fix = "paste a scenario file as `gpuplan init` writes it"
        raise one(InputError, "scenario", "text", "has no keys", fix)
    return tree


class Slider(NamedTuple):
    """A number of the scenario that a page moves."""

    key: str
    label: str
    unit: str
    low: float
    high: float
    step: float
    value: float | None  # None: not set


LOADS = {
    "users": "users",
    "requests_per_s": "requests/s at the peak",
    "requests_per_day": "requests/day",
    "output_tokens_per_s": "output tokens/s",
    "concurrent_requests": "concurrent clients",
}


def sliders(state: PageState, tree: Mapping[str, Any], *, usd: float, kw: float) -> list[Slider]:
    """Load, SLOs, budget and power of a scenario, each over a useful range."""
    work: Mapping[str, Any] = next(iter(tree.get("workloads") or ()), {})
    found = []
    for key, label in LOADS.items():
        value = (work.get("demand") or {}).get(key)
        if isinstance(value, int | float):
            base = _base(value)
            step = base / 20 if base >= 20 else base / 100
            path = f"workloads[0].demand.{key}"
            found.append(Slider(path, f"Load: {label}", "", step, base * 5, step, value))
    for name, value in (work.get("slo") or {}).items():
        if isinstance(value, int | float) and name.endswith(("_ms", "_s")):
            unit, base = name.rpartition("_")[2], _base(value)
            label = f"SLO: {_slo(name)}"
            low, high = base / 10, base * 3
            found.append(Slider(f"workloads[0].slo.{name}", label, unit, low, high, low, value))
    budget = (tree.get("budget") or {}).get("usd_per_month")
    top = _base(max(usd * 3, budget or 0.0, 1000.0))
    found.append(
        Slider("budget.usd_per_month", "Budget", "$/month", top / 100, top, top / 100, budget)
    )
    top = _base(max(kw * 3, state.power_kw or 0.0, 1.0))
    found.append(Slider("power_kw", "Power limit", "kW", top / 100, top, top / 100, state.power_kw))
    return found


def _base(value: float) -> float:
    """The next round number: 1, 2 or 5 times a power of ten."""
    scale = 10.0 ** floor(log10(max(value, 1e-6)))
    return next(scale * nice for nice in (1, 2, 5, 10, 20) if scale * nice >= value)


def _slo(name: str) -> str:
    """ttft_p95_ms as TTFT p95."""
    first, *rest = name.rpartition("_")[0].split("_")
    return " ".join((first.upper(), *rest))
