"""Scenarios of ten kinds, drawn: what people ask, in sizes that are planned within a second or two.

Every strategy gives the tree of a scenario file. Accelerators are one or two mainstream ones, so
that a plan is quick; models are published ones of all usual families.
"""

import os
from typing import Any

from hypothesis import strategies as st

Tree = dict[str, Any]
N_EXAMPLES = int(os.environ.get("GPUPLAN_CONSISTENCY_EXAMPLES", "300"))

SMALL = ("meta-llama/Llama-3.1-8B-Instruct", "mistralai/Mistral-7B-Instruct-v0.3",
         "Qwen/Qwen3-30B-A3B", "google/gemma-3-12b-it", "openai/gpt-oss-20b")  # fmt: skip
LARGE = ("meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen3-32B", "openai/gpt-oss-120b",
         "mistralai/Mixtral-8x7B-Instruct-v0.1")  # fmt: skip
ENCODERS = ("BAAI/bge-m3", "BAAI/bge-large-en-v1.5", "intfloat/multilingual-e5-large",
            "sentence-transformers/all-MiniLM-L6-v2")  # fmt: skip
CARDS = ("H100", "H200", "A100", "L40S", "MI300X", "B200")
TRAINING_CARDS = ("H100", "A100", "H200", "B200")


def cards(names: tuple[str, ...] = CARDS, most: int = 2) -> st.SearchStrategy[list[str]]:
    """One or a few accelerators, each once."""
    return st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True)


def rounded(low: float, high: float) -> st.SearchStrategy[float]:
    """A number that somebody would type: two digits, any magnitude between the ends."""
    return st.floats(low, high).map(lambda x: float(f"{x:.2g}"))


def tokens(low: int, high: int) -> st.SearchStrategy[int]:
    """Lengths as people write them."""
    return st.integers(low, high).map(lambda n: max(low, round(n, -1 if n < 1000 else -2)))


@st.composite
def served(draw: st.DrawFn, name: str = "chat", models: tuple[str, ...] = SMALL + LARGE) -> Tree:
    """A service of a language model with open arrivals."""
    work: Tree = {
        "name": name,
        "kind": "online_inference",
        "model": draw(st.sampled_from(models)),
        "demand": {"requests_per_s": draw(rounded(0.5, 30))},
        "request": {
            "input_tokens": draw(tokens(100, 4000)),
            "output_tokens": draw(tokens(20, 600)),
        },
        "slo": {
            "ttft_p95_ms": draw(st.sampled_from([500, 1000, 2000, 5000])),
            "tpot_p95_ms": draw(st.sampled_from([30, 50, 80, 150])),
        },
    }
    if draw(st.booleans()):
        work["demand"]["burstiness_cv"] = draw(st.sampled_from([1.5, 2.0]))
    if draw(st.booleans()):
        work["request"]["prefix_hit_frac"] = draw(st.sampled_from([0.3, 0.6, 0.9]))
    return work


def scenario(*workloads: Tree, allowed: list[str], **rest: Any) -> Tree:
    """A scenario file of these workloads on these accelerators."""
    policy = {"accelerators": {"allowed": allowed}, **rest.pop("policy", {})}
    return {"version": 1, "name": "drawn", "workloads": list(workloads), "policy": policy, **rest}


@st.composite
def chats(draw: st.DrawFn) -> Tree:
    """Chat, perhaps with spares and a peak."""
    work = draw(served())
    if draw(st.booleans()):
        work["demand"]["peak_to_mean"] = draw(st.sampled_from([2, 4]))
    survive = draw(st.sampled_from(["none", "replica", "node"]))
    return scenario(work, allowed=draw(cards()), policy={"survive": survive})


@st.composite
def agents(draw: st.DrawFn) -> Tree:
    """A closed loop: so many requests are always in flight."""
    work = draw(served("agents"))
    work["demand"] = {"concurrent_requests": draw(st.sampled_from([8, 50, 200, 1000]))}
    work["request"]["input_tokens"] = draw(tokens(1000, 20000))
    del work["slo"]["ttft_p95_ms"]
    return scenario(work, allowed=draw(cards()))


@st.composite
def encoded(draw: st.DrawFn, name: str = "embed") -> Tree:
    """A service of an encoder."""
    return {
        "name": name,
        "kind": "online_inference",
        "model": draw(st.sampled_from(ENCODERS)),
        "demand": {"requests_per_s": draw(rounded(1, 500))},
        "request": {"input_tokens": draw(tokens(20, 500)), "output_tokens": 0},
        "slo": {"e2e_p95_s": draw(st.sampled_from([0.3, 1.0, 5.0]))},
    }


