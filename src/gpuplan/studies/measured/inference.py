"""Rows of a measured inference table -> setups: names to nouns, layouts from notes, lengths."""

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import ceil, inf, nan
from typing import cast

from gpuplan.calibration.inference.eras import engine_family, version_pair
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.csv_rows import meanings
from gpuplan.domain.hardware.catalog import AcceleratorChoice
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import EngineChoice, Regime, ServingLoad, ServingSetup
from gpuplan.domain.inference.serving import EngineSettings, ServingLayout, StorageFormats
from gpuplan.domain.model.layers import LatentAttention
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS, NumberFormat
from gpuplan.errors import InputError, Problem
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.memory.weights import weights_bytes
from gpuplan.performance.serving.engines import engine_settings
from gpuplan.studies.measured.mlperf_rules import MLPERF_TOKENS, is_submission, limits_of
from gpuplan.studies.measured.names import find_measured_model
from gpuplan.studies.measured.notation import EMPTY, THOUSANDS, formats_of, noted_layout

Row = Mapping[str, str]

REGIMES = cast("dict[str, Regime]", meanings("studies.measured", "regime"))
# What other sources call them; the first that is found wins.
REGIME_WORDS: tuple[tuple[tuple[str, ...], Regime], ...] = (
    (("offline",), "offline"),
    (("prefill",), "prefill"),
    (("concurren", "closed"), "fixed_concurrency"),
    (("max_batch",), "fixed_max_batch"),
    (("poisson", "server", "open", "request rate"), "poisson"),
    (("static", "single", "latency"), "static_batch"),
    (("max", "burst", "throughput", "saturat"), "max_load"),
)
# Prompt tokens by task, where a source does not state them [ML.ENERGY-v3]. Assumption where no
# figure is published.
TASK_INPUT_TOKENS = {
    "lm-arena-chat": 140, "gpqa": 300, "image-chat": 1500, "video-chat": 2400,
    "sourcegraph-fim": 1080, "llm_text_generation/chat": 410, "llm_text_generation/code": 180,
    "mllm_text_generation/chat": 1500,
}  # fmt: skip
# Requests that published throughput runs queue, by lengths [TensorRT-LLM-perf-overview].
QUEUED_REQUESTS: dict[tuple[float, float], float] = {
    (128, 128): 30_000.0, (128, 2048): 3000.0, (128, 4096): 1500.0, (500, 2000): 3000.0,
    (1000, 1000): 3000.0, (1000, 2000): 1500.0, (2048, 128): 3000.0, (2048, 2048): 1500.0,
    (5000, 500): 1500.0, (20_000, 2000): 1000.0,
}  # fmt: skip
# Suites that name the longest lengths and draw evenly between 0.8 of them and them [InferenceX].
DRAWN_SOURCES, DRAWN_TOKENS, DRAWN_MEAN_FRAC = ("inferencex",), (1024.0, 8192.0), 0.9
DEFAULT_INPUT_TOKENS, DEFAULT_OUTPUT_TOKENS = 512.0, 256.0
# Share of the memory that weights may take where a submission does not say its layout.
WEIGHTS_FRAC = 0.55
LEAST_SEQUENCES = 16
MOST_USERS = 100_000  # of a closed loop, which is simulated user by user
QUANTIZED_WORDS = ("nvfp4", "fp8", "awq", "gptq", "int4")
COUNTED = frozenset({"n_accelerators", "tp", "pp", "batch", "input_tokens", "output_tokens"})
PROMPTS = re.compile(r"\b(\d[\d,]*) (?:prompts|requests)\b")
ARRIVALS = re.compile(r"(\d+) requests at (\d+(?:\.\d+)?|inf) (?:sessions|requests)/s")
MOST_EXPERT_RANKS = 8  # expert parallelism stays in one server unless a note states more
GH200_NETWORK_BYTES_PER_S = 12.5e9  # Assumption: one 100 Gb/s NIC per superchip


