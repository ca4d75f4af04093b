"""Results of one load on one line or in one object -> rows: InferenceX, SGLang and vLLM batches.

`process_result.py` of InferenceX sums up a closed loop, in seconds and for each accelerator;
`bench_one_batch(_server)` of SGLang and `vllm bench latency` time one batch from start to end; the
latter does not state its size and lengths.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from gpuplan.calibration.runs.fields import Reading, mapping, number, per, scaled, words
from gpuplan.domain.calibration.runs import RunsRead
from gpuplan.units import MS

Cells = dict[str, object]
Found = Mapping[str, object]
VERSION = re.compile(r":v?(\d+\.\d+(?:\.\d+)?)")  # of a container image
FRAMEWORKS = {"trt": "TensorRT-LLM", "trtllm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}
LATENCIES = {
    "measured_ttft_mean_ms": "mean_ttft",
    "measured_ttft_p99_ms": "p99_ttft",
    "measured_tpot_mean_ms": "mean_tpot",
    "measured_tpot_p50_ms": "median_tpot",
    "measured_tpot_p99_ms": "p99_tpot",
}


def _inferencex(reading: Reading, found: Found) -> Cells | None:
    """A closed loop on one deployment; prefill and decode replicas apart are another machine."""
    if found.get("disagg") in (True, "true"):
        reading.remark("prefill and decode replicas that are separate are not used")
        return None
    tp, ep = (int(number(found.get(key)) or 1) for key in ("tp", "ep"))
    dp = tp if str(found.get("dp_attention")).lower() == "true" else 1
    framework = words(found.get("framework")).lower().rpartition("-")[2]
    version = VERSION.search(words(found.get("image")))
    rate = number(found.get("output_tput_per_gpu"))
    return {
        "model": words(found.get("model")),
        "accelerator": words(found.get("hw")).partition("-")[0],
        "precision": found.get("precision"),
        "n_accelerators": tp,
        "tp": tp,
        "layout_note": f"attention_dp={dp} moe_tp={max(1, tp // ep)} moe_ep={ep}",
        "engine": FRAMEWORKS.get(framework, framework),
        "engine_version": version[1] if version else "",
        "regime": "fixed_concurrency",
        "batch": found.get("conc"),
        "input_tokens": found.get("isl"),
        "output_tokens": found.get("osl"),
        "measured_output_tokens_per_s": rate and rate * tp,
        **{name: scaled(found.get(key), 1 / MS) for name, key in LATENCIES.items()},
        "measured_e2e_s": found.get("mean_e2el"),
    }


def _one_batch(_: Reading, found: Found) -> Cells:
    """A batch from its prompts to its last token; its rate counts the time of the prompts too."""
    total_s = number(found.get("latency")) or number(found.get("total_latency"))
    n = (number(found.get("batch_size")) or 0.0) * (number(found.get("output_len")) or 0.0)
    ttft_s = number(found.get("ttft")) or number(found.get("prefill_latency"))
    return {
        "engine": "SGLang",
        "regime": "static_batch",
        "batch": found.get("batch_size"),
        "input_tokens": found.get("input_len"),
        "output_tokens": found.get("output_len"),
        "measured_output_tokens_per_s": per(n, total_s),
        "measured_ttft_mean_ms": scaled(ttft_s, 1 / MS),
        "measured_tpot_mean_ms": scaled(found.get("median_decode_latency"), 1 / MS),
        "measured_e2e_s": total_s,
    }


def _latency(_: Reading, found: Found) -> Cells:
    mean_s = found.get("avg_latency")
    return {"engine": "vLLM", "regime": "static_batch", "measured_e2e_s": mean_s}


# Keys that tell a kind of object, the tool that writes it, and how it is read.
KINDS: tuple[tuple[frozenset[str], str, Callable[[Reading, Found], Cells | None]], ...] = (
    (frozenset({"hw", "conc", "tput_per_gpu"}), "inferencex result", _inferencex),
    (frozenset({"batch_size", "input_len", "output_len"}), "sglang bench_one_batch", _one_batch),
    (frozenset({"avg_latency", "latencies", "percentiles"}), "vllm bench latency", _latency),
)


def is_result(document: object) -> bool:
    """Whether this is an object that one of the tools writes."""
    return any(keys <= mapping(document).keys() for keys, _, _ in KINDS)


def read_documents(documents: Iterable[object], where: str) -> RunsRead:
    """The rows of the objects, all of the tool that wrote the first."""
    found = [mapping(document) for document in documents]
    keys, tool, cells_of = next(
        kind for kind in KINDS if any(kind[0] <= document.keys() for document in found)
    )
    reading = Reading(where, tool)
    for document in found:
        cells = cells_of(reading, document) if keys <= document.keys() else None
        if cells is None:
            reading.remark("an object that is no result of one deployment is not used")
        else:
            reading.add(cells)
    return reading.result()
