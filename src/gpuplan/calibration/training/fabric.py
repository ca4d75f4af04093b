"""The network between nodes: what a table or a person states of it in, rate and kind out.

Where nothing is stated, the usual server of that accelerator is assumed.
"""

import re

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.units import GB, GBIT

# One NIC per accelerator in the makers' reference servers: 200, 400 and 800 Gbit/s.
USUAL_BYTES_PER_S = (
    (r"tpu", 12.5 * GB),
    (r"v100|mi250|gaudi2|rtx|l40|l4$|a10$|t4", 6.25 * GB),
    (r"a100", 25.0 * GB),
    (r"b300|gb300", 100.0 * GB),
)
NEWER_BYTES_PER_S = 50.0 * GB
SITES = {"jean zay": 6.25 * GB}  # four 100 Gbit/s NICs for eight accelerators
SLOWEST_COMPUTE_GBIT = 40  # slower ones are for management
# As people write it: 400 Gb/s per GPU, 3200 Gbit/s EFA per node, 2x 25 GbE per node.
STATED_RATE = re.compile(
    r"(?:(\d+)\s*[x×*]\s*)?([\d,]+(?:\.\d+)?)\s*(G[Bb]/s|Gbit/s|Gbps|GbE)\b[\w \-]*?"
    r"\bper (gpu|accelerator|device|node|server)\b",
    re.IGNORECASE,
)
KINDS = (
    ("infiniband", r"infiniband"),
    ("efa", r"\befa"),
    ("tcp", r"\btcp"),
    ("roce", r"roce|ethernet"),
)


def nic_bytes_per_s(stated: str, accelerator: Accelerator, *, n_node: int) -> tuple[float, bool]:
    """What one accelerator can send out of its node, and whether the table states it."""
    spoken = STATED_RATE.search(stated)
    if spoken:
        return _spoken_bytes_per_s(spoken, n_node), True
    text = stated.lower()
    for site, rate in SITES.items():
        if site in text:
            return rate, True
    whole = re.search(r"(\d+)\s*gbps\s*node", text)
    if whole:
        return int(whole[1]) * GBIT / n_node, True
    found = re.findall(
        r"(\d+)\s*x\s*[a-z0-9\- ]*?(\d+)\s*gb(?:/s|ps|it|e| roce| ib)", _compute_part(text)
    )
    rates = [int(n) * int(rate) * GBIT / n_node for n, rate in found]
    usable = [rate for rate in rates if rate * n_node >= SLOWEST_COMPUTE_GBIT * GBIT]
    if usable:
        return min(max(usable), 100 * GB), True
    return _usual(accelerator), False


def _spoken_bytes_per_s(found: re.Match[str], n_node: int) -> float:
    """Of one accelerator; a capital B counts bytes, everything else bits."""
    links, number, unit, whose = found.groups()
    rate = int(links or 1) * float(number.replace(",", "")) * (GB if unit == "GB/s" else GBIT)
    return rate / n_node if whose.lower() in ("node", "server") else rate


def fabric_kind(stated: str) -> str:
    """The kind of network that the text names; InfiniBand where it names none."""
    text = stated.lower()
    return next((kind for kind, words in KINDS if re.search(words, text)), "infiniband")


def names_kind(stated: str) -> bool:
    """Whether the text says what kind of network it is."""
    return any(re.search(words, stated.lower()) for _, words in KINDS)


def _compute_part(text: str) -> str:
    compute = re.search(r"compute:(.*)", text)
    return compute[1] if compute else text


def _usual(accelerator: Accelerator) -> float:
    for pattern, rate in USUAL_BYTES_PER_S:
        if re.search(pattern, str(accelerator.id)):
            return rate
    return NEWER_BYTES_PER_S
