"""What each verb is asked over HTTP; unknown keys are refused, everything has a bound."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Name = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]
Words = Annotated[str, Field(min_length=1, max_length=2_000)]
MAX_REQUESTS = 10_000_000
TELEMETRY = "timestamp,gpu,DCGM_FI_DEV_GPU_UTIL\n1789948800,0,95\n1789948860,0,90\n"
CHAT = "Llama-3.3-70B chat for 6000 users on H100"


class Body(BaseModel):
    """The base of all questions."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def truth_is_no_number(cls, given: Any) -> Any:
        """True would be read as 1."""
        for name, value in given.items() if isinstance(given, dict) else ():
            known = cls.model_fields.get(name)
            if known is None or bool in (known.annotation, *get_args(known.annotation)):
                continue
            values = value if isinstance(value, list) else [value]
            if any(isinstance(one, bool) for one in values):
                raise ValueError(f"{name}: got true or false; give a number or a text")
        return given


class PlanBody(Body):
    """A scenario, or the same in words."""

    scenario: dict[str, Any] | None = Field(None, description="The keys of a scenario file.")
    words: Words | None = Field(None, description="The scenario in words.", examples=[CHAT])
    changes: list[Words] = Field([], max_length=50, description="key=value, set before reading.")
    samples: int = Field(200, ge=0, le=2_000, description="Samples of uncertain inputs.")
    seed: int = Field(0, ge=0, le=2**31)
    confidence: float | None = Field(
        None, ge=0, lt=1, description="Least probability of meeting all SLOs."
    )
    brief: bool = Field(
        False, description="The choice, its cost range and odds; no alternatives, no charts."
    )
    largest_load: bool | None = Field(
        None, description="Find the largest load that is carried; the stated one is not used."
    )


class PlanFileBody(Body):
    """A plan, as `plan` answered it."""

    plan: dict[str, Any] = Field(description="The document of a plan.")


class DiffBody(PlanFileBody):
    """Two plans."""

    other: dict[str, Any] = Field(description="The newer plan.")


class ReportBody(PlanFileBody):
    """A plan, and the form of its report."""

    to: Literal["html", "md", "json", "csv", "xlsx"] = "html"


class RenderBody(PlanFileBody):
    """A plan, and for whom it becomes files."""

    to: Name = Field("kubernetes", examples=["kubernetes", "slurm", "all"])


class DeploymentBody(Body):
    """A model on accelerators."""

    model: Name = Field(examples=["Llama-3.3-70B"])
    on: Name = Field(examples=["2xH100"])
    tp: Count | None = None
    pp: Count = 1
    dp: Count = 1
    ep: Count = 1
    precision: Name | None = None
    cache_precision: Name | None = None


class FitBody(DeploymentBody):
    """Whether it fits, for so many sequences of this length."""

    context_tokens: Tokens | None = None
    concurrency: Count = 1


class PredictBody(DeploymentBody):
    """How fast it is under a load."""

    node_gbit: Annotated[float, Field(gt=0, le=1e6)] | None = None
    engine: Name = "vllm"
    engine_version: Name | None = None
    replicas: Count = 1
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    concurrency: Count | None = None
    requests_per_s: float | None = Field(None, gt=0, le=1e6)
    prefix_cache_hit_rate: float = Field(0.0, ge=0, le=1)


class SimulateBody(PredictBody):
    """The same load, drawn and replayed request by request."""

    input_tokens: Tokens = 1024
    output_tokens: Tokens = 256
    requests_per_s: float = Field(gt=0, le=1e5)
    duration_s: float = Field(300, gt=0, le=7 * 86400)
    lora_rank: int = Field(0, ge=0, le=4096, description="Of LoRA adapters; 0: none.")
    loras: Count = Field(1, description="Distinct LoRA adapters in the traffic.")
    max_loras: Count | None = Field(None, description="Adapters of one iteration; all of them.")
    seed: int = Field(0, ge=0, le=2**31)

    @model_validator(mode="after")
    def bounded(self) -> "SimulateBody":
        """Memory is bounded: so many requests and no more."""
        if self.requests_per_s * self.duration_s > MAX_REQUESTS:
            raise ValueError(f"more than {MAX_REQUESTS} requests: shorten duration_s")
        return self


class ScaleBody(Body):
    """A training job on more and more accelerators."""

    model: Name = Field(examples=["Llama-3.1-70B"])
    on: Name = Field(examples=["H100"])
    counts: list[Count] = Field([8, 16, 32, 64], min_length=1, max_length=64)
    micro_batch: Count = 1
    sequence_tokens: Tokens = 8192
    price_usd_per_h: float | None = Field(None, gt=0, le=1e4, description="Of one accelerator.")


class TrainingFitBody(Body):
    """Whether a training job fits in memory."""

    model: Name = Field(examples=["Llama-3.1-8B"])
    on: Name = Field(examples=["8xH100"])
    task: Name = Field("pretrain", examples=["pretrain", "sft", "lora"])
    framework: Name | None = None
    micro_batch: Count = 1
    sequence_tokens: Tokens = 4096
    tp: Count = 1
    pp: Count = 1
    cp: Count = 1
    ep: Count = 1
    sharding: Name | None = None
    recompute: Name | None = None