def serving_setup(row: Row) -> ServingSetup:
    """The row's deployment and load; InputError or CatalogError where a name is not known."""
    model = find_model_cached(row["model"])
    accelerator = find_accelerator_cached(_accelerator_name(row))
    regime = _regime(row)
    engine = _engine(row)
    storage = _storage(row, model, accelerator, engine)
    n = _n_accelerators(row)
    layout = _layout(row, model, accelerator, storage)
    layout, n = _doubled(row, layout, n)
    load = _load(row, regime)
    return ServingSetup(
        model=model,
        accelerator=_as_wired(accelerator, layout),
        storage=storage,
        layout=layout,
        engine=engine,
        settings=_settings(row, engine, accelerator=accelerator, load=load),
        load=load,
        n_replicas=max(1.0, n / layout.n_accelerators),
        is_speculative="multi-token" in row.get("flag", ""),
    )


def _settings(
    row: Row, engine: EngineChoice, *, accelerator: Accelerator, load: ServingLoad
) -> EngineSettings:
    """The engine's defaults; servers of closed loops are started for as many as will ask."""
    version = version_pair(engine.name, engine.version)
    settings = engine_settings(engine.name, version, accelerator)
    noted = re.search(r"max_num_seqs (\d+)", row.get("layout_note", ""))
    if noted and load.regime == "poisson":
        return replace(settings, max_sequences=max(1, int(noted[1])))
    if load.regime != "fixed_concurrency" or load.n_sequences is None:
        return settings
    n_asking = max(LEAST_SEQUENCES, ceil(load.n_sequences))
    return replace(settings, max_sequences=min(settings.max_sequences, n_asking))


def _accelerator_name(row: Row) -> str:
    """The row's own name, with the memory that its note gives where there are two sizes."""
    name = row["accelerator"]
    return "GH200 144GB" if name == "GH200" and "144GB" in row.get("layout_note", "") else name


@lru_cache(maxsize=512)
def find_model_cached(name: str) -> Model:
    """As `find_measured_model`; a table names few models many times."""
    return find_measured_model(name)


@lru_cache(maxsize=128)
def find_accelerator_cached(name: str) -> Accelerator:
    """As `find_accelerator` in the package's own catalog."""
    if name.startswith("A100 (40"):
        # The study does not say; its largest batches stop where 40 GB end.
        name = "A100 SXM 40GB"
    return accelerator_choice(name).accelerator


@lru_cache(maxsize=128)
def accelerator_choice(name: str) -> AcceleratorChoice:
    """As `find_accelerator` in the package's own catalog, with the count that the name carries."""
    return find_accelerator(name, read_catalog())


def _regime(row: Row) -> Regime:
    text = row["regime"].strip()
    if text == "see note":
        return _noted_regime(row)
    found = REGIMES.get(text) or next(
        (regime for words, regime in REGIME_WORDS if any(w in text.lower() for w in words)),
        _served_regime(row, text.lower()),
    )
    if found is None:
        problem = Problem("regime", f"got {text!r}", f"use one of {', '.join(REGIMES)}")
        raise InputError(row.get("id", "row"), [problem])
    # Requests that are all there at once wait for the engine, not for each other.
    is_timed = found != "poisson" or _arrivals(row)[0] is not None
    return found if is_timed else "max_load"


def _served_regime(row: Row, low: str) -> Regime | None:
    """`online` and `serving` say that a server was asked; the other columns say how."""
    if "online" not in low and "serving" not in low:
        return None
    if _arrivals(row)[0] is not None:
        return "poisson"
    return "fixed_concurrency" if number_in(row, "batch") else None


def _noted_regime(row: Row) -> Regime:
    note = row.get("layout_note", "").lower()
    if "max throughput" in note:
        return "max_load"
    return "fixed_concurrency" if "tp1" in note else "static_batch"


def _engine(row: Row) -> EngineChoice:
    text, version = row.get("engine", ""), row.get("engine_version", "")
    name = engine_family(text)
    if re.fullmatch(r"v\d\.\d", version) or not version:
        version = text  # a benchmark round, not a version: the engine's own text has it
    return EngineChoice(name=name, version=version if version != text or _has_digit(text) else "")


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def number_in(row: Row, key: str) -> float | None:
    """The cell's number, None where it is empty; InputError where it is something else.

    Only a rate may be infinite: all requests are there at once.
    """
    text = (row.get(key) or "").strip()
    try:
        value = None if text.lower() in EMPTY else float(_without_thousands(text, key))
    except ValueError:
        value = nan
    most = inf if key == "request_rate_per_s" else sys.float_info.max
    if value is not None and not 0.0 <= value <= most:
        problem = Problem(key, f"got {text!r}", "use a number, or leave the cell empty")
        raise InputError(row.get("id", "row"), [problem])
    return value


