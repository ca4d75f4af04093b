"""Training steps: our held-out errors beside Calculon and llm-analysis on the same published rows.

    python benchmarks/peers/training.py --peers PYTHON [--calculon FOLDER]

PYTHON is the interpreter of an environment with `llm-analysis` in it; FOLDER is a checkout of
Calculon. A peer that is not there is skipped with the reason. Rows: dense models on A100 and H100
in 16 bits, whose layout and batch are published. Ours: constants fitted without the row's model
(and without its source); the peers as they ship, with the row's layout, batch and recomputation.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

import numpy as np

from gpuplan.calibration.training.rows import shipped_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.model.layers import Attention, FeedForward
from gpuplan.studies.training.calibration import errors_by_case, model_of, source_of, usable
from gpuplan.studies.training.cases import Case, cases_of

GPUS = {
    "a100-sxm-80gb": ("a100-sxm-80gb", "a100_80g.json"),
    "a100-sxm-40gb": ("a100-sxm-40gb", "a100_80g.json"),
    "h100-sxm": ("h100-sxm-80gb", "h100_80g_nvl8.json"),
}
RECOMPUTED = {"full": (2, "full"), "selective": (1, "attn_only"), "none": (0, "none")}
SHARDED = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3}
# What the peers are asked, in their own environments.
LLM_ANALYSIS = """
import json, sys
from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import ModelConfig, ParallelismConfig, get_gpu_config_by_name
out = []
for case in json.load(sys.stdin):
    try:
        found = LLMAnalysis(
            ModelConfig(**case["model"]), get_gpu_config_by_name(case["gpu"]),
            parallelism_config=ParallelismConfig(**case["layout"]),
        ).training(
            activation_recomputation=ActivationRecomputation(case["recompute"]),
            ds_zero=DSZeRO(case["zero"]), flash_attn=True, **case["batch"],
        )
        out.append(found["latency_per_iter"])
    except Exception as error:
        out.append(str(error))
json.dump(out, sys.stdout)
"""
CALCULON = """
import json, logging, sys
sys.path.insert(0, sys.argv[1])
import calculon
from calculon.llm import Llm
from calculon.system import System
out = []
for case in json.load(sys.stdin):
    try:
        with open(f"{sys.argv[1]}/systems/{case['system']}") as lines:
            system = System(json.load(lines))
        model = Llm(Llm.Application(case["application"]), logging.getLogger())
        model.compile(system, Llm.Execution.from_json(case["execution"]))
        model.run(system)
        out.append(model.get_total_time())
    except Exception as error:
        out.append(str(error) or type(error).__name__)
