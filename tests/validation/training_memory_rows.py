"""Published training peaks as rows that the memory model can be judged on."""

import csv
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.training.setup import (
    ALL_LINEAR_TARGETS,
    Execution,
    LoRA,
    ParallelLayout,
    StateBytes,
    Target,
    TrainingMemory,
    TrainingSetup,
)
from gpuplan.performance.memory.training.frameworks import (
    DEEPSPEED_BF16_STATES,
    FP16_STATES,
    HALF_ADAPTER,
    HALF_STATES,
    OPTIMIZER_BYTES,
    PRACTICES,
    WIDE_ADAPTER,
)
from gpuplan.performance.memory.training.peak import training_memory
from gpuplan.units import GB, GIB

HERE = Path(__file__).parent
CONDITIONS = HERE / "finetune_conditions.csv"
# What may be asked of a card before the driver refuses: total memory as the tools show it.
CARD_BYTES = {"A10G": 22.3 * GIB, "A100 40GB": 39.4 * GIB, "MI355": 288 * GIB}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One published peak and the job behind it."""

    id: str
    source: str
    role: str  # fit, holdout, or why it is left out
    model: Model
    setup: TrainingSetup
    layout: ParallelLayout
    scope: str  # allocated, reserved, total
    measured_bytes: float | None  # None: ran out of memory
    card: str = ""

    @property
    def memory(self) -> TrainingMemory:
        return training_memory(self.model, self.setup, self.layout)

    @property
    def predicted_bytes(self) -> float:
        return float(getattr(self.memory, f"{self.scope}_bytes"))

    @property
    def error(self) -> float:
        assert self.measured_bytes is not None
        return self.predicted_bytes / self.measured_bytes - 1


def rows(measured: Path) -> list[Row]:
    """All rows of the shared tables, with the conditions that their sources publish."""
    with (measured / "finetune_memory_throughput.csv").open() as file:
        fine = [row for row in csv.DictReader(file) if row["peak_mem_gb"]]
    with (measured / "llm_training.csv").open() as file:
        trained = [row for row in csv.DictReader(file) if row["measured_memory_gib"]]
    found = [_fine_row(i, row) for i, row in enumerate(fine)]
    found += [_flag_row(i, row) for i, row in enumerate(_conditions("torchtune-flags"))]
    found += [_trained_row(row) for row in trained]
    return [row for row in found if row is not None]


@cache
def _conditions(kind: str) -> list[dict[str, str]]:
    with CONDITIONS.open() as file:
        return [row for row in csv.DictReader(file) if row["kind"] == kind]


@cache
def model_named(name: str) -> Model:
    if name in SHAPES:
        return read_model(SHAPES[name], name=name)
    return find_model(name)


def untied(model: Model) -> Model:
    """litgpt keeps the head apart from the input table, tied or not."""
    table = model.embedding
    if not table.is_tied:
        return model
    apart = replace(table, n_output_params=table.n_input_params, is_tied=False)
    return replace(model, embedding=apart)


SHAPES: dict[str, dict[str, object]] = {
    "stablelm-base-alpha-3b": {
        "model_type": "gpt_neox", "hidden_size": 4096, "num_hidden_layers": 16,
        "num_attention_heads": 32, "intermediate_size": 16384, "vocab_size": 50688,
        "tie_word_embeddings": False, "max_position_embeddings": 4096,
    },
    "internlm-7b": {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008,
        "vocab_size": 103168, "tie_word_embeddings": False, "max_position_embeddings": 2048,
    },
    "internlm-20b": {
        "model_type": "llama", "hidden_size": 5120, "num_hidden_layers": 60,
        "num_attention_heads": 40, "num_key_value_heads": 40, "intermediate_size": 13824,
        "vocab_size": 103168, "tie_word_embeddings": False, "max_position_embeddings": 2048,
    },
}  # fmt: skip


def bloom_like(n_layers: int, hidden: int, heads: int) -> Model:
    """The sweeps' GPT with BLOOM's table of 250,880 rows."""
    shape: dict[str, object] = {
        "model_type": "bloom", "hidden_size": hidden, "n_layer": n_layers, "n_head": heads,
        "vocab_size": 250880, "tie_word_embeddings": True, "max_position_embeddings": 2048,
    }  # fmt: skip
    return read_model(shape, name=f"bloom-{n_layers}x{hidden}")


# --- fine-tuning ------------------------------------------------------------------------------


def _fine_row(i: int, row: dict[str, str]) -> Row | None:
    reader = {"litgpt": _litgpt, "torchtune": _torchtune, "peft": _peft, "unsloth": _unsloth}
    known = reader.get(row["project"])
    return known(f"ft-{i:03d}", row) if known else None


LITGPT_NAMES = {
    "tiny-llama": "TinyLlama-1.1B", "mistral-7b": "Mistral-7B-v0.1", "llama-3-8b": "Llama-3.1-8B",
    "1.3B phi-1.5": "phi-1_5", "3B StableLM Alpha": "stablelm-base-alpha-3b",
    "7B Llama 2": "Llama-2-7b", "llama-2-7b": "Llama-2-7b", "gemma-2-2b": "gemma-2-2b-it",
}  # fmt: skip
ALPACA_TOKENS = {"phi-1_5": 1044, "stablelm-base-alpha-3b": 1034, "Llama-2-7b": 1304}


def _litgpt(id_: str, row: dict[str, str]) -> Row:
    is_hub = "config " in row["other"]
    name = row["model"]
    if is_hub and ("gemma2-2b" in row["other"] or "gemma2b" in row["other"]):
        name = "gemma-2-2b"
    name = LITGPT_NAMES.get(name, name)
    model = untied(model_named(name))
    measured = None if row["peak_mem_gb"] == "OOM" else float(row["peak_mem_gb"]) * GB
    make = _litgpt_hub if is_hub else _litgpt_table
    setup, layout, role = make(row, name)
    return Row(
        id=id_, source="litgpt-hub" if is_hub else "litgpt-2023", role=role, model=model,
        setup=setup, layout=layout, scope="allocated", measured_bytes=measured, card=row["gpu"],
    )  # fmt: skip


def _litgpt_hub(row: dict[str, str], name: str) -> tuple[TrainingSetup, ParallelLayout, str]:
    config = re.search(r"config (\S+)\.yaml", row["other"])
    assert config
    wanted = config.group(1).replace("gemma2b/", "gemma2-2b/").lower()
    cond = next(c for c in _conditions("litgpt-hub") if c["key"].lower() == wanted)
    n = int(cond["devices"])
    micro = int(row["micro_batch"])
    is_full = row["method"] == "full"
    execution = replace(
        PRACTICES["litgpt"].execution,
        attention="math" if "gemma-2-" in name else "flash",
        recompute="full" if is_full and n > 1 else "none",
        accumulates_unsharded=is_full and n > 1,
    )
    setup = TrainingSetup(
        task="full" if is_full else ("qlora" if row["method"] == "qlora" else "lora"),
        states=HALF_STATES, micro_batch=micro, sequence_tokens=int(row["seq_len"]),
        n_micro_batches=max(1, int(cond["global_batch"]) // n // micro), execution=execution,
        adapter=None if is_full else _litgpt_adapter(
            int(cond["lora_rank"]), cond["targets"], "nf4" if row["method"] == "qlora" else ""
        ),
    )  # fmt: skip
    if setup.n_micro_batches == 1:
        setup = replace(setup, execution=replace(execution, accumulates_unsharded=False))
    return setup, _fsdp(n), cond["role"] if int(row["n_gpus"]) == 1 or n > 1 else "duplicate"


def _litgpt_adapter(rank: int, targets: str, base: str) -> LoRA:
    names: tuple[Target, ...] = tuple(targets.split("+"))  # type: ignore[assignment]
    states = HALF_ADAPTER
    if base:
        states = replace(states, optimizer_bytes_per_param=OPTIMIZER_BYTES["paged-adamw"])
    return LoRA(
        rank=rank, targets=names, states=states, base=FORMATS[base] if base else None,
        has_dropout=True, is_head_quantized=bool(base), n_kept_base_inputs=2 if base else 0,
    )  # fmt: skip


def _litgpt_table(row: dict[str, str], name: str) -> tuple[TrainingSetup, ParallelLayout, str]:
    n, micro = int(row["n_gpus"]), int(row["micro_batch"])
    base = row["quantization"].removeprefix("bnb.").replace("None", "")
    is_lora = "LoRA" in row["method"]
    adapter = _litgpt_adapter(8, "q+v", base)
    # The longest sample comes first and alone: no step before it was as long.
    adapter = replace(adapter, n_kept_base_inputs=1 if base else 0)
    role = "fit"
    if not is_lora:
        is_v2 = "2,125,248" in row["other"] or "4,279,744" in row["other"]
        role = "method not modelled: scale-and-bias adapters" if is_v2 else "fit"
        adapter = replace(adapter, targets=(), has_dropout=False)
    execution = PRACTICES["litgpt"].execution
    if n > 1:
        execution = replace(execution, recompute="full", accumulates_unsharded=True)
        adapter = replace(adapter, frozen_gradient_bytes_per_param=2.0)
    setup = TrainingSetup(
        task="qlora" if base else "lora", states=HALF_STATES, micro_batch=micro,
        sequence_tokens=ALPACA_TOKENS[name], n_micro_batches=128 // micro // n,
        execution=execution, adapter=adapter,
    )  # fmt: skip
    return setup, _fsdp(n), role


def _fsdp(n: int) -> ParallelLayout:
    return ParallelLayout(dp=n, sharding="zero3" if n > 1 else "none")


def _torchtune(id_: str, row: dict[str, str]) -> Row:
    key = f"{row['date']} {row['model']} {row['method']} {row['n_gpus']}x{row['gpu']}"
    cond = next(c for c in _conditions("torchtune") if c["key"] == key)
    unit = GIB if "GiB" in row["mem_unit"] else GB
    tokens = int(row["seq_len"] or cond["sequence_tokens"])
    return Row(
        id=id_, source="torchtune", role=cond["role"],
        model=model_named(row["model"].replace("Llama2", "Llama-2").replace("Llama 3", "Llama-3")
                          .replace(" ", "-").replace("7B", "7b").replace("70B", "70b")),
        setup=_torchtune_setup(cond, int(row["micro_batch"] or 2), tokens),
        # The tutorials of spring 2024 print "peak memory reserved"; later tables say "active".
        layout=_fsdp(int(row["n_gpus"])), scope="reserved" if unit == GB else "allocated",
        measured_bytes=float(row["peak_mem_gb"]) * unit,
    )  # fmt: skip


def _flag_row(i: int, cond: dict[str, str]) -> Row:
    return Row(
        id=f"flags-{i:02d}", source="torchtune-flags", role=cond["role"],
        model=model_named("Llama-3.2-3B"), setup=_torchtune_setup(cond, 2, 4096),
        layout=_fsdp(1), scope="allocated", measured_bytes=float(cond["peak_gib"]) * GIB,
    )  # fmt: skip


def _torchtune_setup(cond: dict[str, str], micro: int, tokens: int) -> TrainingSetup:
    optimizer = OPTIMIZER_BYTES[cond["optimizer"]]
    states = replace(HALF_STATES, optimizer_bytes_per_param=optimizer)
    if cond["offload"] == "yes":  # sharded states wait in host memory
        states = StateBytes(
            weight_bytes_per_param=0, gradient_bytes_per_param=0, master_bytes_per_param=0,
            optimizer_bytes_per_param=0,
        )  # fmt: skip
    adapter = None
    if cond["lora_rank"]:
        names: tuple[Target, ...] = tuple(cond["targets"].split("+"))  # type: ignore[assignment]
        adapter = LoRA(
            rank=int(cond["lora_rank"]), targets=names, states=HALF_ADAPTER,
            base=FORMATS["nf4-dq"] if "qlora" in cond["task"] else None,
        )  # fmt: skip
    execution = replace(
        PRACTICES["torchtune"].execution,
        recompute="full" if cond["checkpointing"] == "yes" else "none",
        kernels="compiled" if cond["compile"] == "yes" else "eager",
        loss=cond["loss"], steps_in_backward=cond["steps_in_backward"] == "yes",
    )  # fmt: skip
    return TrainingSetup(
        task=cond["task"], states=states, micro_batch=micro, sequence_tokens=tokens,  # type: ignore[arg-type]
        n_micro_batches=int(cond["n_micro_batches"]), execution=execution, adapter=adapter,
    )  # fmt: skip


def _peft(id_: str, row: dict[str, str]) -> Row | None:
    if "VeLoRA" in row["method"]:
        return None
    adapter = LoRA(rank=32, targets=("q", "v"), states=WIDE_ADAPTER, input_bytes_per_element=4.0)
    execution = replace(
        PRACTICES["transformers"].execution,
        recompute="full" if "GC" in row["method"] else "none", expands_kv=True,
    )  # fmt: skip
    setup = TrainingSetup(
        task="lora", states=HALF_STATES, micro_batch=4, sequence_tokens=768,
        execution=execution, adapter=adapter,
    )  # fmt: skip
    return Row(
        id=id_, source="peft", role="holdout", model=model_named("Llama-3.2-3B"), setup=setup,
        layout=_fsdp(1), scope="reserved", measured_bytes=float(row["peak_mem_gb"]) * GIB,
    )  # fmt: skip


def _unsloth(id_: str, row: dict[str, str]) -> Row:
    """README's notebook settings: two sequences of at most 2048, rank 16, all matrices."""
    name = {"Ll": "Llama-2-7b", "Mi": "Mistral-7B-v0.1", "Co": "CodeLlama-34b"}.get(
        row["model"][:2], "Llama-2-7b"
    )
    is_hf = "Unsloth" not in row["method"]
    adapter = LoRA(
        rank=16, targets=ALL_LINEAR_TARGETS, base=FORMATS["nf4-dq"],
        states=replace(WIDE_ADAPTER, optimizer_bytes_per_param=OPTIMIZER_BYTES["adamw-8bit"]),
        n_kept_base_inputs=1 if is_hf else 0, input_bytes_per_element=4.0 if is_hf else 2.0,
    )  # fmt: skip
    is_math = "Hugging" in row["method"]
    execution = Execution(
        recompute="full", kernels="eager" if is_hf else "fused", expands_kv=is_hf,
        attention="math" if is_math else "flash", loss="held" if is_hf else "chunked",
    )  # fmt: skip
    setup = TrainingSetup(
        task="qlora", states=HALF_STATES, micro_batch=2, sequence_tokens=2048, n_micro_batches=4,
        execution=execution, adapter=adapter,
    )  # fmt: skip
    return Row(
        id=id_, source="unsloth", role="batch and sequence not published", model=model_named(name),
        setup=setup, layout=_fsdp(1), scope="reserved",
        measured_bytes=float(row["peak_mem_gb"]) * GIB,
    )  # fmt: skip


