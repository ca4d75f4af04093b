"""The pages: addresses in, HTML out; every answer comes from a job, like those of other clients."""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from time import time
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gpuplan.pipeline.catalog import KINDS
from gpuplan.render.targets import TARGETS
from gpuplan.report.catalog.sheets import HEADINGS
from gpuplan.report.plan.document import shown
from gpuplan.server.rest.access import LOCAL, TOKEN_COOKIE
from gpuplan.server.rest.answers import RefusalError
from gpuplan.server.rest.door import Door, JobId
from gpuplan.server.rest.jobs import Job, SavedPlan
from gpuplan.server.web.drawings import cost_against_odds, curves, heat_map, thinned
from gpuplan.server.web.exports import exported
from gpuplan.server.web.planned import SHEET, WAIT_S, Planned, plan_of, planned
from gpuplan.server.web.shown import Limits, comparison, figures, rejections, targets
from gpuplan.server.web.state import EXAMPLE, PageState, sliders, state_of
from gpuplan.units import HOUR

STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
N_LINES = 64  # of a heat-map
N_COMPARED = 4
MAX_FIELDS = 50  # of a form
TITLED = ("columns", "right")  # of a table: lists of headings
DATED_S = 1e8  # times before this count from a beginning of their own
FIRST_S = 2.0  # then the page shows itself, and the answer follows
Route = Callable[..., Awaitable[Response]]
Text = Annotated[str, Query(max_length=200)]


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("gpuplan.server.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["shown"] = shown
    return found


def page(name: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """A template, filled in."""
    return HTMLResponse(_environment().get_template(name).render(**values), status)


def error_page(body: Mapping[str, Any], status: int) -> HTMLResponse:
    """An error for people: what, where, and how to fix it."""
    return page("error.html.j2", {"error": body, "here": ""}, status)


def add_pages(app: FastAPI, door: Door) -> None:
    """The paths of all pages."""
    pages = _Pages(door)
    shown: dict[str, Route] = {
        "/": pages.start,
        "/answer": pages.answer,
        "/what-if": pages.what_if,
        "/plans": pages.plans,
        "/telemetry": pages.telemetry,
        "/telemetry/{job_id}": pages.diagnosis,
        "/catalog": pages.catalog,
        "/export/{job_id}/{target}": pages.export,
        "/login": pages.login,
        "/static/{name}": _static,
    }
    for path, handler in shown.items():
        app.get(path, include_in_schema=False)(handler)
    sent: dict[str, Route] = {
        "/plans": pages.save,
        "/telemetry": pages.upload,
        "/login": pages.enter,
    }
    for path, handler in sent.items():
        app.post(path, include_in_schema=False)(handler)


async def ask_example(door: Door) -> None:
    """Have the example answered before anybody looks."""
    await door.ask(LOCAL, SHEET, state_of([]).body(), 0.0)


async def _static(name: Annotated[str, Path(max_length=40)]) -> Response:
    if name not in STATIC:
        raise RefusalError(404, "page", "there is no such file")
    content = (files("gpuplan.server.web") / "static" / name).read_bytes()
    head = {"Cache-Control": "no-cache"}
    return Response(content, media_type=STATIC[name], headers=head)


async def _form(request: Request) -> dict[str, str]:
    """Fields of a form, as browsers send it without files."""
    text = (await request.body()).decode("utf-8", errors="replace")
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        raise RefusalError(422, "input", f"a form has at most {MAX_FIELDS} fields") from None


class _Pages:
    """All pages of one server."""

    def __init__(self, door: Door) -> None:
        self.door = door

    async def start(self, request: Request) -> Response:
        """The plan of a state, or of the example."""
        state = state_of(request.query_params.multi_items())
        found = await planned(self.door, request.state.owner, state, FIRST_S)
        return page("plan.html.j2", {**_plan_values(state, found), "here": "plan"})

    async def answer(self, request: Request) -> Response:
        """The answer alone, for a page that is open already; pinned: its first lines."""
        state = state_of(request.query_params.multi_items())
        found = await planned(self.door, request.state.owner, state)
        name = "summary.html.j2" if state.pin else "answer.html.j2"
        return page(name, _plan_values(state, found))

    async def what_if(self, request: Request) -> Response:
        """The plan beside one with keys of the scenario changed."""
        state = state_of(request.query_params.multi_items())
        if not state.what_if:
            return RedirectResponse(state.address(), 303)
        owner = request.state.owner
        base = await planned(self.door, owner, state)
        keys = dict(change.split("=", 1) for change in state.what_if if "=" in change)
        changed = state._replace(keys={**state.keys, **keys}, what_if=())
        other = await planned(self.door, owner, changed)
        links = [state._replace(what_if=()).address(), changed.address()]
        return await self._beside(
            owner, ["as it is", ", ".join(state.what_if)], [base, other], links
        )

    async def _beside(
        self, owner: str, names: list[str], plans: list[Planned], links: list[str]
    ) -> Response:
        """Plans side by side, and what differs between the first two."""
        diff = None
        known = [found.document for found in plans if found.document]
        if len(known) == len(plans) == 2 and all(each["feasible"] for each in known):
            body = {"plan": known[0], "other": known[1]}
            job = await self.door.ask(owner, "diff+sheet", body, WAIT_S)
            diff = json.loads(job.result) if job.state == "done" and job.result else None
        rows = _side_by_side(plans)
        waiting = [found.job for found in plans if not found.job.is_ended]
        values = {"names": names, "plans": plans, "links": links, "rows": rows}
        values |= {"here": "plans", "diff": diff, "jobs": waiting}
        return page("compare.html.j2", values)

    async def plans(self, request: Request) -> Response:
        """Saved plans; those that are named, side by side."""
        owner = request.state.owner
        saved = self.door.store.saved(owner)
        wanted = request.query_params.getlist("plan")[:N_COMPARED]
        chosen = [each for each in reversed(saved) if each.name in wanted]
        if len(chosen) < 2:
            return page("plans.html.j2", {"here": "plans", "saved": saved, "chosen": wanted})
        jobs = [self.door.store.get(each.job) for each in chosen]
        plans = [_retained(job) for job in jobs if job is not None]
        links = [each.address for each in chosen]
        return await self._beside(owner, [each.name for each in chosen], plans, links)

    async def save(self, request: Request) -> Response:
        """Keep a plan under a name, or take it off the list."""
        form = await _form(request)
        owner, name = request.state.owner, form.get("name", "").strip()[:80]
        if form.get("forget"):
            self.door.store.forget(owner, form["forget"])
            return RedirectResponse("/plans", 303)
        job = self.door.own(request, form.get("job", ""))
        plan = plan_of(job)
        address = form.get("address", "/")
        address = address if address.startswith("/?") and len(address) < 40_000 else "/"
        name = name or str(plan.get("name", "a plan"))[:80]
        self.door.store.save(owner, SavedPlan(name, job.id, address, time()))
        return RedirectResponse("/plans", 303)

    async def telemetry(self) -> Response:
        """Where telemetry or a trace is given."""
        return page("telemetry.html.j2", _telemetry_values(None, None))

    async def upload(self, request: Request) -> Response:
        """Telemetry or a trace, as text; the answer has an address of its own."""
        form = await _form(request)
        text, is_trace = form.get("text", ""), form.get("kind") == "trace"
        if not text.strip():
            raise RefusalError(422, "input", "there is no text: choose a file, or paste a table")
        body = {"text": text}
        verb = "trace+sheet" if is_trace else "diagnose+sheet"
        job = await self.door.ask(request.state.owner, verb, body, WAIT_S)
        return RedirectResponse(f"/telemetry/{job.id}", 303)

    async def diagnosis(self, request: Request, job_id: JobId) -> Response:
        """What telemetry or a trace says."""
        job = await self.door.ended(self.door.own(request, job_id), WAIT_S)
        if job.error:
            return error_page(json.loads(job.error), 422)
        sheet = json.loads(job.result) if job.result else None
        return page("telemetry.html.j2", _telemetry_values(job, sheet))

    async def catalog(
        self, request: Request, what: Text = "accelerators", item: Text = "", q: Text = ""
    ) -> Response:
        """Facts with their sources."""
        body = {"item": item} if item else {"what": what}
        job = await self.door.ask(request.state.owner, "catalog+sheet", body, WAIT_S)
        if job.error:
            return error_page(json.loads(job.error), 422)
        sheet = json.loads(job.result or '{"tables": [], "remarks": []}')
        tables = [_matching(table, q) for table in sheet["tables"]]
        values: dict[str, Any] = {"what": what, "item": item, "q": q, "kinds": KINDS}
        values |= {"tables": tables, "links": _links(what, item), "here": "catalog"}
        return page("catalog.html.j2", values)

    async def export(
        self, request: Request, job_id: JobId, target: Annotated[str, Path(max_length=40)]
    ) -> Response:
        """A plan as a file, or files, for another tool."""
        plan = plan_of(self.door.own(request, job_id))
        return await exported(self.door, request.state.owner, plan, target)

    async def login(self) -> Response:
        """Where a token is entered."""
        return page("login.html.j2", {"here": "", "is_wrong": False})

    async def enter(self, request: Request) -> Response:
        """Keep the token in this browser, where it is somebody's."""
        token = (await _form(request)).get("token", "").strip()
        if not token or self.door.access.owner_of(f"Bearer {token}") is None:
            return page("login.html.j2", {"here": "", "is_wrong": True}, 401)
        found = RedirectResponse("/", 303)
        is_tls = request.url.scheme == "https"
        found.set_cookie(TOKEN_COOKIE, token, httponly=True, samesite="strict", secure=is_tls)
        return found


def _plan_values(state: PageState, found: Planned) -> dict[str, Any]:
    """Everything that the templates of a plan show."""
    document, table = found.document, found.table
    plan = document.get("plan") or {}
    tree = (document.get("provenance") or {}).get("scenario") or {}
    kw = ((plan.get("power_w") or {}).get("value") or 0.0) / 1000
    usd = (plan.get("cost_usd_per_month") or {}).get("value") or _cheapest(found)
    requested = (document.get("risk") or {}).get("level_frac")
    return {
        "state": state,
        "found": found,
        "example": EXAMPLE,
        "tree": tree,
        "work": next(iter(tree.get("workloads") or ()), {}),
        "sliders": sliders(state, tree, usd=usd, kw=kw),
        "figures": figures(document) if found.is_within else [],
        "targets": targets(document) if found.is_within else [],
        "scatter": Markup(cost_against_odds(table.rows, requested)) if table else "",
        "curves": [(title, Markup(picture)) for title, picture in curves(document)],
        "rejected": rejections(document),
        "renders": TARGETS,
    }


def _cheapest(found: Planned) -> float:
    rows = found.table.rows if found.table else []
    return min((row.usd for row in rows if row.usd), default=0.0)


def _retained(job: Job) -> Planned:
    """A saved plan as it was answered."""
    result = json.loads(job.result or "{}")
    sheet = result if "document" in result else {"document": result, "head": "", "remarks": []}
    table = comparison(sheet["document"], Limits(None, None), sheet.get("purchases", ()))
    return Planned(job, sheet, table, "", is_within=True)


def _side_by_side(plans: list[Planned]) -> list[tuple[str, list[str]]]:
    """Figures of each plan, one row for each figure."""
    columns = []
    for found in plans:
        shown = figures(found.document)
        column = {name: f"{value} ({beside})" if beside else value for name, value, beside in shown}
        column |= {target.name: target.text for target in targets(found.document)}
        columns.append(column)
    names = dict.fromkeys(name for column in columns for name in column)
    return [(name, [column.get(name, "–") for column in columns]) for name in names]


def _telemetry_values(job: Job | None, sheet: dict[str, Any] | None) -> dict[str, Any]:
    """Everything that the page of telemetry shows."""
    picture = Markup(_heat(sheet))
    tables = [_filled(each) for each in sheet["tables"]] if sheet else []
    found = {"job": job, "sheet": sheet, "picture": picture, "plan": _load(sheet), "tables": tables}
    caption = "Utilization over time" if sheet and sheet.get("heat") else "Requests over time"
    return {**found, "caption": caption, "here": "telemetry"}


def _heat(sheet: Mapping[str, Any] | None) -> str:
    """Utilization by device and time, or requests by day and hour."""
    if sheet is None:
        return ""
    heat = sheet.get("heat")
    if heat:
        rows = [str(name) for name in heat["rows"]][:N_LINES]
        cells = thinned(heat["use_frac"])[:N_LINES]
        ends = _when(heat["at_s"][0]), _when(heat["at_s"][-1])
        return heat_map(rows, cells, "Utilization by device over time", ends)
    counted = sheet["document"].get("counts")
    if not counted:
        return ""
    is_hours = counted["step_s"] == HOUR
    n_across = 24 if is_hours else 60
    most = max(counted["n_requests"]) or 1
    shares: list[float | None] = [n / most for n in counted["n_requests"]]
    lines = [shares[i : i + n_across] for i in range(0, len(shares), n_across)][:N_LINES]
    whole = [line + [None] * (len(lines[0]) - len(line)) for line in lines]
    names = [f"{'day' if is_hours else 'hour'} {i + 1}" for i in range(len(lines))]
    return heat_map(names, whole, "Requests over time, as a share of the busiest step")


def _load(sheet: Mapping[str, Any] | None) -> str:
    """The address of a plan for a recorded load; empty where there is none."""
    found = sheet["document"] if sheet else {}
    if "peak_hour_requests_per_s" not in found:
        return ""
    words = (
        f"Llama-3.3-70B, {found['peak_hour_requests_per_s']:.3g} requests/s, "
        f"{found['input_tokens']['mean']:.0f} input tokens, "
        f"{found['output_tokens']['mean']:.0f} output tokens"
    )
    keys = {}
    if found.get("gap_cv_ratio"):
        keys["workloads[0].demand.burstiness_cv"] = f"{found['gap_cv_ratio']:.2f}"
    return PageState(words, "", keys, None, (), "").address()


def _when(at_s: float) -> str:
    if at_s < DATED_S:
        return f"hour {at_s / HOUR:,.1f}"
    return f"{datetime.fromtimestamp(at_s, UTC):%d %b %Y %H:%M} UTC"


def _matching(table: dict[str, Any], q: str) -> dict[str, Any]:
    """The table with the rows that hold the words, under headings for people."""
    words = q.lower().split()
    rows = [row for row in table["rows"] if all(w in " ".join(row).lower() for w in words)]
    heads = {name: [HEADINGS.get(each, each) for each in table[name]] for name in TITLED}
    return {**table, **heads, "rows": rows, "n": len(table["rows"])}


def _filled(table: dict[str, Any]) -> dict[str, Any]:
    """The table without columns in which nothing stands."""
    retained = [i for i in range(len(table["columns"])) if any(row[i] for row in table["rows"])]
    rows = [[row[i] for i in retained] for row in table["rows"]]
    return {**table, "columns": [table["columns"][i] for i in retained], "rows": rows}


def _links(what: str, item: str) -> bool:
    """Whether the first column names items with a page of their own."""
    return not item and what in ("accelerators", "models", "servers", "network", "storage")
