"""Options that would do nothing beside others: each is told, none is passed over in silence."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.cli.simulate_options import Typed
    from gpuplan.errors import Problem


def idle_problems(typed: "Typed") -> "list[Problem]":
    """What was typed and would not be looked at."""
    from gpuplan.errors import Problem

    found = []
    if typed.trace is not None or typed.scenario is not None:
        source = "--trace" if typed.trace is not None else "--scenario"
        fix = f"leave it out: {source} says when requests come and how long they are"
        found += [Problem(flag, f"with {source}", fix) for flag in _drawing(typed)]
    if typed.trace is None and typed.lengths_from is None:
        beside = {"--columns": typed.columns, "--where": typed.where}
        found += [
            Problem(flag, "without --trace", "name the file")
            for flag, is_on in beside.items()
            if is_on
        ]
    elif typed.trace and typed.duration is not None and not typed.trace.is_dir():
        found.append(Problem("--duration", "with a trace of requests", "cut the file, or leave it"))
    if typed.stream and typed.router in ("prefix_affinity", "session"):
        found.append(Problem("--router", f"{typed.router} with --stream", "run it in memory"))
    if typed.stream and typed.shared_prefix is not None:
        found.append(Problem("--shared-prefix", "with --stream", "run it in memory"))
    if typed.stream and typed.priorities is not None:
        found.append(Problem("--priorities", "with --stream", "run it in memory"))
    if typed.stream and (typed.turns is not None or (typed.trace and typed.trace.is_dir())):
        what = "with --turns" if typed.turns is not None else "with clients"
        found.append(Problem("--stream", what, "run it in memory"))
    return [*found, *_lonely(typed), *_beside_curve(typed)]


def _lonely(typed: "Typed") -> "list[Problem]":
    """Options that mean nothing without another."""
    from gpuplan.errors import Problem

    has_slo = (typed.slo_ttft_ms, typed.slo_tpot_ms, typed.slo_e2e_s) != (None, None, None)
    needs = (
        ("--cost-waste", typed.cost_waste is not None, typed.curve is not None, "--curve 1..12"),
        ("--cost-delay", typed.cost_delay is not None, typed.curve is not None, "--curve 1..12"),
        ("--workers", typed.workers is not None, typed.curve is not None, "--curve 1..12"),
        ("--months", typed.months is not None, typed.growth != 0, "--growth 0.05"),
        (
            "--slo-percentile", typed.slo_percentile is not None,
            has_slo or typed.scenario is not None, "--slo-ttft-ms, --slo-tpot-ms or --slo-e2e-s",
        ),
        (
            "--draw-acceptance", typed.draw_acceptance, typed.speculative_tokens is not None,
            "--speculative-tokens",
        ),
        (
            "--priorities", typed.priorities is not None, typed.scheduling == "priority",
            "--scheduling priority",
        ),
        ("--loras", typed.loras is not None, typed.lora_rank > 0, "--lora-rank"),
        ("--workload", typed.workload is not None, typed.scenario is not None, "--scenario"),
    )  # fmt: skip
    return [
        Problem(flag, "has nothing to act on", f"give {other} too, or leave it out")
        for flag, is_on, is_other, other in needs
        if is_on and not is_other
    ]


def _beside_curve(typed: "Typed") -> "list[Problem]":
    """A curve replays whole runs of several sizes; it keeps none of them."""
    from gpuplan.errors import Problem

    if typed.curve is None:
        return []
    beside = {
        "--users": typed.users is not None,
        "--stream": typed.stream,
        "--gaps": typed.gaps,
        "--out": typed.out is not None,
        "--warmup": typed.warmup is not None,
        "--replicas": typed.replicas != 1,
    }
    fix = "leave it out, or simulate the one size that you want to see"
    return [Problem(flag, "with --curve", fix) for flag, is_on in beside.items() if is_on]


def _drawing(typed: "Typed") -> list[str]:
    """Options that say how requests are drawn."""
    figures = {
        "--arrivals": typed.arrivals,
        "--burstiness": typed.burstiness,
        "--think-s": typed.think_s,
        "--turns": typed.turns,
        "--input-tokens": typed.input_tokens,
        "--output-tokens": typed.output_tokens,
        "--input-p95": typed.input_p95,
        "--output-p95": typed.output_p95,
        "--lengths": typed.lengths,
        "--requests": typed.n_requests,
        "--profile": typed.profile,
        "--growth": typed.growth or None,
        "--months": typed.months,
    }
    return [flag for flag, value in figures.items() if value is not None]
