"""Options that contradict each other or would do nothing: each is an error, none is ignored."""

from collections.abc import Iterable

from gpuplan import api
from gpuplan.cli.options import usual
from gpuplan.cli.simulate.options import Batching, SimulateOptions
from gpuplan.errors import InputError, Problem, one

SWEEP = "--sweep-replicas"
IN_MEMORY = "remove --stream"
FLAGS = {"n_requests": "requests"}  # where the flag is not the option's name
LENGTHS = ("input_tokens", "output_tokens", "input_p95", "output_p95", "length_distribution")
ARRIVALS = ("arrivals", "burstiness", "think_time_s", "turns", "n_requests")
GROWTH = ("profile", "growth", "months")
Dependent = tuple[tuple[str, ...], bool, str]  # options, is the other given, which other


def check_options(options: SimulateOptions) -> None:
    """Raise InputError with every conflict: one source of requests, and nothing idle beside it."""
    found = (_sources, _unused, _streaming, _lonely, _beside_sweep)
    _refuse([problem for check in found for problem in check(options)])


def check_plan(options: SimulateOptions) -> None:
    """A plan names its fleet and load itself; without one, accelerators must be named."""
    if options.plan is None:
        if not options.on:
            fix = "name the accelerators of a replica, e.g. --on H100, or give a plan file"
            raise InputError("simulate", [Problem("--on", "missing", fix)])
        return
    free = ("plan", "workload", "duration", "seed", "overlay", "out", "chart")
    beside = [name for name in options._fields if name not in free]
    fix = "remove it; the plan names fleet and load"
    _refuse(_conflicts(options, beside, "a plan file", fix))


LAYOUT = ("pp", "dp", "ep", "node_gbit", "lora_rank")
CLUSTER_ONLY = ("compare", "change_nodes", "advise_quotas", "advise_mig", "render_to")


def check_jobs(options: SimulateOptions) -> None:
    """A job trace is replayed on a cluster file, with nothing of a serving fleet beside it."""
    if options.jobs is None:
        fix = "add --jobs TRACE and a cluster file, or remove it"
        lonely = _given(options, CLUSTER_ONLY)
        return _refuse([Problem(flag, "needs --jobs", fix) for flag in lonely])
    if options.plan is None:
        fix = "name the file of the cluster: gpuplan simulate cluster.yaml --jobs trace.csv"
        raise InputError("simulate", [Problem("cluster file", "missing", fix)])
    free = ("plan", "jobs", "seed", "stream", "out", "chart", *CLUSTER_ONLY)
    beside = [name for name in options._fields if name not in free]
    fix = "remove it; the cluster file names the hardware"
    return _refuse(_conflicts(options, beside, "--jobs", fix))


def check_fleet(options: SimulateOptions) -> None:
    """A fleet file defines the replicas itself, and is simulated as a whole."""
    if options.fleet is not None:
        beside = ("stream", "itl", "sweep_replicas", "replicas", "router", "batching", *LAYOUT)
        fix = "remove it; the fleet file defines the pools"
        _refuse(_conflicts(options, beside, "--fleet", fix))


def is_network(options: SimulateOptions) -> bool:
    """Whether whole requests of a CNN, encoder or the like are batched, not tokens of an LLM."""
    is_fixed = options.batching is not Batching.CONTINUOUS
    return is_fixed and options.model is not None and api.is_network(options.model)


def with_network_load(options: SimulateOptions) -> SimulateOptions:
    """A request to a network is one sample: it needs no tokens, and streams none."""
    if not is_network(options):
        _check_batching(options)
        return options
    beside = ("stream", "itl", "sweep_replicas", "fleet", "users")
    fix = "remove it; a network is served by whole requests"
    _refuse(_conflicts(options, beside, f"--model {options.model}", fix))
    n_in, n_out = options.input_tokens or 1.0, options.output_tokens or 1.0
    return options._replace(input_tokens=n_in, output_tokens=n_out)


def with_recorded_lengths(options: SimulateOptions) -> SimulateOptions:
    """Lengths of a trace stand in for the figures, which would be ignored beside it."""
    if options.lengths_from is None:
        return options
    beside = ("trace", "scenario", "turns", *LENGTHS, "stream")
    fix = "remove one of them; the file gives lengths, not arrivals"
    _refuse(_conflicts(options, beside, "--lengths-from", fix))
    return options._replace(input_tokens=1.0, output_tokens=1.0)


