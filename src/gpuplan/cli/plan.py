"""`gpuplan plan`: what to get, how many, from where, what it costs, and why."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuplan.cli.completion import accelerator_names, model_names
from gpuplan.cli.options import Overlay, Store, user_store
from gpuplan.cli.output import Form, busy, chosen, emit

if TYPE_CHECKING:
    from gpuplan.domain.plan.answer import Answer
    from gpuplan.domain.requests.plan import PlanRequest

Target = Annotated[
    str, typer.Argument(help='scenario.yaml, or words: "Llama-3.3-70B, 6000 users, chat".')
]
Model = Annotated[
    str | None,
    typer.Option(help="Model name, config.json, or its folder.", autocompletion=model_names),
]
Precision = Annotated[str | None, typer.Option(help="Of the weights; as published by default.")]
KvPrecision = Annotated[str | None, typer.Option(help="Of the key-value cache.")]
Users = Annotated[float | None, typer.Option(min=0, help="People who use the service.")]
Active = Annotated[float | None, typer.Option(min=0, max=1, help="Share of them at the peak.")]
PerHour = Annotated[
    float | None, typer.Option("--requests-per-hour", min=0, help="Of one active user.")
]
Rate = Annotated[float | None, typer.Option(min=0, help="Requests a second at the peak.")]
PerDay = Annotated[float | None, typer.Option("--requests-per-day", min=0, help="In all.")]
Input = Annotated[int | None, typer.Option("--input", min=1, help="Tokens of a prompt, mean.")]
OutputTokens = Annotated[int | None, typer.Option(min=0, help="Tokens of an answer, mean.")]
PrefixHit = Annotated[float | None, typer.Option(min=0, max=1, help="Of the prompt, cached.")]
Ttft = Annotated[
    float | None, typer.Option("--ttft-p95-ms", "--ttft-p95", min=0, help="To the first token.")
]
Tpot = Annotated[
    float | None, typer.Option("--tpot-p95-ms", "--tpot", min=0, help="Per token after it.")
]
E2e = Annotated[float | None, typer.Option("--e2e-p95-s", min=0, help="For the whole answer.")]
On = Annotated[
    str | None,
    typer.Option(help="Only these accelerators: H100,L40S.", autocompletion=accelerator_names),
]
Cloud = Annotated[str | None, typer.Option(help="Only these clouds.")]
Region = Annotated[str | None, typer.Option(help="Only these regions.")]
Survive = Annotated[str | None, typer.Option(help="gpu, replica, node, rack or zone may fail.")]
MaxUse = Annotated[float | None, typer.Option("--max-utilization", min=0, max=1)]
Budget = Annotated[float | None, typer.Option(min=0, help="USD a month at most.")]
Growth = Annotated[float | None, typer.Option(help="Of demand, fraction a month.")]
PowerKw = Annotated[float | None, typer.Option("--power-kw", min=0, help="That your site has.")]
WhatIf = Annotated[
    list[str] | None, typer.Option("--what-if", help="key=value: plan both and compare.")
]
Set = Annotated[list[str] | None, typer.Option("--set", help="key=value: change the scenario.")]
Check = Annotated[bool, typer.Option("--check", help="End with 4 when a limit is broken.")]
Samples = Annotated[int, typer.Option(min=0, help="Of uncertain inputs; 0 leaves them out.")]
Robust = Annotated[
    float | None, typer.Option(min=0, max=1, help="Be enough in this share of samples: 0.9.")
]
Replay = Annotated[
    str, typer.Option(help="usual: long days in part; full: every request of the day or week.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")]
AsOf = Annotated[str | None, typer.Option(help="Day to judge prices on, e.g. 2026-11-01.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write the plan here: plan.yaml.")]
Page = Annotated[Path | None, typer.Option("--page", help="Write the page here: plan.html.")]
Output = Annotated[Form, typer.Option("-o", "--output", help="Output form.")]
Json = Annotated[bool, typer.Option("--json", help="Short for -o json.")]


def plan(
    target: Target = "",
    model: Model = None,
    precision: Precision = None,
    kv_precision: KvPrecision = None,
    users: Users = None,
    active: Active = None,
    requests_per_hour: PerHour = None,
    rate: Rate = None,
    requests_per_day: PerDay = None,
    input_tokens: Input = None,
    output_tokens: OutputTokens = None,
    prefix_hit: PrefixHit = None,
    ttft_p95_ms: Ttft = None,
    tpot_p95_ms: Tpot = None,
    e2e_p95_s: E2e = None,
    on: On = None,
    cloud: Cloud = None,
    region: Region = None,
    survive: Survive = None,
    max_utilization: MaxUse = None,
    budget: Budget = None,
    growth: Growth = None,
    power_kw: PowerKw = None,
    what_if: WhatIf = None,
    set_key: Set = None,
    check: Check = False,
    samples: Samples = 200,
    robust: Robust = None,
    replay: Replay = "usual",
    seed: Seed = 0,
    as_of: AsOf = None,
    overlay: Overlay = None,
    store: Store = None,
    out: Out = None,
    page: Page = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Plan: which accelerators, how many, from where, at what cost; and why not the others."""
    given: dict[str, Any] = {
        "model": model, "precision": precision, "kv_precision": kv_precision, "users": users,
        "active": active, "requests_per_hour": requests_per_hour, "rate": rate,
        "requests_per_day": requests_per_day, "input": input_tokens,
        "output_tokens": output_tokens, "prefix_hit": prefix_hit, "ttft_p95_ms": ttft_p95_ms,
        "tpot_p95_ms": tpot_p95_ms, "e2e_p95_s": e2e_p95_s, "on": _names(on),
        "cloud": _names(cloud), "region": _names(region), "survive": survive,
        "max_utilization": max_utilization, "budget": budget, "growth": growth,
        "power_kw": power_kw,
    }  # fmt: skip
    from gpuplan.domain.requests.plan import PlanRequest

    request = PlanRequest(
        target=target, today=_day(as_of), given=given, changes=tuple(set_key or ()), seed=seed,
        n_samples=samples, robust_frac=robust, is_check=check, overlays=tuple(overlay or ()),
        store=user_store(store), is_replay_full=_is_full(replay),
    )  # fmt: skip
    if what_if:
        _compare(request, tuple(what_if), chosen(output, as_json=as_json))
    else:
        _plan(request, chosen(output, as_json=as_json), out=out, page=page)