# --- pretraining ------------------------------------------------------------------------------


def _trained_row(row: dict[str, str]) -> Row | None:
    reader = {
        "bloom-sweeps": _bloom, "torchtitan": _torchtitan, "internevo": _internevo,
        "amd-primus": _primus,
    }  # fmt: skip
    return reader[row["source"]](row)


def _memory_bytes(row: dict[str, str]) -> float | None:
    value = row["measured_memory_gib"]
    return None if value == "OOM" else float(value) * GIB


def _bloom(row: dict[str, str]) -> Row:
    hidden = int(row["hidden"])
    # The section of 100 layers is headed HIDDEN=12288; the table kept the hidden size before it.
    if row["n_layers"] == "100":
        hidden = 12288
    # From 28 February: bf16 with 32-bit accumulation, and tables counted as layers.
    is_late = row["note"] == "02-28"
    layout = ParallelLayout(
        tp=int(row["tp"]), pp=int(row["pp"]), dp=int(row["dp"]), sharding="zero1",
        counts_embedding_as_layer=is_late, bucket_elements=500_000_000,
    )  # fmt: skip
    setup = TrainingSetup(
        task="pretrain", states=DEEPSPEED_BF16_STATES if is_late else FP16_STATES,
        micro_batch=int(row["micro_batch"]), sequence_tokens=2048,
        n_micro_batches=2048 // int(row["dp"]) // int(row["micro_batch"]),
        execution=PRACTICES["megatron-deepspeed"].execution,
    )  # fmt: skip
    return Row(
        id=row["id"], source="bloom", role="holdout",
        model=bloom_like(int(row["n_layers"]), hidden, int(row["heads"] or 64)),
        setup=setup, layout=layout, scope="total", measured_bytes=_memory_bytes(row),
    )  # fmt: skip


