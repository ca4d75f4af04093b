"""Multi-turn runs of InferenceX: users who ask, read the answer, and ask on.

Llama-3.3-70B in NVFP4 with an FP8 cache, vLLM 0.15 on one or eight B200. Each user has one request
out at a time, so arrivals depend on the answers. A replay is therefore repeated: latencies give the
arrivals, arrivals give the latencies, until both agree. Token counts of the client lack the chat
template of Llama 3.3, which is added: 26 tokens of system text, 5 a message, 4 to open the answer.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.simulation.simulation import EngineRequest, SimulateRequest
from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.replay.replicas import prepared
from validation.serving_runs import Replay, Run, Times, times_of

MODEL, ACCELERATOR = "meta-llama/Llama-3.3-70B-Instruct", "B200"
# The engine logged `use_trtllm_attention=False` (one B200, 64 users; taken for all).
VERSION = "0.15.0+flashinfer"
SYSTEM_TOKENS, MESSAGE_TOKENS, OPENING_TOKENS = 26, 5, 4
# 782,176 tokens that the engine logged (one B200, 64 users), less the block it keeps for itself.
N_BLOCKS = {1: 782_176 // 16 - 1, 8: None}
N_ROUNDS, KEPT_FRAC = 80, 0.5
# Runs that preempt are chaotic: they never settle to the last request, only on the whole.
CLOSE_FRAC, CLOSE_ENOUGH_FRAC = 0.002, 0.015


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """Rows of a user stand together, in order."""

    is_next: np.ndarray  # the row before is the same user's
    pause_s: Floats  # since that row's answer, or since the start
    input_tokens: Ints
    output_tokens: Ints
    conversation: Ints
    prefix_tokens: Ints


class Counters(NamedTuple):
    """What the server counted, or what the replay did."""

    output_tokens_per_s: float
    cache_frac: float  # mean until the last arrival
    hit_frac: float  # of prompt tokens looked up
    n_preemptions: int


class Pace(NamedTuple):
    """What the server did in a part of its time."""

    output_tokens_per_s: float
    cache_frac: float


class Served(NamedTuple):
    """A run with its server's counters."""

    run: Run
    users: Users
    server: pl.DataFrame
    counted: Counters
    lookups_per_token: float  # 1: each prompt is looked up once

    def pace(self, part: int, n_parts: int) -> Pace:
        """Of one of so many equal parts of the time."""
        n = len(self.server) - 1
        rows = self.server[n * part // n_parts : n * (part + 1) // n_parts + 1]
        tokens, since_s = rows["generation_tokens_total"], rows["relative_time_sec"]
        rate = (tokens[-1] - tokens[0]) / (since_s[-1] - since_s[0])
        return Pace(rate, rows["kv_cache_usage_pct"].mean() / 100)


@cache
def tables(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Requests as clients saw them, and the server's counters once a second."""
    names = ("multiturn_client_metrics.csv.gz", "multiturn_server_metrics.csv.gz")
    client, server = (pl.read_csv(folder / name) for name in names)
    return client, server


def served(folder: Path, name: str) -> Served:
    """The run of this name, such as tp1_bs128."""
    client, server = (t.filter(pl.col("run") == f"{name}_offloadoff") for t in tables(folder))
    rows = client.sort("client_id", "relative_time_sec")
    arrive_s, e2e_s = _column(rows, "relative_time_sec"), _column(rows, "latency_ms") / 1e3
    users = _users(rows, arrive_s, e2e_s)
    run = Run(
        name=name,
        fleet=_fleet(name, _requests(users, arrive_s)[0]),
        measured=times_of(_column(rows, "ttft_ms") / 1e3, e2e_s, users.output_tokens),
        arrive_s=arrive_s,
        replay=lambda fleet: closed(users, fleet, e2e_s),
    )
    return Served(
        run, users, server, _counted(server, users, float((arrive_s + e2e_s).max())),
        server["prefix_cache_queries"].max() / server["prompt_tokens_total"].max(),
    )  # fmt: skip


def _counted(server: pl.DataFrame, users: Users, end_s: float) -> Counters:
    return Counters(
        float(users.output_tokens.sum() / end_s),
        server["kv_cache_usage_pct"].mean() / 100,
        server["prefix_cache_hits"].max() / server["prefix_cache_queries"].max(),
        int(server["num_preemptions_total"].max()),
    )


def _fleet(name: str, requests: Requests) -> Fleet:
    """The engine as it was started, for any number of sequences.

    There were as many users as the engine takes sequences, so its limit never held anyone up;
    replays whose arrivals have not settled would meet it.
    """
    tp, n_users = (int(part.lstrip("tpbs")) for part in name.split("_"))
    scheduler = EngineRequest(
        max_sequences=n_users, max_batch_tokens=8192, n_blocks=N_BLOCKS[tp], caches_prefixes=True
    )
    asked = SimulateRequest(
        tp=tp, precision="fp4", cache_precision="fp8", engine_version=VERSION, scheduler=scheduler
    )
    n_blocks = prepared(MODEL, ACCELERATOR, requests, request=asked).fleet.limits.n_blocks
    wide = replace(scheduler, max_sequences=2 * n_users, n_blocks=n_blocks)
    asked = replace(asked, scheduler=wide)
    return prepared(MODEL, ACCELERATOR, requests, request=asked).fleet


def simulated(found: Served, replay: Replay) -> Counters:
    """The same figures of a replay."""
    outcome = replay.outcome
    n_bins = int(outcome.requests.arrive_s[-1] / outcome.use.bin_s) + 1
    return Counters(
        float(found.users.output_tokens.sum() / outcome.totals.span_s),
        float(outcome.use.cache_frac[:n_bins].mean()),
        outcome.totals.n_hit_tokens / outcome.totals.n_asked_tokens,
        outcome.totals.n_preemptions,
    )


def pace_of(replay: Replay, part: int, n_parts: int) -> float:
    """Output tokens a second in one of so many equal parts of the time until the last arrival."""
    requests, times = replay.outcome.requests, replay.outcome.times
    first_s, end_s = requests.arrive_s + times.ttft_s, requests.arrive_s + times.e2e_s
    part_s = requests.arrive_s[-1] / n_parts
    since, until = (
        np.clip((at * part_s - first_s) / np.maximum(end_s - first_s, 1e-9), 0, 1)
        for at in (part, part + 1)
    )
    return float((requests.output_tokens * (until - since)).sum() / part_s)


def closed(users: Users, fleet: Fleet, guess_s: Floats) -> Replay:
    """Latencies and arrivals that agree with each other; the closest pair where none agrees."""
    e2e_s, best_frac, best = guess_s, CLOSE_ENOUGH_FRAC, None
    for _ in range(N_ROUNDS):
        requests, order = _requests(users, _arrivals(users, e2e_s))
        outcome = simulate_serving(requests, fleet, bin_s=1.0)
        times = _in_rows(outcome, order)
        off_frac = float(np.abs(times.e2e_s - e2e_s).mean() / times.e2e_s.mean())
        if off_frac < best_frac:
            best_frac, best = off_frac, Replay(times, outcome)
        if off_frac < CLOSE_FRAC:
            break
        # Half a step: a whole one swings between a crowd and an empty engine.
        e2e_s = KEPT_FRAC * e2e_s + (1 - KEPT_FRAC) * times.e2e_s
    if best is None:
        raise RuntimeError("arrivals and latencies do not settle")
    return best


def _in_rows(outcome: Outcome, order: Ints) -> Times:
    columns = []
    for name in Times._fields:
        column = np.empty(len(order))
        column[order] = getattr(outcome.times, name)
        columns.append(column)
    return Times(*columns)


def _arrivals(users: Users, e2e_s: Floats) -> Floats:
    since = users.pause_s + np.where(users.is_next, np.r_[0.0, e2e_s[:-1]], 0.0)
    total = np.cumsum(since)
    first = np.flatnonzero(~users.is_next)
    n_rows = np.diff(np.r_[first, len(since)])
    return total - np.repeat(total[first] - since[first], n_rows)


def _requests(users: Users, arrive_s: Floats) -> tuple[Requests, Ints]:
    order = np.argsort(arrive_s, kind="stable")
    grouping = Grouping(
        prefix_group=users.conversation[order], prefix_tokens=users.prefix_tokens[order]
    )
    requests = requests_of(
        arrive_s[order], users.input_tokens[order], users.output_tokens[order], grouping=grouping
    )
    return requests, order


def _users(rows: pl.DataFrame, arrive_s: Floats, e2e_s: Floats) -> Users:
    user, turn = _column(rows, "client_id"), _column(rows, "input_num_turns")
    conversation = rows["conversation_id"].rank("dense").to_numpy().astype(np.int64)
    template = SYSTEM_TOKENS + OPENING_TOKENS + MESSAGE_TOKENS * turn
    asked = (_column(rows, "input_num_tokens") + template).astype(np.int64)
    answered = _column(rows, "output_num_tokens").astype(np.int64)
    is_next = np.r_[False, user[1:] == user[:-1]]
    goes_on = np.r_[False, (conversation[1:] == conversation[:-1]) & (turn[1:] == turn[:-1] + 2)]
    before = np.r_[0, (asked + answered)[:-1]]
    left_s = np.r_[0.0, (arrive_s + e2e_s)[:-1]]
    return Users(
        is_next=is_next,
        pause_s=np.maximum(arrive_s - np.where(is_next, left_s, 0.0), 0.0),
        input_tokens=asked,
        output_tokens=answered,
        conversation=conversation,
        prefix_tokens=np.where(goes_on, np.minimum(before, asked), 0),
    )


def _column(rows: pl.DataFrame, name: str) -> Floats:
    return rows[name].to_numpy().astype(np.float64)
