"""Commented scenarios to begin with; each is valid as written."""

import difflib
from importlib.resources import files

from gpuplan.errors import InputError, one

# Each kind is made of parts, which stand beside this module as YAML.
KINDS = {
    "chat": ("chat", "growth", "site", "terms"),
    "embeddings": ("embeddings", "growth", "terms"),
    "training": ("training", "site", "terms"),
    "finetune": ("finetune", "terms"),
    "mixed": ("mixed", "growth", "site", "terms"),
}
RUNS = ("training", "finetune")  # kinds that restart instead of surviving a failure
TEMPLATE_KINDS = tuple(KINDS)


def scenario_template(kind: str = "chat") -> str:
    """A commented scenario.yaml of this kind, valid as written."""
    if kind not in KINDS:
        close = difflib.get_close_matches(kind, TEMPLATE_KINDS, n=1)
        guess = f"did you mean {close[0]}?" if close else f"choose {', '.join(TEMPLATE_KINDS)}"
        raise one(InputError, "init", "kind", f"{kind!r} is not known", guess)
    text = "".join(_part(name) for name in ("head", *KINDS[kind]))
    return text.replace("survive: node ", "survive: none ") if kind in RUNS else text


def _part(name: str) -> str:
    if name == "mixed":
        works = (_part(kind).split("workloads:\n", 1)[1] for kind in ("chat", "finetune"))
        return "name: chat by day, fine-tuning by night\n\nworkloads:\n" + "\n".join(works)
    folder = files("gpuplan.inputs.scenario") / "templates"
    return (folder / f"{name}.yaml").read_text(encoding="utf-8")