def _is_full(replay: str) -> bool:
    from gpuplan.errors import InputError, one

    if replay not in ("usual", "full"):
        raise one(InputError, "plan", "--replay", f"got {replay!r}", "use usual or full")
    return replay == "full"


def _plan(request: "PlanRequest", form: Form, *, out: Path | None, page: Path | None) -> None:
    from gpuplan import api

    with busy("planning; the first run compiles its kernels"):
        answer = api.plan(request)
    # Files first: a reader that has seen enough must not cost the plan.
    _write(answer, out, page)
    emit(api.plan_sheet(answer), form)
    api.refuse(answer, is_check=request.is_check)


def _compare(request: "PlanRequest", changes: tuple[str, ...], form: Form) -> None:
    from gpuplan import api

    with busy("planning twice"):
        before, after = api.what_if(request, changes)
    emit(api.diff_sheet(before, after), form)


def _write(answer: "Answer", out: Path | None, page: Path | None) -> None:
    from gpuplan import api
    from gpuplan.cli.scenario import write_whole

    if out is not None:
        write_whole(out, api.plan_text(answer))
        typer.echo(f"wrote {out}; next: gpuplan explain {out}", err=True)
    if page is not None:
        write_whole(page, api.plan_page(answer))
        typer.echo(f"wrote {page}", err=True)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _day(text: str | None) -> date:
    from gpuplan.errors import InputError, one

    if text is None:
        return date.today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        fix = "write it as 2026-11-01"
        raise one(InputError, "plan", "--as-of", f"{text!r} is no day", fix) from None