def _torchtitan(row: dict[str, str]) -> Row:
    practice = PRACTICES["torchtitan"]
    is_full = row["recompute"] == "full"
    execution = replace(
        practice.execution,
        recompute="full" if is_full else "alternate",
        kernels="compiled" if "compile yes" in row["note"] else "eager",
    )
    layout = ParallelLayout(dp=int(row["dp"]), cp=int(row["cp"] or 1), sharding="zero3")
    setup = TrainingSetup(
        task="pretrain", states=practice.states, micro_batch=int(row["micro_batch"]),
        sequence_tokens=int(row["seq_len"]), execution=execution,
    )  # fmt: skip
    return Row(
        id=row["id"], source="torchtitan", role="fit", model=model_named("Llama-3.1-8B"),
        setup=setup, layout=layout, scope="reserved", measured_bytes=_memory_bytes(row),
    )  # fmt: skip


def _internevo(row: dict[str, str]) -> Row:
    # The source's rows of 8 accelerators are of its 20B model; the table calls them 7B.
    n, tp, pp = (int(row[k]) for k in ("n_accelerators", "tp", "pp"))
    is_fsdp = "fsdp True" in row["sharding"]
    dp = n // tp // pp
    layout = ParallelLayout(
        tp=tp, pp=pp, dp=dp, sharding="zero3" if is_fsdp and dp > 1 else "zero1"
    )
    practice = PRACTICES["internevo"]
    setup = TrainingSetup(
        task="pretrain", states=practice.states, micro_batch=1, sequence_tokens=2048,
        n_micro_batches=4, execution=practice.execution,
    )  # fmt: skip
    return Row(
        id=row["id"], source="internevo", role="holdout",
        model=model_named("internlm-20b" if n == 8 else "internlm-7b"),
        setup=setup, layout=layout, scope="total", measured_bytes=_memory_bytes(row),
    )  # fmt: skip


