"""A probe as commands: the engine of one replica and a few points of load, in usual tools."""

from dataclasses import replace
from math import ceil
from typing import NamedTuple

from gpuplan.domain.inference.performance import ServingLoad
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.deployed import ReplicaShape, ServedModel
from gpuplan.domain.plan.probe import ProbeCommand
from gpuplan.render.commands.engine import command_of, kind_of
from gpuplan.studies.inference.predict import predict_inference
from gpuplan.studies.sizing.task import SizingTask

LEAST_POINT_S = 120.0  # of load at each point: shorter runs are start and end
LEAST_TURNS = 3  # requests of each user, so that the first wave does not decide


class LoadPoint(NamedTuple):
    """A point of load: users in a closed loop, requests, and how long it takes."""

    n_users: int
    n_requests: int
    duration_s: float


def load_points(task: SizingTask, candidate: Candidate, users: tuple[int, ...]) -> list[LoadPoint]:
    """Runs at these numbers of users, long enough to settle."""
    return [_point(task, candidate, n) for n in users]


def _point(task: SizingTask, candidate: Candidate, n_users: int) -> LoadPoint:
    setup = task.evaluator.setup(candidate)
    load = ServingLoad(
        regime="fixed_concurrency",
        input_tokens=setup.load.input_tokens,
        output_tokens=setup.load.output_tokens,
        n_sequences=float(n_users),
    )
    known = task.evaluator.calibration
    whole = predict_inference(replace(setup, load=load), calibration=known).e2e_mean_s.value
    n_turns = max(LEAST_TURNS, ceil(LEAST_POINT_S / whole))
    return LoadPoint(n_users, n_turns * n_users, n_turns * whole)


def concurrency_of(n_planned: float, n_most: int, *, n_points: int) -> tuple[int, ...]:
    """Users of one replica: as planned; with three points also one alone and twice as many."""
    planned = max(1, min(round(n_planned), n_most))
    if n_points == 1:
        return (planned,)
    return tuple(sorted({1, planned, max(1, min(2 * planned, n_most))}))


def serving_commands(
    task: SizingTask,
    candidate: Candidate,
    served: ServedModel,
    points: list[LoadPoint],
    *,
    name: str,
) -> tuple[ProbeCommand, ...]:
    """Start the engine, run each point with one of three tools."""
    model = task.model.name
    shape = ReplicaShape(model, candidate.layout, candidate.precision)
    load = task.evaluator.setup(candidate).load
    lengths = round(load.input_tokens), round(load.output_tokens)
    port = kind_of(served).port
    found = [ProbeCommand(what="start one replica", command=" ".join(command_of(shape, served)))]
    for point in points:
        at = f"{point.n_users} user{'s' if point.n_users > 1 else ''}"
        file = f"{name}-c{point.n_users}.json"
        found.append(
            ProbeCommand(what=at, command=_vllm_bench(model, lengths, point, (port, file)))
        )
    others = (
        ("AIPerf", _aiperf(model, lengths, points[-1], port)),
        ("GuideLLM", _guidellm(lengths, points[-1], port)),
    )
    found += [ProbeCommand(what=f"or with {tool}, for each point", command=c) for tool, c in others]
    return tuple(found)


def _vllm_bench(model: str, lengths: tuple[int, int], point: LoadPoint, at: tuple[int, str]) -> str:
    return (
        f"vllm bench serve --backend openai --base-url http://localhost:{at[0]} --model {model} "
        f"--dataset-name random --random-input-len {lengths[0]} --random-output-len {lengths[1]} "
        f"--ignore-eos --max-concurrency {point.n_users} --num-prompts {point.n_requests} "
        f"--percentile-metrics ttft,tpot,itl,e2el --save-result --result-filename {at[1]}"
    )


def _aiperf(model: str, lengths: tuple[int, int], point: LoadPoint, port: int) -> str:
    return (
        f"aiperf profile --model {model} --url http://localhost:{port} --endpoint-type chat "
        f"--streaming --concurrency {point.n_users} --request-count {point.n_requests} "
        f"--synthetic-input-tokens-mean {lengths[0]} --output-tokens-mean {lengths[1]} "
        "--extra-inputs ignore_eos:true"
    )


def _guidellm(lengths: tuple[int, int], point: LoadPoint, port: int) -> str:
    return (
        f"guidellm benchmark --target http://localhost:{port} --rate-type concurrent "
        f"--rate {point.n_users} --max-requests {point.n_requests} "
        f'--data "prompt_tokens={lengths[0]},output_tokens={lengths[1]}" '
        "--output-path benchmarks.json"
    )


def calibrate_command(task: SizingTask, candidate: Candidate) -> str:
    """How results come back: what benchmark files do not say stands in flags."""
    engine, layout = candidate.engine, candidate.layout
    words = [
        "gpuplan calibrate probe-*.json",
        f"--model {task.model.name}",
        f"--on {candidate.n_accelerators}x{candidate.accelerator}",
        f"--tp {layout.tp}",
        f"--precision {candidate.precision}",
    ]
    words += [f"--pp {layout.pp}"] if layout.pp > 1 else []
    words += [f"--kv-precision {candidate.cache_precision}"] if candidate.cache_precision else []
    if engine is not None:
        words.append(f"--engine {engine.name} --engine-version {engine.version}")
    return " ".join([*words, "--out site.json"])
