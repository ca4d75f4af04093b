"""What vLLM logged, beside what is predicted for the same settings."""

import csv
import dataclasses
from dataclasses import dataclass
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.fit import Deployment
from gpuplan.domain.inference.serving import InferenceMemory, SequenceLoad, ServingLayout
from gpuplan.domain.model.precision import format_named
from gpuplan.errors import InputError
from gpuplan.performance.memory.inference import inference_memory
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import vllm_settings


@dataclass(frozen=True)
class Row:
    """One logged start of an engine, and ours."""

    model: str
    tp: int
    context_tokens: int
    started: bool
    measured_weights_gib: float | None
    measured_cache_gib: float | None
    memory: InferenceMemory

    @property
    def fits(self) -> bool:
        """Our verdict."""
        return self.memory.cache_bytes >= self.memory.needed_bytes


def rows(path: Path) -> tuple[list[Row], list[str]]:
    """Every row that can be judged, and the models that are not in the catalog."""
    judged, missing = [], []
    with path.open() as lines:
        for line in csv.DictReader(lines):
            try:
                judged.append(_row(line))
            except InputError:
                missing.append(line["model"])
    return judged, missing


def _row(line: dict[str, str]) -> Row:
    model = find_model(line["model"])
    accelerator = find_accelerator(line["accelerator"], read_catalog()).accelerator
    asked = None if line["precision"] == "mxfp4" else format_named(line["precision"])
    storage, _ = storage_of(model, asked, None)
    share = float(line["gpu_memory_utilization"])
    engine = vllm_settings(accelerator, version=(0, 11), memory_use_frac=share)
    deployment = Deployment(
        model=model,
        accelerator=accelerator,
        storage=storage,
        layout=ServingLayout(tp=int(line["tp"])),
        engine=dataclasses.replace(engine, block_tokens=int(line["block_size"])),
        load=SequenceLoad(context_tokens=int(line["max_model_len"]), n_sequences=1),
    )
    memory = inference_memory(deployment)
    return Row(
        model=line["model"],
        tp=int(line["tp"]),
        context_tokens=int(line["max_model_len"]),
        started=line["fits"] == "yes",
        measured_weights_gib=_number(line["measured_weights_gib"]),
        measured_cache_gib=_number(line["measured_kv_cache_gib"]),
        memory=memory,
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