def _check_batching(options: SimulateOptions) -> None:
    """What is served by whole requests needs a rule for its batches."""
    model = options.model
    if model is not None and options.input_tokens is None and api.is_network(model):
        what = f"continuous does not apply to {model}, which is served by whole requests"
        fix = "use --batching dynamic --max-batch-size 16 --max-queue-delay-ms 5, or static"
        raise one(InputError, "simulate", "--batching", what, fix)


def _sources(options: SimulateOptions) -> list[Problem]:
    given = _given(options, ("trace", "scenario", "rate", "phases", "users"))
    if len(given) == 1:
        return []
    what = f"{' and '.join(given)} given" if given else "missing"
    fix = "give one of --trace FILE, --scenario FILE, --rate REQUESTS_PER_S, --phases or --users"
    return [Problem("load", what, fix)]


def _unused(options: SimulateOptions) -> list[Problem]:
    """Options that the source of the requests makes meaningless."""
    trace, found = options.trace, []
    if trace is not None or options.scenario is not None:
        source = "--trace" if trace is not None else "--scenario"
        fix = f"remove it; {source} defines arrivals and lengths"
        found += _conflicts(options, (*ARRIVALS, *LENGTHS, *GROWTH), source, fix)
    if trace is None and options.lengths_from is None:
        beside = _given(options, ("columns", "where"))
        found += [Problem(flag, "needs --trace", "name the file") for flag in beside]
    elif trace and options.duration is not None and not trace.is_dir():
        fix = "remove it, or cut the file"
        found.append(Problem("--duration", "conflicts with --trace", fix))
    if options.scale != 1.0 and (trace is None or options.stream):
        what = "needs --trace" if trace is None else "conflicts with --stream"
        found.append(Problem("--scale", what, "scale a trace in memory, or the --rate"))
    return found


def _streaming(options: SimulateOptions) -> list[Problem]:
    """What must know all requests at once cannot be streamed."""
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
    knows = ("router",) if options.router in ("prefix_affinity", "session") else ()
    beside = (*knows, "shared_prefix", "priorities")
    return found + _conflicts(options, beside, "--stream", IN_MEMORY)


def _lonely(options: SimulateOptions) -> list[Problem]:
    """Options that mean nothing without another."""
    return [
        Problem(flag, f"needs {other}", "add it, or remove this option")
        for names, is_other, other in _dependent(options)
        for flag in _given(options, names)
        if not is_other
    ]


def _dependent(options: SimulateOptions) -> list[Dependent]:
    has_sweep = options.sweep_replicas is not None
    slo = (options.slo_ttft_ms, options.slo_tpot_ms, options.slo_e2e_s)
    has_scenario = options.scenario is not None
    has_slo = slo != (None, None, None) or has_scenario
    targets = "--slo-ttft-ms, --slo-tpot-ms or --slo-e2e-s"
    is_drafting = options.num_speculative_tokens is not None
    by_priority, policy = options.scheduling_policy == "priority", "--scheduling-policy priority"
    return [
        (("cost_waste", "cost_delay", "workers"), has_sweep, f"{SWEEP} 1..12"),
        (("months",), options.growth != 0, "--growth 0.05"),
        (("slo_percentile",), has_slo, targets),
        (("draw_acceptance",), is_drafting, "--num-speculative-tokens"),
        (("priorities",), by_priority, policy),
        (("loras", "max_loras"), options.lora_rank > 0, "--lora-rank"),
        (("workload",), has_scenario, "--scenario"),
    ]


def _beside_sweep(options: SimulateOptions) -> list[Problem]:
    """A sweep simulates several fleet sizes and retains no single request."""
    if options.sweep_replicas is None:
        return []
    beside = ("users", "stream", "itl", "out", "warmup", "replicas")
    return _conflicts(options, beside, SWEEP, "remove it, or simulate one fleet size")


def _given(options: SimulateOptions, names: Iterable[str]) -> list[str]:
    """Flags of those options that are not as usual."""
    default = usual(SimulateOptions)
    changed = [name for name in names if getattr(options, name) != default[name]]
    return [f"--{FLAGS.get(name, name).replace('_', '-')}" for name in changed]


def _conflicts(
    options: SimulateOptions, beside: Iterable[str], option: str, fix: str
) -> list[Problem]:
    flags = _given(options, beside)
    return [Problem(flag, f"conflicts with {option}", fix) for flag in flags]


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise InputError("simulate", problems)