def stated_number(row: Row, key: str) -> float:
    """The cell's number; InputError, which names the condition, where it is empty."""
    value = number_in(row, key)
    if value is None:
        problem = Problem(
            key, "the row does not state it", f"--map {key}:=VALUE where all share it"
        )
        raise InputError(row.get("id", "row"), [problem])
    return value


def _without_thousands(text: str, key: str) -> str:
    """`1,024` tokens are 1024; where a fraction may be meant, a comma is left to be refused."""
    return text.replace(",", "") if key in COUNTED and THOUSANDS.fullmatch(text) else text


def _storage(
    row: Row, model: Model, accelerator: Accelerator, engine: EngineChoice
) -> StorageFormats:
    text = row.get("precision", "").strip()
    weights, cache = _formats(text, model, accelerator, row)
    if cache is None and weights is not None and weights.is_quantized:
        # These engines are run with an 8-bit cache beside 8- and 4-bit weights.
        is_served_low = engine.name == "trtllm" or row["regime"] == "fixed_concurrency"
        cache = FORMATS["fp8"] if is_served_low else FORMATS["bf16"]
    return storage_of(model, weights, cache)[0]


def _formats(
    text: str, model: Model, accelerator: Accelerator, row: Row
) -> tuple[NumberFormat | None, NumberFormat | None]:
    weights, cache = formats_of(text)
    published = model.checkpoint.quantized
    if published is not None and published.name == "mxfp4" and text.lower() != "bf16":
        return published, cache
    if weights is None:
        return _unsaid_format(model, accelerator, row), cache
    return weights, cache


def _unsaid_format(model: Model, accelerator: Accelerator, row: Row) -> NumberFormat | None:
    if "mlperf" not in row.get("source", ""):
        requested, found = row["model"].lower(), model.name.lower()
        # Another precision of the same network was found: the row's own is not quantized.
        is_other = any(word in found and word not in requested for word in QUANTIZED_WORDS)
        return FORMATS["bf16"] if is_other else None
    peaks = accelerator.peak_flop_per_s
    name = "nvfp4" if "fp4" in peaks else "fp8" if "fp8" in peaks else "bf16"
    return FORMATS[name]


def _n_accelerators(row: Row) -> float:
    """The row's count; else the one in the name, `8xH100`; else the ranks of its layout."""
    stated = number_in(row, "n_accelerators")
    if stated:
        return stated
    named = accelerator_choice(_accelerator_name(row)).n_accelerators
    return float(max(named, (number_in(row, "tp") or 1.0) * (number_in(row, "pp") or 1.0)))


