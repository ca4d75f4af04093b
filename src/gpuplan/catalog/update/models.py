"""Model configs made fresh, in: a model's name; out: its checked config.json in the store.

What new prices change, in: rows fetched, offers in use, saved plans; out: what moved, how much.

A file of prices that is replaced stays in the store's history, under the day of its prices.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from gpuplan.catalog.update.fetch import NOT_FOUND, FetchError, Limits, check_base_url, fetch_bytes
from gpuplan.catalog.update.rows import PriceRow
from gpuplan.catalog.update.store import PRICES, price_file, write_whole
from gpuplan.domain.money.market import CloudUpdate, Offer, PlanMove, PriceMove, UpdateReport
from gpuplan.errors import CatalogError, InputError, one

HISTORY = "history"
SAME_FRAC = 2e-3


BASE_URL = "https://huggingface.co/"
LIMITS = Limits(max_bytes=2_000_000, total_s=30.0)
FETCH = partial(fetch_bytes, limits=LIMITS)
MODELS = "models"
PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
MODEL_ID = re.compile(f"(?P<owner>{PART})/(?P<name>{PART})")
MAX_DEPTH = 40
# A config that says nothing of the model's shape is an error page, or another kind of file.
EXPECTED_KEYS = frozenset(
    {
        "model_type",
        "architectures",
        "hidden_size",
        "num_hidden_layers",
        "text_config",
        "_class_name",
        "n_layer",
        "d_model",
        "n_embd",
    }
)


def update_model(
    store: Path,
    model_id: str,
    *,
    today: date,
    base_url: str = BASE_URL,
    fetch: Callable[[str], bytes] = FETCH,
) -> UpdateReport:
    """Fetch the model's config and keep it if it is one; what was stored stays on any failure."""
    check_base_url(base_url)
    path = config_file(store, model_id)
    url = f"{base_url.rstrip('/')}/{model_id}/resolve/main/config.json"
    try:
        config = parse_config(model_id, fetch(url))
    except FetchError as error:
        raise _not_had(model_id, error) from None
    content = (json.dumps(config, indent=1, sort_keys=True) + "\n").encode()
    is_same = path.exists() and path.read_bytes() == content
    if not is_same:
        write_whole(path, content)
    part = CloudUpdate(
        name=model_id,
        state="unchanged" if is_same else "updated",
        n_rows=1,
        n_dropped=0,
        detail=str(path),
    )
    return UpdateReport(fetched_on=today, source=url, parts=(part,))


def stored_model_config(store: Path, model_id: str) -> dict[str, Any] | None:
    """The config that was fetched for this model, or None."""
    path = config_file(store, model_id)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    return parse_config(model_id, content)


def config_file(store: Path, model_id: str) -> Path:
    """Where a model's config is kept; a name that is no plain owner/name is refused."""
    found = MODEL_ID.fullmatch(model_id)
    if not found or ".." in model_id or "--" in model_id:
        raise one(
            InputError,
            "catalog update",
            "model",
            f"got {model_id[:80]!r}",
            "write owner/name as on the hub, e.g. meta-llama/Llama-3.1-8B-Instruct",
        )
    return store / MODELS / f"{found['owner']}--{found['name']}.json"


def parse_config(model_id: str, content: bytes) -> dict[str, Any]:
    """The config as a mapping; CatalogError where the bytes are not a model's config."""
    try:
        config = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _unsound(model_id, f"no JSON ({str(error)[:60]})") from None
    if not isinstance(config, dict) or not EXPECTED_KEYS & set(config):
        raise _unsound(model_id, "no model config in it")
    if _depth(config) > MAX_DEPTH:
        raise _unsound(model_id, f"nested deeper than {MAX_DEPTH}")
    return config


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def _depth(value: object) -> int:
    """Levels of nesting, counted without recursion."""
    deepest, pending = 0, [(value, 1)]
    while pending:
        item, level = pending.pop()
        deepest = max(deepest, level)
        if isinstance(item, dict):
            pending += [(child, level + 1) for child in item.values()]
        elif isinstance(item, list):
            pending += [(child, level + 1) for child in item]
    return deepest


def _unsound(model_id: str, what: str) -> Exception:
    return one(
        CatalogError,
        "catalog update",
        model_id,
        what,
        "nothing was stored; check the name, or give a local config.json",
    )


def _not_had(model_id: str, error: FetchError) -> Exception:
    if error.is_missing:
        what, fix = "no such model, or it has no config.json", "check the name"
    elif error.is_denied:
        what, fix = f"{error}", "it is gated"
    else:
        what, fix = f"{error}; packaged models stay in use", "go online and try again"
    return one(
        CatalogError, "catalog update", model_id, what, f"{fix}, or give a local config.json"
    )


def moved_prices(rows: Iterable[PriceRow], present: Sequence[Offer]) -> tuple[PriceMove, ...]:
    """Machines that cost otherwise than before, the largest change first; new ones are none."""
    had = {(o.shape.name, o.shape.ram_bytes, o.region): o for o in present}
    moves = []
    for row in rows:
        offer = had.get((row.shape.name, row.shape.ram_bytes, row.region))
        if offer and abs(row.usd_per_h / offer.usd_per_h - 1) > SAME_FRAC:
            moves.append(
                PriceMove(
                    cloud=offer.cloud,
                    instance=offer.instance,
                    region=offer.region,
                    old_usd_per_h=offer.usd_per_h,
                    new_usd_per_h=row.usd_per_h,
                )
            )
    return tuple(sorted(moves, key=lambda move: -abs(move.change_frac)))


def keep_history(store: Path, cloud: str) -> None:
    """Copy the cloud's fetched prices, where there are any, before others replace them."""
    path = price_file(store, cloud)
    if path.is_file():
        content = path.read_bytes()
        last = content.decode("utf-8", "replace").rstrip().rpartition("\n")[2].split(",")
        day = last[-2] if len(last) > 1 else "unknown"
        write_whole(store / HISTORY / PRICES / f"{cloud} {day}.csv", content)


def folder_fetch(folder: Path, base_url: str, limits: Limits) -> Callable[[str], bytes]:
    """Files below a folder in place of those below an address: a checkout of the same tables."""

    def fetch(url: str) -> bytes:
        path = folder / url.removeprefix(base_url.rstrip("/") + "/")
        try:
            if path.stat().st_size > limits.max_bytes:
                raise FetchError(str(path), f"refused: more than {limits.max_bytes} bytes")
            return path.read_bytes()
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise FetchError(str(path), why, status=NOT_FOUND) from error

    return fetch


def moved_plan(name: str, document: Mapping[str, Any], moves: Sequence[PriceMove]) -> PlanMove:
    """What a saved plan costs a month as it was saved, and at the new prices of its machines."""
    new = {(m.cloud, m.instance, m.region): m.new_usd_per_h / m.old_usd_per_h for m in moves}
    pools = (document.get("plan") or {}).get("pools") or ()
    bought = [purchase for pool in pools for purchase in pool.get("purchases") or ()]
    before = after = 0.0
    for purchase in bought:
        usd = float(purchase.get("usd_per_month") or 0.0)
        key = tuple(purchase.get(part) or "" for part in ("cloud", "offer", "region"))
        before += usd
        after += usd * new.get(key, 1.0)  # type: ignore[arg-type]
    return PlanMove(plan=name, old_usd_per_month=before, new_usd_per_month=after)