@st.composite
def rags(draw: st.DrawFn) -> Tree:
    """An encoder and a language model that answers."""
    return scenario(draw(encoded()), draw(served("answer", SMALL)), allowed=draw(cards(most=1)))


@st.composite
def embeddings(draw: st.DrawFn) -> Tree:
    """An encoder alone."""
    return scenario(draw(encoded()), allowed=draw(cards((*CARDS, "L4", "A10G"))))


@st.composite
def documents(draw: st.DrawFn, name: str, **batch: Any) -> Tree:
    """Documents with a deadline."""
    return {
        "name": name,
        "kind": "batch_inference",
        "model": draw(st.sampled_from(SMALL)),
        "batch": batch,
        "request": {
            "input_tokens": draw(tokens(100, 3000)),
            "output_tokens": draw(tokens(10, 300)),
        },
    }


@st.composite
def batches(draw: st.DrawFn) -> Tree:
    """A one-off batch job."""
    n = draw(st.sampled_from([1e5, 1e6, 1e7]))
    work = draw(documents("heap", docs=n, deadline_h=draw(st.sampled_from([12, 48, 168]))))
    return scenario(work, allowed=draw(cards()))


@st.composite
def recurring(draw: st.DrawFn) -> Tree:
    """A service, and documents every day beside it."""
    n = draw(st.sampled_from([1e5, 1e6]))
    work = draw(documents("daily", docs_per_day=n, deadline_h=24))
    return scenario(draw(served(models=SMALL)), work, allowed=draw(cards(most=1)))


@st.composite
def pretrainings(draw: st.DrawFn) -> Tree:
    """A model from scratch."""
    models = ("meta-llama/Llama-2-7b-hf", "meta-llama/Llama-3.1-8B-Instruct",
              "meta-llama/Llama-2-70b-hf", "mistralai/Mixtral-8x7B-v0.1")  # fmt: skip
    run = {
        "tokens": draw(st.sampled_from([2e10, 2e11, 1e12])),
        "deadline_days": draw(st.sampled_from([20, 45, 90])),
        "sequence_tokens": draw(st.sampled_from([2048, 4096, 8192])),
    }
    work = {"name": "run", "kind": "pretraining", "precision": "bf16", "training": run}
    work["model"] = draw(st.sampled_from(models))
    return scenario(work, allowed=draw(cards(TRAINING_CARDS)))


@st.composite
def finetunings(draw: st.DrawFn) -> Tree:
    """A published model, adapted."""
    run = {
        "method": draw(st.sampled_from(["lora", "qlora", "full"])),
        "tokens": draw(st.sampled_from([5e6, 5e7, 5e8])),
        "deadline_days": draw(st.sampled_from([1, 3, 7])),
        "sequence_tokens": draw(st.sampled_from([1024, 2048, 4096])),
    }
    work = {"name": "run", "kind": "finetuning", "training": run}
    work["model"] = draw(st.sampled_from((SMALL[0], SMALL[1], LARGE[0])))
    return scenario(work, allowed=draw(cards((*TRAINING_CARDS, "L40S", "A10G"))))


@st.composite
def media(draw: st.DrawFn) -> Tree:
    """Images, by the work of a sample: any network that is no language model."""
    work = {
        "name": "images",
        "kind": "generic",
        "work": {
            "samples_per_s": draw(rounded(10, 5000)),
            "gflop_per_sample": draw(st.sampled_from([4, 35, 200])),
            "activation_mb_per_sample": draw(st.sampled_from([20, 100])),
        },
    }
    return scenario(work, allowed=draw(cards((*CARDS, "L4"))))


@st.composite
def owned(draw: st.DrawFn) -> Tree:
    """Hardware that is there, and a load that grows."""
    card = draw(st.sampled_from(["H100", "A100"]))
    work = draw(served(models=SMALL))
    return scenario(
        work,
        allowed=[card],
        owned=[{"accelerator": card, "nodes": draw(st.integers(1, 3)), "accelerators_per_node": 8}],
        growth={"per_month_frac": draw(st.sampled_from([0.0, 0.03, 0.08]))},
        budget={"horizon_months": 12},
    )


KINDS: dict[str, st.SearchStrategy[Tree]] = {
    "chat": chats(),
    "agents": agents(),
    "rag": rags(),
    "embeddings": embeddings(),
    "batch": batches(),
    "recurring": recurring(),
    "pretraining": pretrainings(),
    "finetuning": finetunings(),
    "media": media(),
    "owned": owned(),
}
