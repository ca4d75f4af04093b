"""Refresh: prices from one of two sources, or the configs of named models."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

from gpuplan.catalog.update import models, prices, skypilot
from gpuplan.catalog.update.fetch import Limits, fetch_bytes
from gpuplan.catalog.update.models import folder_fetch, moved_plan
from gpuplan.catalog.update.prices import PROVIDERS, update_from_gpuhunt
from gpuplan.domain.money.market import UpdateReport
from gpuplan.domain.requests.requests import UpdateRequest
from gpuplan.inputs.documents.yaml_reader import read_yaml


def update(request: UpdateRequest, *, store: Path, today: date) -> UpdateReport:
    """Fetch what was asked and price the saved plans anew; what is unsound changes nothing."""
    saved = {str(path): read_yaml(path).data for path in request.plans}
    report = _updated(request, store, today)
    plans = tuple(moved_plan(name, plan, report.moves) for name, plan in saved.items())
    return replace(report, plans=plans)


def _updated(request: UpdateRequest, store: Path, today: date) -> UpdateReport:
    if request.models:
        return _update_models(request, store, today)
    if request.is_through_gpuhunt:
        providers = request.clouds or tuple(PROVIDERS)
        return update_from_gpuhunt(store, today=today, providers=providers, force=request.is_forced)
    base_url = request.price_url or skypilot.BASE_URL
    from_folder = request.folder and folder_fetch(request.folder, base_url, prices.LIMITS)
    report = prices.update_prices(
        store,
        today=today,
        clouds=request.clouds or None,
        base_url=base_url,
        force=request.is_forced,
        fetch=from_folder or _fetch(prices.LIMITS, request),
    )
    return replace(report, source=str(request.folder or base_url))


def _update_models(request: UpdateRequest, store: Path, today: date) -> UpdateReport:
    fetch = _fetch(models.LIMITS, request)
    base_url = request.model_url or models.BASE_URL
    reports = [
        models.update_model(store, name, today=today, base_url=base_url, fetch=fetch)
        for name in request.models
    ]
    parts = tuple(part for report in reports for part in report.parts)
    return replace(reports[0], source=base_url, parts=parts)


def _fetch(limits: Limits, request: UpdateRequest) -> Callable[[str], bytes]:
    return partial(fetch_bytes, limits=replace(limits, total_s=request.timeout_s))