json.dump(out, sys.stdout)
"""


def cases() -> list[Case]:
    """Dense runs in 16 bits on accelerators that the peers describe."""
    found, _ = cases_of(shipped_rows(), read_catalog())
    return [case for case in usable(found) if _is_comparable(case)]


def _is_comparable(case: Case) -> bool:
    config = case.configuration
    groups = config.model.main.groups
    return (
        str(config.accelerator.id) in GPUS
        and config.labels["architecture"] == "dense"
        and config.setup.execution.compute in ("bf16", "fp16")
        and config.setup.execution.recompute in RECOMPUTED
        and config.setup.task == "pretrain"
        and config.layout.cp == 1
        and all(isinstance(group.mixer, Attention) for group in groups)
        and all(isinstance(group.feed_forward, FeedForward) for group in groups)
    )


def llm_analysis_case(case: Case) -> dict[str, object]:
    """The row as llm-analysis takes it."""
    config = case.configuration
    layout, setup, model = config.layout, config.setup, config.model
    mixer, feed = model.main.groups[0].mixer, model.main.groups[0].feed_forward
    assert isinstance(mixer, Attention)
    assert isinstance(feed, FeedForward)
    recompute, _ = RECOMPUTED[setup.execution.recompute]
    return {
        "model": {
            "name": model.name,
            "num_layers": model.main.n_layers,
            "n_head": mixer.n_heads,
            "hidden_dim": model.main.hidden_size,
            "vocab_size": model.embedding.n_vocab,
            "max_seq_len": setup.sequence_tokens,
            "num_key_value_heads": mixer.n_kv_heads,
            "ffn_embed_dim": _two_matrix_width(feed),
        },
        "gpu": GPUS[str(config.accelerator.id)][0],
        "layout": {"tp_size": layout.tp, "pp_size": layout.pp, "dp_size": layout.dp},
        "recompute": recompute,
        "zero": SHARDED[layout.sharding],
        "batch": {
            "batch_size_per_gpu": setup.micro_batch,
            "gradient_accumulation_steps": setup.n_micro_batches,
            "seq_len": setup.sequence_tokens,
        },
    }


def calculon_case(case: Case) -> dict[str, object]:
    """The row as Calculon takes it: two-matrix feed-forward parts of the same FLOPs, full heads."""
    config = case.configuration
    layout, setup = config.layout, config.setup
    mixer, feed = config.model.main.groups[0].mixer, config.model.main.groups[0].feed_forward
    assert isinstance(mixer, Attention)
    assert isinstance(feed, FeedForward)
    _, recompute = RECOMPUTED[setup.execution.recompute]
    return {
        "system": GPUS[str(config.accelerator.id)][1],
        "application": {
            "hidden": config.model.main.hidden_size,
            "feedforward": _two_matrix_width(feed),
            "seq_size": setup.sequence_tokens,
            "attn_heads": mixer.n_heads,
            "attn_size": mixer.qk_head_dim,
            "num_blocks": config.model.main.n_layers,
        },
        "execution": {
            "num_procs": layout.n_accelerators,
            "tensor_par": layout.tp,
            "pipeline_par": layout.pp,
            "data_par": layout.dp,
            "tensor_par_net": 0,
            "pipeline_par_net": 1,
            "data_par_net": 1 if layout.n_accelerators > 8 else 0,
            "batch_size": setup.micro_batch * setup.n_micro_batches * layout.dp,
            "microbatch_size": setup.micro_batch,
            "datatype": "float16",
            "fused_activation": True,
            "attention_type": "multihead",
            "activation_recompute": recompute,
            "pipeline_interleaving": layout.n_virtual,
            "optimizer_sharding": layout.sharding != "none" and layout.dp > 1,
            "tensor_par_comm_type": "rs_ag" if layout.has_sequence_parallel else "ar",
            "tensor_par_overlap": "none",
            "seq_par_ag_redo": False,
            "data_par_overlap": False,
            "weight_offload": False,
            "activations_offload": False,
            "optimizer_offload": False,
            "training": True,
        },
    }


def _two_matrix_width(feed: FeedForward) -> int:
    return round(feed.intermediate_size * (1.5 if feed.is_gated else 1.0))


def asked(python: str, code: str, given: list[dict[str, object]], *more: str) -> list[float | str]:
    """What a peer answers in its own environment: seconds, or its reason for none."""
    done = subprocess.run(
        [python, "-c", code, *more],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    answers: list[float | str] = json.loads(done.stdout[done.stdout.rindex("[") :])
    return answers


def shown(name: str, errors: np.ndarray, n: int, seconds: float) -> None:
    """One line of the table."""
    errors = np.abs(np.expm1(errors))
    figures = f"{100 * np.median(errors):6.1f} % {100 * np.quantile(errors, 0.9):7.1f} %"
    print(f"{name:48} {len(errors):4} of {n}   {figures}   {seconds:8.2f}")


def a_number(answer: float | str) -> bool:
    """Whether the peer answered with a time."""
    return not isinstance(answer, str)


def peer(name: str, answers: list[float | str], rows: list[Case], seconds: float) -> None:
    """Errors of a peer where it answers: as it ships, and with its bias on other models removed."""
    pairs = list(zip(answers, rows, strict=True))
    found = [(np.log(a / r.measured_step_s), model_of(r)) for a, r in pairs if a_number(a)]
    logs = np.array([log for log, _ in found])
    models = np.array([model for _, model in found])
    shown(f"{name}, as it ships", logs, len(rows), seconds)
    bias = np.array([np.median(logs[models != model]) for model in models])
    shown(f"{name}, efficiency of other models' rows", logs - bias, len(rows), seconds)
    refused = [answer for answer in answers if isinstance(answer, str)]
    if refused:
        print(f"  refused {len(refused)}, e.g. {refused[0][:100]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="interpreter of an environment with llm-analysis")
    parser.add_argument("--calculon", type=Path, help="checkout of Calculon")
    given = parser.parse_args()
    every = usable(cases_of(shipped_rows(), read_catalog())[0])
    rows = cases()
    chosen = np.array([_is_comparable(case) for case in every])
    print(f"{'training step, ' + str(len(rows)) + ' rows':48} rows       median       p90   CPU-s")
    for name, key in (("model", model_of), ("source", source_of)):
        start_s = time.process_time()
        errors = errors_by_case(every, key)[chosen]
        label = f"gpuplan, the row's {name} held out"
        shown(label, errors, len(rows), time.process_time() - start_s)
    python = given.peers or "python3"
    runs = {"llm-analysis": (LLM_ANALYSIS, llm_analysis_case, ())}
    if given.calculon:
        runs["Calculon"] = (CALCULON, calculon_case, (str(given.calculon),))
    else:
        print("Calculon: skipped, no checkout given (--calculon)")
    for name, (code, described, more) in runs.items():
        start_s = time.monotonic()
        try:
            answers = asked(python, code, [described(case) for case in rows], *more)
        except RuntimeError as error:
            print(f"{name}: skipped, {error}")
            continue
        peer(name, answers, rows, time.monotonic() - start_s)


if __name__ == "__main__":
    main()
