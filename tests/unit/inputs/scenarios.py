"""Small scenarios that tests change one key of."""

import copy
from enum import Enum
from typing import Any

CHAT: dict[str, Any] = {
    "name": "chat",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.3-70B-Instruct",
            "precision": "fp8",
            "demand": {"users": 6000, "active_frac": 0.2, "requests_per_user_per_h": 10},
            "request": {"input_tokens": 2200, "output_tokens": 350},
            "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 40},
        },
        {
            "name": "tune",
            "kind": "finetuning",
            "model": "meta-llama/Llama-3.1-8B",
            "training": {"method": "lora", "tokens": 1e9},
        },
        {
            "name": "night",
            "kind": "batch_inference",
            "model": "Qwen/Qwen3-8B",
            "batch": {"docs_per_day": 86400, "deadline_h": 24},
            "request": {"input_tokens": 500, "output_tokens": 10},
        },
        {"name": "other", "kind": "generic", "work": {"accelerators": 4}},
        {
            "name": "base",
            "kind": "pretraining",
            "model": {"params_b": 100},
            "training": {"tokens": 2e12, "deadline_days": 45},
        },
    ],
}


class Mark(Enum):
    """A change that takes the key away; an enum, so that test names do not hold addresses."""

    DELETE = "delete"


DELETE = Mark.DELETE


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The scenario with values set at dotted paths; list entries are numbers."""
    data = copy.deepcopy(CHAT)
    for path, value in changes.items():
        *parents, last = [int(p) if p.isdigit() else p for p in path.split(".")]
        node: Any = data
        for part in parents:
            node = node[part] if isinstance(part, int) else node.setdefault(part, {})
        if value is DELETE:
            del node[last]
        else:
            node[last] = value
    return data