def _layout(
    row: Row, model: Model, accelerator: Accelerator, storage: StorageFormats
) -> ServingLayout:
    n = int(_n_accelerators(row))
    tp, pp = int(number_in(row, "tp") or 0), int(number_in(row, "pp") or 1)
    noted = noted_layout(row.get("layout_note", ""), n, tp=tp, pp=pp)
    if noted is not None:
        return noted
    if _spreads_attention(row, model):
        n_ranks = min(tp or n, MOST_EXPERT_RANKS)
        return ServingLayout(tp=1, dp=n_ranks, ep=n_ranks)
    if not tp and "mlperf" in row.get("source", ""):
        return _smallest_layout(model, accelerator, storage, n)
    return ServingLayout(tp=tp or max(1, n // pp), pp=pp)


def _spreads_attention(row: Row, model: Model) -> bool:
    """TensorRT-LLM's throughput runs of latent-attention experts replicate the attention."""
    is_latent = any(isinstance(g.mixer, LatentAttention) for g in model.main.groups)
    is_throughput = row["regime"] == "max_load" or "mlperf" in row.get("source", "")
    return is_latent and is_throughput and engine_family(row["engine"]) == "trtllm"


def _smallest_layout(
    model: Model, accelerator: Accelerator, storage: StorageFormats, n: int
) -> ServingLayout:
    """The fewest devices whose memory the weights leave room in; servers are pipeline stages."""
    room = WEIGHTS_FRAC * accelerator.memory.visible_bytes
    link = accelerator.scale_up
    n_near = max(MOST_EXPERT_RANKS, 1 if link is None else link.n_domain)
    sizes = [size for size in (1, 2, 4, 8, 16) if size <= n]
    layouts = [ServingLayout(tp=min(s, n_near), pp=max(1, s // n_near)) for s in sizes]
    for layout in layouts:
        if weights_bytes(model, storage, layout) <= room:
            return layout
    return layouts[-1]


def _doubled(row: Row, layout: ServingLayout, n: float) -> tuple[ServingLayout, float]:
    """A row that counts whole MI250 cards has two of the catalog's devices in each."""
    if not row["accelerator"].startswith("MI250"):
        return layout, n
    return ServingLayout(tp=2 * layout.tp, pp=layout.pp, dp=layout.dp, ep=layout.ep), 2 * n


def _as_wired(accelerator: Accelerator, layout: ServingLayout) -> Accelerator:
    """How the published servers were wired, where the sheet leaves a choice.

    GH200 pairs are two servers on a network, fours share one NVLink board; cards that could
    carry a bridge ran without.
    """
    link = accelerator.scale_up
    if link is not None and "bridge" in link.name:
        return replace(accelerator, scale_up=None)
    if not accelerator.id.startswith("gh200") or link is None or layout.tp == 1:
        return accelerator
    if layout.tp == 2:
        wired = replace(link, name="network", bytes_per_s=GH200_NETWORK_BYTES_PER_S)
    else:
        wired = replace(link, n_domain=4)
    return replace(accelerator, scale_up=wired)


def _is_drawn(row: Row, prompt: float, output: float) -> bool:
    """The row gives the longest lengths of a suite whose requests are shorter on average."""
    is_suite = any(word in row.get("source", "") for word in DRAWN_SOURCES)
    return is_suite and prompt in DRAWN_TOKENS and output in DRAWN_TOKENS


def _load(row: Row, regime: Regime) -> ServingLoad:
    prompt, output = number_in(row, "input_tokens"), number_in(row, "output_tokens")
    if prompt and output and _is_drawn(row, prompt, output):
        prompt, output = DRAWN_MEAN_FRAC * prompt, DRAWN_MEAN_FRAC * output
    task = re.search(r"task=(\S+)", row.get("layout_note", ""))
    usual = MLPERF_TOKENS.get(row["model"].lower(), (DEFAULT_INPUT_TOKENS, DEFAULT_OUTPUT_TOKENS))
    if prompt is None and task:
        prompt = TASK_INPUT_TOKENS.get(task[1], DEFAULT_INPUT_TOKENS)
    output = 1.0 if regime == "prefill" else output
    batch = number_in(row, "batch")
    if batch is None and regime in ("static_batch", "prefill", "fixed_concurrency"):
        batch = 1.0
    if batch is None and regime == "max_load" and "trtllm" in row.get("source", ""):
        batch = QUEUED_REQUESTS.get((prompt or 0, output or 0))
    rate, n_requests = _arrivals(row)
    if batch is None and regime == "max_load" and n_requests is not None:
        batch = float(n_requests)  # all are there at once: the queue is as long as they are many
    if regime == "fixed_concurrency":
        _check_users(row, batch or 0.0)
    return ServingLoad(
        regime=regime,
        input_tokens=prompt if prompt else usual[0],
        output_tokens=output if output else usual[1],
        n_sequences=batch,
        requests_per_s=rate,
        n_requests=n_requests,
        # A run counts only if it keeps its limits on latency [MLPerf-inference-rules].
        is_held=is_submission(row),
        limits=limits_of(row) if regime == "poisson" else None,
    )


def _check_users(row: Row, n_users: float) -> None:
    if n_users > MOST_USERS:
        problem = Problem("batch", f"got {n_users:g} users", f"give at most {MOST_USERS:,}")
        raise InputError(row.get("id", "row"), [problem])


def _arrivals(row: Row) -> tuple[float | None, int | None]:
    """Requests a second, None where all are there at once; how many, where a text says so."""
    rate, noted = number_in(row, "request_rate_per_s"), ARRIVALS.search(row.get("layout_note", ""))
    counted = noted or PROMPTS.search(row["regime"])
    if noted is not None:
        rate = rate or float(noted[2])
    is_timed = rate is not None and 0.0 < rate < inf
    n_requests = None if counted is None else int(counted[1].replace(",", ""))
    return rate if is_timed else None, n_requests
