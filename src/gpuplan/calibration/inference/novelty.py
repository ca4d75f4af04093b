"""How new a setup is to the fit: not at all, its model, its version, its engine or hardware."""

from collections.abc import Mapping

from gpuplan.calibration.inference.eras import version_pair
from gpuplan.domain.calibration.constants import Labels

# Sizes of one design under several names: held out together, or a fold would know the answer.
FAMILIES = (
    ("llama-2-7b", "llama-7b"),
    ("llama-7b", "llama-7b"),
    ("llama-2-70b", "llama-70b"),
    ("codellama-70b", "llama-70b"),
    ("llama-3.1-70b", "llama-70b"),
    ("llama-3-70b", "llama-70b"),
    ("llama-3.3-70b", "llama-70b"),
    ("qwen2-72b", "llama-70b"),
    ("qwen2.5-vl-72b", "llama-70b"),
    ("llama-3.1-8b", "llama-8b"),
    ("llama-3-8b", "llama-8b"),
    ("llava-next-8b", "llama-8b"),
    ("deepseek", "deepseek"),
    ("kimi", "kimi"),
    ("gpt-oss", "gpt-oss"),
    ("235b-a22b", "qwen3-235b"),
    ("30b-a3b", "qwen3-30b"),
    ("qwen3-32b", "qwen3-32b"),
    ("qwen3-vl-32b", "qwen3-32b"),
    ("qwen3-8b", "qwen3-8b"),
    ("qwen3-vl-8b", "qwen3-8b"),
    ("mistral-7b", "mistral-7b"),
    ("mixtral-8x7b", "mixtral-8x7b"),
    ("llama-4", "llama-4"),
    ("gemma", "gemma"),
    ("minimax", "minimax"),
    ("bloom", "bloom"),
)


def model_family(name: str) -> str:
    """Models that must not stand on both sides of a split."""
    low = name.lower()
    return next((family for part, family in FAMILIES if part in low), low.rpartition("/")[2])


def hardware_label(labels: Labels) -> str:
    """Chip family with the precision and the engine that run on it."""
    return f"{labels['family']} {labels['precision']} {labels['engine']}"


def version_label(engine: str, version: str) -> str:
    """Engine with major and minor; engines without a version stand alone."""
    pair = version_pair(engine, version)
    return engine if pair is None else f"{engine}-{pair[0]}.{pair[1]}"


def novelty_labels(labels: Labels, *, model: str, version: str) -> dict[str, str]:
    """What may be new to a fit, by kind: the model, the engine, the hardware and their pair."""
    family, hardware = model_family(model), hardware_label(labels)
    return {
        "model": family,
        "era": labels["era"],
        "version": version_label(labels["engine"], version),
        "hardware": hardware,
        "pair": f"{family} on {hardware}",
    }


def unknown(
    known: Mapping[str, frozenset[str]], labels: Labels, *, model: str, version: str
) -> tuple[str, ...]:
    """What of a setup no row of the fit had, in words."""
    return tuple(
        f"{kind} {label}"
        for kind, label in novelty_labels(labels, model=model, version=version).items()
        if label not in known.get(kind, ())
    )


def novelty(missing: tuple[str, ...]) -> str:
    """The kind of split whose residuals speak for this setup."""
    kinds = {item.split(" ")[0] for item in missing}
    if kinds & {"era", "hardware"}:
        return "source"  # a held-out publication takes its engine and its hardware with it
    if "version" in kinds:
        return "version"
    return "model" if kinds & {"model", "pair"} else "row"
