"""Bandwidth out of the node: what a table states of the network in, bytes per second out.

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


def nic_bytes_per_s(stated: str, accelerator: Accelerator, *, n_node: int) -> tuple[float, bool]:
    """What one accelerator can send out of its node, and whether the table states it."""
    text = stated.lower()
    for site, rate in SITES.items():
        if site in text:
            return rate, True
    whole = re.search(r"(\d+)\s*gbps\s*node", text)
    if whole:
        return int(whole[1]) * GBIT / n_node, True
    per_gpu = re.search(r"(\d+)\s*gb/?s rdma per gpu", text)
    if per_gpu:
        return int(per_gpu[1]) * GBIT, True
    found = re.findall(
        r"(\d+)\s*x\s*[a-z0-9\- ]*?(\d+)\s*gb(?:/s|ps|it|e| roce| ib)", _compute_part(text)
    )
    rates = [int(n) * int(rate) * GBIT / n_node for n, rate in found]
    usable = [rate for rate in rates if rate * n_node >= SLOWEST_COMPUTE_GBIT * GBIT]
    if usable:
        return min(max(usable), 100 * GB), True
    return _usual(accelerator), False


def _compute_part(text: str) -> str:
    compute = re.search(r"compute:(.*)", text)
    return compute[1] if compute else text


def _usual(accelerator: Accelerator) -> float:
    for pattern, rate in USUAL_BYTES_PER_S:
        if re.search(pattern, str(accelerator.id)):
            return rate
    return NEWER_BYTES_PER_S
