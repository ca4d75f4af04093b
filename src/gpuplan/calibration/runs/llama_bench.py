"""`llama-bench` outputs (csv, json, jsonl, md) -> a row per test.

`tg` times decoding alone: its time per token is ours. `pp` times one prompt: its whole time is the
first token's. `pp+tg` times both together. Tokenising and sampling are not in any of them.
"""

import re
from collections.abc import Iterable, Mapping

from gpuplan.calibration.runs.fields import Reading, mapping, number, words
from gpuplan.csv_rows import csv_rows
from gpuplan.domain.calibration.runs import RunsRead

TOOL = "llama-bench"
ENGINE = "llama.cpp"
MOST_ROWS = 20_000
FLAG = "tpot: decode time / tokens, without the prompt and without sampling"
QUANT = re.compile(
    r"(?:^|[-_. ])(IQ\d_[A-Z]+|Q\d_K(?:_[SML])?|Q\d_[01]|BF16|F16|F32|MXFP4)(?=$|[-_. ])",
    re.IGNORECASE,
)
SIZES = {"small": "S", "medium": "M", "large": "L"}
SHARD = re.compile(r"-\d{5}-of-\d{5}$")
PLAIN = {"f16": "fp16", "f32": "fp32", "bf16": "bf16"}
TEST = re.compile(
    r"^\s*(?:pp\s*(?P<pp>\d+))?\s*\+?\s*(?:tg\s*(?P<tg>\d+))?\s*(?:@\s*d\s*(?P<depth>\d+))?\s*$"
)
DEVICE = re.compile(r"^\s*(?:ggml_\w+: )?(?:Device )?(\d+)(?::| =) ([^,(|]{3,80})")
BUILD = re.compile(r"^build: (\S+) \((\d+)\)")


def is_result(document: object) -> bool:
    """An object that the tool writes for one test."""
    found = mapping(document)
    return "avg_ts" in found and "n_gen" in found


def is_csv(first_line: str) -> bool:
    """Whether this is the heading of the tool's CSV output."""
    return "avg_ts" in first_line and "n_gen" in first_line


def is_markdown(text: str) -> bool:
    """Whether this holds a table that the tool prints."""
    return bool(re.search(r"^\|\s*model\s*\|.*\|\s*t/s\s*\|", text, re.MULTILINE))


def read_documents(documents: Iterable[object], where: str) -> RunsRead:
    """Rows of JSON and JSONL outputs."""
    reading = Reading(where, TOOL)
    for document in documents:
        if is_result(document):
            _read(reading, mapping(document))
        else:
            reading.remark("an object that is no test is not used")
    return reading.result()


def read_csv(text: str, where: str) -> RunsRead:
    """The rows of the tool's CSV output."""
    reading = Reading(where, TOOL)
    rows = csv_rows(text, source=where)
    if len(rows) > MOST_ROWS:
        reading.remark(f"only the first {MOST_ROWS} tests are read")
    for found in rows[:MOST_ROWS]:
        _read(reading, found)
    return reading.result()


def read_markdown(text: str, where: str) -> RunsRead:
    """Rows of the printed table; devices and build from the lines around it."""
    reading = Reading(where, TOOL)
    devices: dict[str, str] = {}
    build, heads = "", []
    tests: list[dict[str, object]] = []
    for line in text.splitlines()[:MOST_ROWS]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.lstrip().startswith("|") and "t/s" in cells:
            heads = cells
        elif line.lstrip().startswith("|") and heads and not set(cells[0]) <= set("-: "):
            tests.append(_markdown_test(dict(zip(heads, cells, strict=False))))
        elif found := DEVICE.match(line):
            devices[found[1]] = found[2].strip()
        elif found := BUILD.match(line):
            build = found[2]
    for test in tests:
        _read(reading, {**test, "gpu_info": ", ".join(devices.values()), "build_number": build})
    return reading.result()


def _markdown_test(cells: Mapping[str, str]) -> dict[str, object]:
    test = TEST.match(cells.get("test", ""))
    parts = test.groupdict() if test else {}
    return {
        "model_type": cells.get("model", ""),
        "backends": cells.get("backend", ""),
        "n_gpu_layers": cells.get("ngl", "-1"),
        "type_k": cells.get("type_k", ""),
        "n_prompt": parts.get("pp") or "0",
        "n_gen": parts.get("tg") or "0",
        "n_depth": parts.get("depth") or "0",
        "avg_ts": cells.get("t/s", "").split("±")[0],
    }


