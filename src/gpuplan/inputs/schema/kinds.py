"""The file format of kinds of work that are read as one or two of the plain ones."""

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.inputs.schema.keys import Positive, Strict, key, optional
from gpuplan.inputs.schema.workload import (
    PROFILE,
    DemandSpec,
    ModelSpec,
    PlainWorkload,
    Profile,
    TrainingSpec,
    WorkloadSpec,
)


class RolloutSpec(Strict):
    """Generation of the samples that reinforcement learning trains on."""

    input_tokens: Positive = key("Mean prompt length", example=500)
    output_tokens: Positive = key("Mean length of one generated sample", example=4000)
    samples_per_prompt: Positive = key(
        "Samples generated for one prompt (the group of GRPO)",
        "samples",
        default=8.0,
        why="a usual group size; samples of one prompt share its prefill",
    )


class ReinforcementLearningSpec(WorkloadSpec):
    """Reinforcement learning: rollouts by an engine beside training on what they generate."""

    kind: Literal["reinforcement_learning"] = key("Kind of workload")
    model: ModelSpec = key("Policy model", example="Qwen/Qwen3-8B")
    training: TrainingSpec = key("Training of the policy; tokens are those of all rollouts")
    rollout: RolloutSpec = key("Generation of samples")


class SpeechSynthesisSpec(WorkloadSpec):
    """Text to speech by a language model of audio tokens."""

    kind: Literal["text_to_speech"] = key("Kind of workload")
    model: ModelSpec = key("Model that writes audio tokens", example="meta-llama/Llama-3.2-3B")
    demand: DemandSpec = key("Request load over time")
    audio_s: Positive = key("Mean length of the audio of one request", example=10)
    text_tokens: Positive = key(
        "Mean length of the text of one request",
        "tokens",
        default=50.0,
        why="about 2.5 words and 3.3 tokens are spoken a second, in 15 seconds",
    )
    audio_tokens_per_s: Positive = key(
        "Audio tokens of one second of audio",
        "tokens",
        default=83.0,
        why="seven tokens for each of 12 frames of the SNAC codec at 24 kHz",
    )
    ttft_p95_ms: Positive | None = optional("Target of the time to the first audio token, p95")


class RecommenderWorkSpec(Strict):
    """A recommender such as DLRM: embedding lookups and dense layers."""

    samples_per_s: Positive = key("Ranked items (samples) at the peak", example=1000000)
    lookups_per_sample: Positive = key("Embedding rows read for one sample", "rows", example=800)
    embedding_dim: Positive = key("Elements of one embedding row", "elements", example=128)
    dense_gflop_per_sample: Positive = key(
        "Compute of the dense layers for one sample", "GFLOP", example=0.01
    )
    element_bytes: Positive = key(
        "Bytes of one element of an embedding",
        "bytes",
        default=2.0,
        why="tables are usually stored in 16 bits",
    )
    hourly_profile: Profile | None = optional(PROFILE)


class RecommenderSpec(WorkloadSpec):
    """Recommender inference (DLRM): bound by memory traffic of embeddings, or by dense layers."""

    kind: Literal["recommender"] = key("Kind of workload")
    model: ModelSpec | None = optional("Model, where there is one")
    work: RecommenderWorkSpec = key("Amount of work", to="")


class ClassicalWorkSpec(Strict):
    """Classical machine learning: trees, linear models, clustering."""

    samples_per_s: Positive = key("Rows at the peak", example=200000)
    operations_per_sample: Positive = key(
        "Comparisons and multiplications of one row: trees x depth, or features x classes",
        "operations",
        example=50000,
    )
    sample_kb: Positive = key("Bytes of one row that are read", "kB (1e3 bytes)", example=4)
    training: bool = key(
        "Whether the work is training rather than inference",
        default=False,
        why="inference unless training is named",
    )


class ClassicalSpec(WorkloadSpec):
    """Classical machine learning, on CPUs or accelerators, whichever is cheaper."""

    kind: Literal["classical_ml"] = key("Kind of workload")
    model: ModelSpec | None = optional("Model, where there is one")
    work: ClassicalWorkSpec = key("Amount of work", to="")


# Kinds that are read as one or two of the plain ones.
MadeWorkload = ReinforcementLearningSpec | SpeechSynthesisSpec | RecommenderSpec | ClassicalSpec
AnyWorkload = Annotated[PlainWorkload | MadeWorkload, Field(discriminator="kind")]


def plain_of(work: AnyWorkload) -> PlainWorkload:
    """The workload of a scenario that was read as plain kinds alone."""
    assert not isinstance(work, MadeWorkload), work.kind
    return work
