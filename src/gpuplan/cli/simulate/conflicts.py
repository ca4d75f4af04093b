"""Options that contradict each other or would do nothing: each is an error, none is ignored."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpuplan.cli.simulate.options import Batching, SimulateOptions

if TYPE_CHECKING:
    from gpuplan.errors import Problem

SWEEP = "--sweep-replicas"
IN_MEMORY = "remove --stream"
Dependent = tuple[str, bool, bool, str]  # flag, is it given, is the other, which other


def check_options(options: SimulateOptions) -> None:
    """Raise InputError with every conflict: one source of requests, and nothing idle beside it."""
    from gpuplan.errors import InputError

    problems = [
        *_sources(options),
        *_unused(options),
        *_streaming(options),
        *_lonely(options),
        *_beside_sweep(options),
    ]
    if problems:
        raise InputError("simulate", problems)


def check_plan(options: SimulateOptions) -> None:
    """A plan names its fleet and load itself; without one, accelerators must be named."""
    from gpuplan.errors import InputError, Problem

    if options.plan is None:
        if not options.on:
            fix = "name the accelerators of a replica, e.g. --on H100, or give a plan file"
            raise InputError("simulate", [Problem("--on", "missing", fix)])
        return
    usual = SimulateOptions()._asdict()
    free = ("plan", "workload", "duration", "seed", "overlay", "out", "chart", "output", "as_json")
    beside = {
        f"--{name.replace('_', '-')}": value != usual[name]
        for name, value in options._asdict().items()
        if name not in free
    }
    problems = _conflicts(beside, "a plan file", "remove it; the plan names fleet and load")
    if problems:
        raise InputError("simulate", problems)


CLUSTER_ONLY = ("compare", "change_nodes", "advise_quotas", "advise_mig", "render_to")


def check_jobs(options: SimulateOptions) -> None:
    """A job trace is replayed on a cluster file, with nothing of a serving fleet beside it."""
    from gpuplan.errors import InputError, Problem

    usual = SimulateOptions()._asdict()
    if options.jobs is None:
        lonely = [f"--{name.replace('_', '-')}" for name in CLUSTER_ONLY if getattr(options, name)]
        if lonely:
            fix = "add --jobs TRACE and a cluster file, or remove it"
            raise InputError("simulate", [Problem(flag, "needs --jobs", fix) for flag in lonely])
        return
    if options.plan is None:
        fix = "name the file of the cluster: gpuplan simulate cluster.yaml --jobs trace.csv"
        raise InputError("simulate", [Problem("cluster file", "missing", fix)])
    free = ("plan", "jobs", "seed", "stream", "out", "chart", "output", "as_json", *CLUSTER_ONLY)
    beside = {
        f"--{name.replace('_', '-')}": value != usual[name]
        for name, value in options._asdict().items()
        if name not in free
    }
    problems = _conflicts(beside, "--jobs", "remove it; the cluster file names the hardware")
    if problems:
        raise InputError("simulate", problems)


def check_fleet(options: SimulateOptions) -> None:
    """A fleet file defines the replicas itself, and is simulated as a whole."""
    from gpuplan.errors import InputError

    if options.fleet is None:
        return
    beside = {
        "--stream": options.stream,
        "--itl": options.itl,
        SWEEP: options.sweep_replicas is not None,
        "--replicas": options.replicas != 1,
        "--router": options.router != "least_outstanding",
        "--batching": options.batching is not Batching.CONTINUOUS,
        "--pp": options.pp != 1,
        "--dp": options.dp != 1,
        "--ep": options.ep != 1,
        "--node-gbit": options.node_gbit is not None,
        "--lora-rank": options.lora_rank != 0,
    }
    problems = _conflicts(beside, "--fleet", "remove it; the fleet file defines the pools")
    if problems:
        raise InputError("simulate", problems)


def is_network(options: SimulateOptions) -> bool:
    """Whether whole requests of a CNN, encoder or the like are batched, not tokens of an LLM."""
    from gpuplan import api

    is_fixed = options.batching is not Batching.CONTINUOUS
    return is_fixed and options.model is not None and api.is_network(options.model)


def with_network_load(options: SimulateOptions) -> SimulateOptions:
    """A request to a network is one sample: it needs no tokens, and streams none."""
    from gpuplan.errors import InputError

    if not is_network(options):
        _check_batching(options)
        return options
    beside = {
        "--stream": options.stream,
        "--itl": options.itl,
        SWEEP: options.sweep_replicas is not None,
        "--fleet": options.fleet is not None,
        "--users": options.users is not None,
    }
    fix = "remove it; a network is served by whole requests"
    problems = _conflicts(beside, f"--model {options.model}", fix)
    if problems:
        raise InputError("simulate", problems)
    n_in, n_out = options.input_tokens or 1.0, options.output_tokens or 1.0
    return options._replace(input_tokens=n_in, output_tokens=n_out)


def with_recorded_lengths(options: SimulateOptions) -> SimulateOptions:
    """Lengths of a trace stand in for the figures, which would be ignored beside it."""
    from gpuplan.errors import InputError

    if options.lengths_from is None:
        return options
    beside = {
        "--trace": options.trace is not None,
        "--scenario": options.scenario is not None,
        "--turns": options.turns is not None,
        "--input-tokens": options.input_tokens is not None,
        "--output-tokens": options.output_tokens is not None,
        "--input-p95": options.input_p95 is not None,
        "--output-p95": options.output_p95 is not None,
        "--length-distribution": options.length_distribution is not None,
        "--stream": options.stream,
    }
    fix = "remove one of them; the file gives lengths, not arrivals"
    problems = _conflicts(beside, "--lengths-from", fix)
    if problems:
        raise InputError("simulate", problems)
    return options._replace(input_tokens=1.0, output_tokens=1.0)


def _check_batching(options: SimulateOptions) -> None:
    """What is served by whole requests needs a rule for its batches."""
    from gpuplan import api
    from gpuplan.errors import InputError, one

    model = options.model
    if model is not None and options.input_tokens is None and api.is_network(model):
        what = f"continuous does not apply to {model}, which is served by whole requests"
        fix = "use --batching dynamic --max-batch-size 16 --max-queue-delay-ms 5, or static"
        raise one(InputError, "simulate", "--batching", what, fix)


def _sources(options: SimulateOptions) -> "list[Problem]":
    from gpuplan.errors import Problem

    values = {
        "--trace": options.trace,
        "--scenario": options.scenario,
        "--rate": options.rate,
        "--phases": options.phases,
        "--users": options.users,
    }
    given = [flag for flag, value in values.items() if value is not None]
    if len(given) == 1:
        return []
    what = f"{' and '.join(given)} given" if given else "missing"
    fix = "give one of --trace FILE, --scenario FILE, --rate REQUESTS_PER_S, --phases or --users"
    return [Problem("load", what, fix)]


def _unused(options: SimulateOptions) -> "list[Problem]":
    """Options that the source of the requests makes meaningless."""
    from gpuplan.errors import Problem

    trace, found = options.trace, []
    if trace is not None or options.scenario is not None:
        source = "--trace" if trace is not None else "--scenario"
        fix = f"remove it; {source} defines arrivals and lengths"
        found += _conflicts(_drawing(options), source, fix)
    if trace is None and options.lengths_from is None:
        beside = {"--columns": options.columns is not None, "--where": bool(options.where)}
        found += [
            Problem(flag, "needs --trace", "name the file")
            for flag, is_on in beside.items()
            if is_on
        ]
    elif trace and options.duration is not None and not trace.is_dir():
        fix = "remove it, or cut the file"
        found.append(Problem("--duration", "conflicts with --trace", fix))
    if options.scale != 1.0 and (trace is None or options.stream):
        what = "needs --trace" if trace is None else "conflicts with --stream"
        found.append(Problem("--scale", what, "scale a trace in memory, or the --rate"))
    return found


def _streaming(options: SimulateOptions) -> "list[Problem]":
    """What must know all requests at once cannot be streamed."""
    from gpuplan.errors import Problem

    is_closed = options.users is not None
    found = []
    if options.itl and (options.stream or is_closed):
        fix = "remove it; TPOT and the mean ITL remain"
        found.append(Problem("--itl", "conflicts with --stream and --users", fix))
    if not options.stream:
        return found
    if options.scenario is not None or is_closed:
        what = "conflicts with --scenario and --users"
        found.append(Problem("--stream", what, "use --trace or --rate"))
    is_clients = bool(options.trace and options.trace.is_dir())
    if options.turns is not None or is_clients:
        what = (
            "conflicts with --turns" if options.turns is not None else "needs a trace of requests"
        )
        found.append(Problem("--stream", what, IN_MEMORY))
    beside = {
        "--router": options.router in ("prefix_affinity", "session"),
        "--shared-prefix": options.shared_prefix is not None,
        "--priorities": options.priorities is not None,
    }
    return found + _conflicts(beside, "--stream", IN_MEMORY)


def _lonely(options: SimulateOptions) -> "list[Problem]":
    """Options that mean nothing without another."""
    from gpuplan.errors import Problem

    return [
        Problem(flag, f"needs {other}", "add it, or remove this option")
        for flag, is_on, is_other, other in (*_for_sweeps(options), *_dependent(options))
        if is_on and not is_other
    ]


def _for_sweeps(options: SimulateOptions) -> list[Dependent]:
    has_sweep, sizes = options.sweep_replicas is not None, f"{SWEEP} 1..12"
    figures = {
        "--cost-waste": options.cost_waste,
        "--cost-delay": options.cost_delay,
        "--workers": options.workers,
    }
    return [(flag, value is not None, has_sweep, sizes) for flag, value in figures.items()]


def _dependent(options: SimulateOptions) -> list[Dependent]:
    slo = (options.slo_ttft_ms, options.slo_tpot_ms, options.slo_e2e_s)
    has_scenario = options.scenario is not None
    has_slo = slo != (None, None, None) or has_scenario
    targets = "--slo-ttft-ms, --slo-tpot-ms or --slo-e2e-s"
    is_drafting = options.num_speculative_tokens is not None
    by_priority, policy = options.scheduling_policy == "priority", "--scheduling-policy priority"
    return [
        ("--months", options.months is not None, options.growth != 0, "--growth 0.05"),
        ("--slo-percentile", options.slo_percentile is not None, has_slo, targets),
        ("--draw-acceptance", options.draw_acceptance, is_drafting, "--num-speculative-tokens"),
        ("--priorities", options.priorities is not None, by_priority, policy),
        ("--loras", options.loras is not None, options.lora_rank > 0, "--lora-rank"),
        ("--workload", options.workload is not None, has_scenario, "--scenario"),
    ]


def _beside_sweep(options: SimulateOptions) -> "list[Problem]":
    """A sweep simulates several fleet sizes and retains no single request."""
    if options.sweep_replicas is None:
        return []
    beside = {
        "--users": options.users is not None,
        "--stream": options.stream,
        "--itl": options.itl,
        "--out": options.out is not None,
        "--warmup": options.warmup is not None,
        "--replicas": options.replicas != 1,
    }
    return _conflicts(beside, SWEEP, "remove it, or simulate one fleet size")


def _drawing(options: SimulateOptions) -> dict[str, bool]:
    """Options that describe a generated load, and whether they were given."""
    figures = {
        "--arrivals": options.arrivals,
        "--burstiness": options.burstiness,
        "--think-time-s": options.think_time_s,
        "--turns": options.turns,
        "--input-tokens": options.input_tokens,
        "--output-tokens": options.output_tokens,
        "--input-p95": options.input_p95,
        "--output-p95": options.output_p95,
        "--length-distribution": options.length_distribution,
        "--requests": options.n_requests,
        "--profile": options.profile,
        "--growth": options.growth or None,
        "--months": options.months,
    }
    return {flag: value is not None for flag, value in figures.items()}


def _conflicts(beside: Mapping[str, bool], option: str, fix: str) -> "list[Problem]":
    from gpuplan.errors import Problem

    return [
        Problem(flag, f"conflicts with {option}", fix) for flag, is_on in beside.items() if is_on
    ]