PRIMUS_SCHEDULES = [
    "1f1b", "interleaved", "zero-bubble", "zbv", "v-half", "v-min",
    "1f1b", "v-half", "v-min", "zbv", "zero-bubble", "interleaved", "interleaved", "interleaved",
]  # fmt: skip


def _primus(row: dict[str, str]) -> Row:
    number = int(row["id"].removeprefix("trn-")) - 2722
    schedule = PRIMUS_SCHEDULES[number]
    # The run that failed is named vpp2 by its source, whatever its column says.
    n_virtual = 2 if row["measured_memory_gib"] == "OOM" else int(row["vp"])
    is_qwen = "Qwen" in row["model"]
    pp = int(row["pp"])
    layout = ParallelLayout(
        pp=pp, dp=int(row["n_accelerators"]) // pp, ep=int(row["ep"] or 1),
        n_virtual=n_virtual if schedule == "interleaved" else 1,
        schedule=schedule, sharding="zero1",  # type: ignore[arg-type]
    )  # fmt: skip
    setup = TrainingSetup(
        task="pretrain", states=PRACTICES["megatron"].states, micro_batch=1,
        sequence_tokens=4096, n_micro_batches=32, execution=PRACTICES["megatron"].execution,
    )  # fmt: skip
    return Row(
        id=row["id"], source="primus-qwen" if is_qwen else "primus-llama",
        role="batch, sequence, precision and recompute not published",
        model=model_named("Qwen3-235B-A22B" if is_qwen else "Llama-2-7b"), setup=setup,
        layout=layout, scope="total", measured_bytes=_memory_bytes(row), card="MI355",
    )  # fmt: skip