def _read(reading: Reading, found: Mapping[str, object]) -> None:
    rate = number(found.get("avg_ts"))
    n_prompt, n_gen = number(found.get("n_prompt")), number(found.get("n_gen"))
    depth = number(found.get("n_depth")) or 0.0
    if rate is None or (n_prompt is None and n_gen is None):
        reading.remark("a test without a rate is not used")
        return
    if _is_on_host(reading, found):
        return
    cells = _conditions(reading, found)
    if n_gen is None and depth:
        reading.remark("a prompt on top of a filled KV cache has no prediction; not used")
        return
    if n_prompt is None and n_gen is not None:
        cells |= _load("static_batch", max(1.0, depth), n_gen)
        cells["measured_tpot_mean_ms"] = 1e3 / rate
    elif n_gen is None and n_prompt is not None:
        cells |= _load("prefill", n_prompt, 1.0)
        cells["measured_ttft_mean_ms"] = 1e3 * n_prompt / rate
    elif n_gen is not None and n_prompt is not None:
        whole_s = (n_prompt + n_gen) / rate
        cells |= _load("static_batch", n_prompt + depth, n_gen)
        cells |= {"measured_output_tokens_per_s": n_gen / whole_s, "measured_e2e_s": whole_s}
    reading.add(cells, flag=FLAG)


def _load(regime: str, input_tokens: float, output_tokens: float) -> dict[str, object]:
    return {"regime": regime, "input_tokens": input_tokens, "output_tokens": output_tokens}


def _is_on_host(reading: Reading, found: Mapping[str, object]) -> bool:
    """Whether the host computes a part: predictions are of whole models on accelerators."""
    reasons = {
        "no layer on the accelerator": str(found.get("n_gpu_layers")) == "0",
        "experts on the host": number(found.get("n_cpu_moe")) is not None,
        "KV cache on the host": str(found.get("no_kv_offload")).lower() in ("1", "true"),
        "the CPU computes": words(found.get("backends")).upper() in ("CPU", "BLAS"),
    }
    found_reasons = [reason for reason, is_so in reasons.items() if is_so]
    if found_reasons:
        reading.remark(f"tests with {', '.join(found_reasons)} are rejected")
    return bool(found_reasons)


def _conditions(reading: Reading, found: Mapping[str, object]) -> dict[str, object]:
    devices = [part.strip() for part in words(found.get("gpu_info")).split(",") if part.strip()]
    if len(set(devices)) > 1:
        reading.remark("accelerators of several kinds: taken as of the first kind")
    name = words(found.get("model_filename")).replace("\\", "/").rpartition("/")[2]
    name = SHARD.sub("", name.removesuffix(".gguf"))
    layers = number(found.get("n_gpu_layers"))
    n = len(devices) if words(found.get("split_mode")) != "none" else 1
    return {
        "engine": ENGINE,
        "engine_version": f"b{words(str(found.get('build_number') or ''))}".rstrip("b"),
        "model": _model(name),
        "precision": _precision(reading, found, name),
        "accelerator": devices[0] if devices else "",
        "n_accelerators": float(max(1, n)),
        "tp": 1.0,
        "pp": float(max(1, n)),  # layers are split, one device works at a time
        "batch": 1.0,
        "layout_note": f"ngl={layers:.0f}" if layers is not None else "",
    }


def _model(name: str) -> str:
    quant = QUANT.search(name)
    return (name[: quant.start()] if quant else name).strip("-_. ")


def _precision(reading: Reading, found: Mapping[str, object], name: str) -> str:
    kind = words(found.get("model_type"))
    sized = re.search(r"(Q\d_K) - (Small|Medium|Large)", kind)
    if sized:
        text = f"{sized[1]}_{SIZES[sized[2].lower()]}".lower()
    else:
        match = QUANT.search(name) or QUANT.search(kind)
        text = match[1].lower() if match else ""
    if words(found.get("type_k")).lower().startswith("q8"):
        reading.remark("the KV cache is of type q8_0: taken as 8 bits")
        return f"{PLAIN.get(text, text)}, fp8 kv"
    return PLAIN.get(text, text)
