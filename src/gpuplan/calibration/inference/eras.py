"""Engines and their eras: versions that behave alike; a new version takes the nearest one."""

import re
from typing import NamedTuple

from gpuplan.csv_rows import meanings, packaged_rows

# Name as it is written somewhere -> family; the first that is found in the text wins.
ENGINES = tuple(meanings("calibration", "engine_family").items())


class Era(NamedTuple):
    """Versions of one engine from `since` on; `generation` is the year of most of them."""

    engine: str
    since: tuple[int, int]
    label: str
    generation: str


# Borders where the engines changed how an iteration is driven: vLLM 0.6 (multi-step, async
# output), 0.8 (V1 engine), 0.12 (async scheduling by default); TensorRT-LLM 0.10 and 0.13
# (scheduler and kernels), 0.19 (PyTorch back end), 1.0; SGLang 0.4 (overlapped scheduler).
ERAS = tuple(
    Era(row["engine"], (int(row["major"]), int(row["minor"])), row["label"], row["generation"])
    for row in packaged_rows("gpuplan.calibration", "data/eras.csv")
)
# Engines whose versions are not told apart, by the year of their published runs.
GENERATIONS = {"deepspeed": "2024", "deepspeed-mii": "2024", "lmdeploy": "2024", "synapse": "2024"}
USUAL_GENERATION = "2025"
# Years instead of versions: studies that name only when they ran.
YEARS = {("vllm", "2023"): (0, 1), ("vllm", "2024"): (0, 3), ("trtllm", "2024"): (0, 9)}
# TensorRT's own version in MLPerf submissions -> the TensorRT-LLM of its day.
TENSORRT = ((9, (0, 8)), (10, (0, 13)))
TENSORRT_10_MINORS = ((8, (0, 17)), (11, (0, 21)), (13, (1, 1)), (14, (1, 2)))


def engine_family(text: str) -> str:
    """The engine that a text names, or the text itself in lower case."""
    low = text.lower()
    return next((family for word, family in ENGINES if word in low), low.split(" ")[0])


def version_pair(engine: str, version: str) -> tuple[int, int] | None:
    """Major and minor that order the versions of one engine; None where the text says none."""
    year = YEARS.get((engine, version.strip()))
    if year is not None:
        return year
    if engine == "trtllm" and version.lower().startswith("tensorrt "):
        return _tensorrt(version)
    match = re.search(r"(?<![\d.])(\d{1,2})\.(\d{1,3})", version)
    if match is None or version.startswith("0.0.0"):
        return None
    return int(match[1]), int(match[2])


def _tensorrt(text: str) -> tuple[int, int] | None:
    match = re.search(r"(\d+)\.(\d+)", text)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2])
    if major >= 10:
        later = [since for start, since in TENSORRT_10_MINORS if minor >= start]
        return later[-1] if later else TENSORRT[1][1]
    return TENSORRT[0][1]


def era_of(engine: str, version: str) -> str:
    """The era of a version; versions newer than all known take the newest, unknown ones too."""
    known = [era for era in ERAS if era.engine == engine]
    if not known:
        return engine
    pair = version_pair(engine, version)
    if pair is None:
        # Recent serving runs often leave the version out: the newest era is the likeliest.
        return known[-1].label
    return next((era.label for era in reversed(known) if pair >= era.since), known[0].label)


def generation_of(era: str) -> str:
    """The year whose way of driving a device the era shares with other engines."""
    found = next((known.generation for known in ERAS if known.label == era), None)
    return found or GENERATIONS.get(era, USUAL_GENERATION)