class TrainingBody(Body):
    """A training run."""

    model: Name = Field(examples=["Llama-3.1-70B"])
    on: Name = Field(examples=["H100"])
    devices: Count | None = None
    tokens: float | None = Field(None, gt=0, le=1e18)
    columns: dict[Name, str | int | float] = Field(
        {}, max_length=30, description="Layout and batch: tp, pp, global_batch, seq_len …"
    )


class NetworkBody(Body):
    """A network that is no language model."""

    network: Name = Field(examples=["resnet50"])
    on: Name = Field(examples=["A100"])
    batch: Count = 1
    precision: Name | None = None


class TextBody(Body):
    """A file as text: a pasted table, CSV, JSON lines or a scrape."""

    text: str = Field(min_length=1, max_length=8_000_000, examples=[TELEMETRY])


class DiagnoseBody(TextBody):
    """Telemetry, and what it does not say itself."""

    accelerator: Name | None = Field(None, examples=["H100"])
    usd_per_h: float | None = Field(None, gt=0, le=1e4, description="Of one accelerator.")
    ttft_limit_ms: float | None = Field(None, gt=0, le=1e7)


class ForecastBody(TextBody):
    """Demand of the past, and how far to look ahead."""

    metric: Name | None = None
    horizon_h: float = Field(24, gt=0, le=24 * 366)
    devices: Count | None = None
    capacity: float | None = Field(None, gt=0, le=1e12)
    growth_frac_per_month: float | None = Field(None, ge=-0.9, le=10)


class ReplanBody(PlanFileBody, TextBody):
    """A plan, and telemetry of what happened since."""

    workload: Name | None = None
    tolerance_frac: float = Field(0.2, ge=0, le=10)


class CalibrateBody(TextBody):
    """Own benchmark runs (CSV or JSON), and columns that the file leaves out."""

    text: str = Field(min_length=1, max_length=8_000_000, examples=["model,accelerator,…"])
    given: dict[Name, Name] = Field({}, max_length=30, examples=[{"accelerator": "H100"}])


class ValidateBody(Body):
    """Measured rows (CSV); left out: the package's own."""

    text: str | None = Field(None, min_length=1, max_length=8_000_000)
    kind: Name = Field("llm_inference", examples=["llm_inference", "llm_training"])


class SystemBody(Body):
    """A described system."""

    system: dict[str, Any] = Field(description="The keys of a system file.")
    changes: list[Words] = Field([], max_length=50, description="key=value, set before reading.")


class WhatIfBody(PlanBody):
    """A scenario, and what is changed in it."""

    what_if: list[Words] = Field(
        min_length=1, max_length=50, examples=[["workloads[0].demand.users=12000"]]
    )


class CatalogBody(Body):
    """What the catalog is asked for: a kind of facts, or everything about one item."""

    what: Name = Field("accelerators", examples=["accelerators", "models", "offers", "sources"])
    item: Name | None = Field(None, examples=["H100"])
    accelerator: Name | None = None
    cloud: Name | None = None
    region: Name | None = None


SHOP = {
    "version": 1,
    "name": "shop",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "demand": {"requests_per_s": 4},
            "request": {"input_tokens": 500, "output_tokens": 100},
            "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 60},
        }
    ],
    "policy": {"accelerators": {"allowed": ["L40S"]}},
}
SERVED = {"model": "Llama-3.1-8B", "on": "H100", "concurrency": 16}
PLAN = {"kind": "gpuplan-plan", "…": "the result of /v1/plan"}
# A question to each verb, as the description shows it.
EXAMPLES: dict[str, dict[str, Any]] = {
    "plan": {"scenario": SHOP, "samples": 0},
    "what-if": {
        "scenario": SHOP,
        "samples": 0,
        "what_if": ["workloads[0].demand.requests_per_s=40"],
    },
    "diff": {"plan": PLAN, "other": PLAN},
    "render": {"plan": PLAN, "to": "kubernetes"},
    **{verb: {"plan": PLAN} for verb in ("explain", "verify", "report", "design", "probe")},
    "replan": {"plan": PLAN, "text": "vllm:request_success_total …"},
    "check": {"system": {"version": 1, "…": "the keys of a system file"}},
    "fit": {"model": "Llama-3.1-8B", "on": "H100", "context_tokens": 8192},
    "fit-training": {"model": "Llama-3.1-8B", "on": "8xH100", "task": "lora"},
    "predict": SERVED,
    "roofline": SERVED,
    "predict-table": {"text": "model,accelerator,concurrency\nLlama-3.1-8B,H100,16\n"},
    "predict-training": {"model": "Llama-3.1-8B", "on": "H100", "devices": 8},
    "predict-network": {"network": "resnet50", "on": "A100", "batch": 64},
    "scale": {"model": "Llama-3.1-8B", "on": "H100", "counts": [8, 16, 32]},
    "simulate": {"model": "Llama-3.1-8B", "on": "H100", "requests_per_s": 2, "duration_s": 60},
    "trace": {"text": "arrival_s,input_tokens,output_tokens\n0,512,80\n1.5,300,120\n4,700,60\n"},
    "diagnose": {"text": TELEMETRY},
    "forecast": {"text": TELEMETRY, "horizon_h": 24},
    "validate": {"kind": "llm_inference"},
    "calibrate": {"text": "model,accelerator,…", "given": {"engine": "vllm"}},
    "catalog": {"item": "H100"},
}
