"""vLLM's recorded streams through Vidur's own scheduler, with the same step times.

    ENVIRONMENT/bin/python benchmarks/peers/vidur_streams.py tests/oracles/vllm.json.gz

ENVIRONMENT has Vidur (`pip install vidur`, 0.0.26). Its profiles of devices are not needed: a step
takes what the recorded formula says, as it did for vLLM, so that schedules alone differ. Vidur's
Sarathi scheduler (chunked prefill, paged KV cache) is the one closest to vLLM V1; it has no prefix
cache, priorities or long-prefill threshold, so only regimes without them are run. A request that
is preempted does not forget what its stages have processed (0.0.26), which fails an assertion of
Vidur's own; it is made to forget here. Prints signed errors of means against vLLM 0.32.0:
scheduling synchronously, as Vidur does, and asynchronously, as vLLM does by default.
"""

import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

VERSION, MODES = "0.32.0", ("sync", "async")


def scheduler_of(limits: dict[str, Any]) -> Any:
    """Vidur's scheduler with the engine's limits, without its model of memory."""
    from vidur.scheduler.replica_scheduler.sarathi_replica_scheduler import (  # noqa: PLC0415
        SarathiReplicaScheduler,
    )

    class Limited(SarathiReplicaScheduler):  # type: ignore[misc]  # known where Vidur is
        def __init__(self) -> None:
            self._config = SimpleNamespace(
                batch_size_cap=limits["max_sequences"], chunk_size=limits["max_batch_tokens"]
            )
            self._cache_config = SimpleNamespace(
                num_blocks=limits["n_blocks"], block_size=limits["block_tokens"]
            )
            self._replica_config = SimpleNamespace(enable_sequence_pipeline_parallel=False)
            self._replica_id, self._num_stages, self._watermark_blocks = 0, 1, 0
            self._max_micro_batch_size = limits["max_sequences"]
            self._request_queue, self._preempted_requests, self._allocation_map = [], [], {}
            self._num_allocated_blocks = self._num_running_batches = 0
            self._num_running_stages = 0

    return Limited()


def lasting_s(batch: Any, step: dict[str, float]) -> float:
    """The recorded formula: step + tokens + context of decodes + prompt pairs."""
    context = pairs = 0.0
    for one, n in zip(batch.requests, batch.num_q_tokens, strict=True):
        if one.is_prefill_complete:
            context += one.num_processed_tokens
        else:
            pairs += n * (one.num_processed_tokens + n / 2)
    tokens = step["token_s"] * sum(batch.num_q_tokens)
    return step["step_s"] + tokens + step["context_s"] * context + step["pair_s"] * pairs


def served(stream: dict[str, Any], step: dict[str, float]) -> tuple[list[float], list[float], int]:
    """First token and end of every request, and the restarts of all."""
    from vidur.entities import Request  # noqa: PLC0415

    class Restarted(Request):  # type: ignore[misc, valid-type]  # known where Vidur is
        def restart(self) -> None:
            super().restart()
            self._num_stage_processed_tokens, self._is_prefill_stage_complete = 0, False

    rows = [Restarted(row[0], row[1], row[2]) for row in stream["requests"]]
    scheduler, coming, now = scheduler_of(stream["limits"]), list(rows), 0.0
    first: dict[int, float] = {}
    while True:
        while coming and coming[0].arrived_at <= now:
            scheduler.add_request(coming.pop(0))
        batch = scheduler.on_schedule(now)
        if batch is None:
            if not coming:
                break
            now = coming[0].arrived_at
            continue
        now = run(scheduler, batch, now, lasting_s(batch, step))
        for one in batch.requests:
            if one.is_prefill_complete:
                first.setdefault(one.id, now)
    ends = [one.completed_at for one in rows]
    return [first[one.id] for one in rows], ends, sum(one.num_restarts for one in rows)


def run(scheduler: Any, batch: Any, now: float, lasts_s: float) -> float:
    """The batch runs; when it has ended."""
    timed = SimpleNamespace(total_time=lasts_s, model_time=lasts_s)
    batch.on_schedule(now)
    stage = batch.to_batch_stage(0, timed)
    stage.on_schedule(now)
    end = now + lasts_s
    stage.on_stage_end(end)
    scheduler.on_stage_end(0, stage)
    batch.on_batch_end(end)
    scheduler.on_batch_end(batch)
    return end


def is_plain(limits: dict[str, Any]) -> bool:
    """A regime of which Vidur has all policies."""
    is_fcfs = limits.get("scheduling", "fcfs") == "fcfs"
    return is_fcfs and not limits["caches_prefixes"] and not limits.get("long_prefill_tokens")


def main(path: str) -> None:
    kept = json.loads(gzip.decompress(Path(path).read_bytes()))
    head = [f"equal, {mode} | TTFT, E2E, {mode}" for mode in MODES]
    print(f"| regime | {head[0]} | preemptions | {head[1]} |")
    print("|---|---:|---:|---:|---:|---:|")
    for regime, stream in kept["streams"].items():
        if not is_plain(stream["limits"]):
            continue
        first, end, n_restarts = served(stream, kept["step"])
        arrive = np.array([row[0] for row in stream["requests"]])
        cells = [told(arrive, (first, end), stream["answers"][VERSION][m]) for m in MODES]
        n_preempted = sum(stream["answers"][VERSION]["sync"]["n_preemptions"])
        print(f"| {regime} | {cells[0]} | {n_restarts} for {n_preempted} | {cells[1]} |")


def told(arrive: Any, found: tuple[list[float], list[float]], answer: dict[str, Any]) -> str:
    """Requests that are equal, and the errors of means."""
    pairs = [(found[0], answer["first_s"]), (found[1], answer["end_s"])]
    same = np.all([np.isclose(a, b, rtol=0, atol=2e-9) for a, b in pairs], axis=0)
    errors = [np.mean(a - arrive) / np.mean(np.array(b) - arrive) - 1 for a, b in pairs]
    return f"{same.sum()} of {len(arrive)} | {errors[0]:+.1%}, {errors[1]:+.1%}"


if __name__ == "__main__":
    main(sys.argv[1])
