"""How a number is stored: bytes per element, with the scales that quantized formats carry along."""

from collections.abc import Container

from gpuplan.domain.noun import dataclass

BYTES_16BIT = 2.0
SMALLEST_TRIED_BYTES = 0.499  # of a weight: formats below 4 bits are not in the evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """A storage format of weights or cache. Scales are counted; they are not free."""

    name: str
    element_bytes: float
    group_size: int | None = None  # elements that share one scale
    group_bytes: float = 0.0  # scale, and zero point where there is one
    compute: str = ""  # the peak it computes at: fp8 weights run on fp8 units
    pad_multiple: int | None = None  # columns that engines fill a shard of an expert up to

    @property
    def stored_bytes(self) -> float:
        """Bytes of one element with its share of the scales."""
        if self.group_size is None:
            return self.element_bytes
        return self.element_bytes + self.group_bytes / self.group_size

    @property
    def is_quantized(self) -> bool:
        """Below 16 bits, so that quality is the user's call."""
        return self.element_bytes < BYTES_16BIT


def _formats() -> dict[str, NumberFormat]:
    plain = [
        NumberFormat(name="fp32", element_bytes=4, compute="fp32"),
        NumberFormat(name="tf32", element_bytes=4, compute="tf32"),
        NumberFormat(name="bf16", element_bytes=2, compute="bf16"),
        NumberFormat(name="fp16", element_bytes=2, compute="fp16"),
        NumberFormat(name="fp8", element_bytes=1, compute="fp8"),
        NumberFormat(name="int8", element_bytes=1, compute="int8"),
        # Weights alone in 8 bits: widened before they are multiplied.
        NumberFormat(name="w8a16", element_bytes=1, compute="fp16"),
    ]
    grouped = [
        # DeepSeek-style 128x128 blocks with one fp32 scale each.
        NumberFormat(
            name="fp8-block", element_bytes=1, group_size=128 * 128, group_bytes=4, compute="fp8"
        ),
        # Microscaling: 32 elements share one e8m0 byte [OCP-MX-1.0].
        NumberFormat(name="mxfp8", element_bytes=1, group_size=32, group_bytes=1, compute="fp8"),
        # vLLM and SGLang hold shards of MXFP4 experts in whole pairs of groups [vLLM-mxfp4].
        NumberFormat(
            name="mxfp4",
            element_bytes=0.5,
            group_size=32,
            group_bytes=1,
            compute="fp4",
            pad_multiple=64,
        ),
        # NVFP4: 16 elements share one fp8 scale [NVFP4].
        NumberFormat(name="nvfp4", element_bytes=0.5, group_size=16, group_bytes=1, compute="fp4"),
        # AWQ and GPTQ: 128 elements share an fp16 scale and a 4-bit zero point.
        NumberFormat(
            name="int4", element_bytes=0.5, group_size=128, group_bytes=2.5, compute="fp16"
        ),
        # bitsandbytes: 64 elements share an fp32 scale; double quantization stores it in 8 bits.
        NumberFormat(name="nf4", element_bytes=0.5, group_size=64, group_bytes=4, compute="bf16"),
        NumberFormat(
            name="nf4-dq",
            element_bytes=0.5,
            group_size=64,
            group_bytes=1 + 4 / 256,
            compute="bf16",
        ),
    ]
    return {form.name: form for form in [*plain, *grouped, *_gguf_formats()]}


def _gguf_formats() -> list[NumberFormat]:
    # Bits per weight of llama.cpp's types; the K mixes are the averages its quantize tool prints
    # [llama.cpp-quantize].
    bits = {
        "q8_0": 8.5,
        "q6_k": 6.5625,
        "q5_k_m": 5.69,
        "q5_0": 5.5,
        "q5_1": 6.0,
        "q4_k_m": 4.85,
        "q4_0": 4.5,
        "q4_1": 5.0,
        "q3_k_m": 3.91,
        "q2_k": 3.35,
        "iq4_xs": 4.25,
        "iq4_nl": 4.5,
    }
    return [
        NumberFormat(name=name, element_bytes=n / 8, compute="fp16") for name, n in bits.items()
    ]


FORMATS = _formats()
SIXTEEN = ("bf16", "fp16")


def sixteen_on(name: str, peaks: Container[str]) -> str:
    """The format as a device runs it: FP16 in the place of BF16 on one that has FP16 alone."""
    has_other = "fp16" in peaks and "bf16" not in peaks
    return "fp16" if name == "bf16" and has_other else name


ALIASES = {
    "float32": "fp32",
    "float": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_e4m3": "fp8",
    "fp8-e4m3": "fp8",
    "float8": "fp8",
    "e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8-dynamic": "fp8",
    "fp8_block": "fp8-block",
    "w8a8": "int8",
    "fp4": "nvfp4",
    "awq": "int4",
    "gptq": "int4",
    "w4a16": "int4",
    "int4-awq": "int4",
    "q4": "int4",
    "nf4_dq": "nf4-dq",
    "bnb": "nf4",
}


def quality_risk(form: NumberFormat) -> str:
    """What a format risks in the quality of outputs [Kurtic2024]; empty from 16 bits on."""
    if not form.is_quantized:
        return ""
    if form.compute == "fp4":
        return "high: 4-bit weights and activations; evaluate on your own task before use"
    if form.element_bytes < 1 and form.element_bytes > SMALLEST_TRIED_BYTES:
        return "moderate: 4-bit weights lose 1 to 3 % on published tasks; evaluate yours"
    if form.element_bytes < 1:
        return "high: below 4 bits outputs degrade visibly; evaluate on your own task"
    if form.compute == "int8":
        return "moderate: 8-bit integers lose 1 to 3 % on published tasks; evaluate yours"
    return "low: 8-bit floats lose no accuracy on published tasks; spot-check yours"


def format_named(name: str) -> NumberFormat | None:
    """The format that people mean by this name, or None."""
    key = name.strip().lower()
    return FORMATS.get(ALIASES.get(key, key))
