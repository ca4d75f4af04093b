"""How families of networks differ: one line each, in constants that a configuration leaves unsaid.

Sizes always come from the configuration. `data/architectures.csv` has what modelling code fixes:
whether the feed-forward part is gated, which projections have biases, how many norms a layer has.
Checked against the parameter counts that the `transformers` library builds (tests hold them).
"""

from typing import Any, Literal, TypeVar

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.noun import dataclass

TABLE = "data/architectures.csv"
Traits = TypeVar("Traits")
Window = Literal["none", "all", "even", "fourth", "sixth", "upper", "unknown"]
QkNorm = Literal["", "head", "width", "shared-width", "heads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Traits of a decoder family."""

    is_gated: bool = True
    norm_terms: int = 1  # parameters per channel: 1 scale, 2 scale and bias, 0 none
    n_norms: int = 2  # of hidden width, per layer
    qk_norm: QkNorm = ""  # one vector per head size, per full width, or per head and size
    bias: str = ""  # always there: letters of q, k, v, o, m (feed-forward), h (head)
    flags: tuple[tuple[str, str], ...] = (("attention_bias", "qkvo"), ("mlp_bias", "m"))
    position_rows: int | None = None  # learned positions: rows beyond the context length
    window: Window = "none"  # which layers sliding_window binds when no list says so
    mixer: str = "full"  # what a plain layer mixes with
    has_router_bias: bool = False  # a correction of the router's scores is stored with the weights
    is_known: bool = True


def traits_of(part: str, kind: type[Traits]) -> dict[str, Traits]:
    """Families of this part of networks by type of model; what a line leaves out is usual."""
    return {
        row["model_type"]: kind(**dict(map(_trait, row["traits"].split())))
        for row in packaged_rows("gpuplan.catalog", TABLE)
        if row["part"] == part and not row["same_as"]
    }


def aliases_of(part: str) -> dict[str, str]:
    """Types of model that are others under another name."""
    rows = packaged_rows("gpuplan.catalog", TABLE)
    named = (row for row in rows if row["part"] == part and row["same_as"])
    return {row["model_type"]: row["same_as"] for row in named}


def _trait(text: str) -> tuple[str, Any]:
    """`is_gated=no`, `n_norms=4`, `bias=qkv`, or flags with what they bias: `mlp_bias:m`."""
    name, value = text.split("=")
    if name == "flags":
        return name, tuple(tuple(flag.split(":")) for flag in value.split("+") if flag)
    known = {"yes": True, "no": False}
    return name, int(value) if value.isdecimal() else known.get(value, value)


UNKNOWN = Family(window="unknown", is_known=False)
FAMILIES = traits_of("decoder", Family)
ALIASES = aliases_of("decoder")


def family_of(model_type: str) -> Family:
    """The family that this type of model belongs to; an unknown type reads as Llama-like."""
    return FAMILIES.get(ALIASES.get(model_type, model_type), UNKNOWN)


def canonical(model_type: str) -> str:
    """The name that this type of model is listed under."""
    return ALIASES.get(model_type, model_type)
