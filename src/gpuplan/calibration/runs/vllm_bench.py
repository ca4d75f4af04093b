"""`vllm bench serve` (and SGLang's `bench_serving`): result JSON and console text -> rows.

Both divide each request's time after its first token by its tokens less one, and take the mean
over requests; their "ITL" is a mean over chunks, and only read where nothing else is there.
"""

import re
from collections.abc import Iterable, Mapping

from gpuplan.calibration.runs.fields import (
    OUR_TPOT,
    Reading,
    check_tpot,
    is_failure,
    mapping,
    number,
    offered,
    per,
    scaled,
    words,
)
from gpuplan.csv_rows import meanings
from gpuplan.domain.calibration.runs import RunsRead
from gpuplan.units import MS

TOOL = "vllm bench serve"
TITLE = "Serving Benchmark Result"
# The client's protocol names an engine only where it is the engine's own.
ENGINES = meanings("calibration", "client_protocol")
# Console label -> key of the result file.
LABELS = meanings("calibration", "vllm_console")
BEFORE_BLOCK = ("request_rate", "max_concurrency", "burstiness", "backend", "model_id")
LINE = re.compile(r"([A-Za-z][A-Za-z0-9 ()/.]{2,40}?):\s+(\S+)")
END = re.compile(r"={30,}\s*$")
WARM_UP_RATIO = 4.0
BACKEND = re.compile(r"\bbackend='([a-z-]{1,40})'")
MODEL = re.compile(r"\bmodel='([^']{1,200})'")


def is_result(document: object) -> bool:
    """Whether this is a result file of the tool."""
    found = mapping(document)
    return "output_throughput" in found and ("total_output_tokens" in found or "duration" in found)


def read_documents(documents: Iterable[object], where: str) -> RunsRead:
    """The rows of the tool's result files."""
    reading = Reading(where, TOOL)
    for document in documents:
        if is_result(document):
            _read(reading, mapping(document))
        else:
            reading.remark("an object that is no benchmark result is not used")
    return reading.result()


def read_console(text: str, where: str) -> RunsRead:
    """Rows of the tables that the tool prints; what was printed before one belongs to it."""
    reading = Reading(where, TOOL)
    blocks: list[dict[str, object]] = []
    before: dict[str, object] = {}
    block: dict[str, object] | None = None
    for line in text.splitlines():
        if TITLE in line:
            block = dict(before)
            blocks.append(block)
        elif block is not None and END.search(line):
            block, before = None, {}
        named = MODEL.search(line)
        if named:
            before = {"model_id": named[1]}
            backend = BACKEND.search(line)
            before |= {"backend": backend[1]} if backend else {}
        _note(line, before, block)
    for block, later in zip(blocks, [*blocks[1:], {}], strict=True):
        if _is_warm_up(block, later):
            reading.remark("a short run before one of the same load is taken as its warm-up")
        else:
            _close(reading, block)
    return reading.result()


def _is_warm_up(block: Mapping[str, object], later: Mapping[str, object]) -> bool:
    keys = ("max_concurrency", "request_rate", "model_id")
    is_same = all(block.get(key) == later.get(key) for key in keys)
    n, n_later = number(block.get("completed")), number(later.get("completed"))
    return is_same and n is not None and n_later is not None and WARM_UP_RATIO * n <= n_later


def _note(line: str, before: dict[str, object], block: dict[str, object] | None) -> None:
    for label, value in LINE.findall(line[:400]):
        key = LABELS.get(label.strip().lower())
        if key is None:
            continue
        if block is not None and key not in block:
            block[key] = value
        elif key in BEFORE_BLOCK:
            before[key] = value


def _close(reading: Reading, block: Mapping[str, object]) -> None:
    if "output_throughput" in block or "mean_ttft_ms" in block:
        _read(reading, block)
    else:
        reading.remark("a result table without figures is not used")


def _read(reading: Reading, found: Mapping[str, object]) -> None:
    n_done = number(found.get("completed")) or 0.0
    n_sent = number(found.get("num_prompts")) or 0.0
    n_failed = number(found.get("failed")) or max(0.0, n_sent - n_done)
    if is_failure(reading, n_failed, n_done) or not n_done:
        return
    cells: dict[str, object] = {
        "model": words(found.get("model_id")),
        "engine": _engine(reading, found),
        "input_tokens": per(found.get("total_input_tokens"), n_done),
        "output_tokens": per(found.get("total_output_tokens"), n_done),
        "measured_output_tokens_per_s": found.get("output_throughput"),
        "measured_ttft_mean_ms": found.get("mean_ttft_ms"),
        "measured_ttft_p99_ms": found.get("p99_ttft_ms"),
        "measured_tpot_mean_ms": found.get("mean_tpot_ms"),
        "measured_tpot_p50_ms": found.get("median_tpot_ms"),
        "measured_tpot_p99_ms": found.get("p99_tpot_ms"),
        "measured_e2e_s": scaled(found.get("mean_e2el_ms"), MS),
    }
    flag = f"tpot: {OUR_TPOT}"
    if number(cells["measured_tpot_mean_ms"]) is None and number(found.get("mean_itl_ms")):
        cells["measured_tpot_mean_ms"] = found.get("mean_itl_ms")
        flag = "tpot: mean over chunks (ITL)"
        reading.remark("no TPOT in the file; ITL is read, in which long responses weigh more")
    _check(reading, cells, found)
    row = cells
    if "request_rate" in found or "max_concurrency" in found:
        row = offered(
            reading,
            cells,
            concurrency=number(found.get("max_concurrency")),
            rate_per_s=number(found.get("request_rate")),
            n_requests=n_done,
            duration_s=number(found.get("duration")),
        )
    else:
        reading.remark("the load is not stated: give --concurrency or --rate")
    reading.add(row, flag=flag)


def _check(reading: Reading, cells: Mapping[str, object], found: Mapping[str, object]) -> None:
    check_tpot(reading, cells)
    if number(cells["measured_ttft_mean_ms"]) is None:
        reading.remark("no TTFT: the responses were not streamed")
    burst = number(found.get("burstiness"))
    if burst is not None and burst != 1.0 and number(found.get("request_rate")):
        reading.remark(f"burstiness {burst:g} is not Poisson; predictions take Poisson arrivals")
    if number(found.get("num_warmups")):
        reading.remark(f"{found['num_warmups']} warm-up requests are not counted")


def _engine(reading: Reading, found: Mapping[str, object]) -> str:
    protocol = words(found.get("backend") or found.get("endpoint_type")).lower()
    engine = ENGINES.get(protocol, "")
    if not engine:
        reading.remark(f"the client spoke {protocol or 'an unnamed protocol'!r}: engine not stated")
    return engine
