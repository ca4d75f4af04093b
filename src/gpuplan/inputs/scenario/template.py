"""Commented scenarios to begin with; each is valid as written."""

import difflib

from gpuplan.errors import InputError, one

_HEAD = """\
# Scenario for gpuplan. Every number has its unit in its key; fractions go from 0 to 1.
# A number that you do not know exactly may be written {low: 1, mid: 2, high: 3}.
# What you leave out is assumed, and every assumption is shown with the key that changes it.
# All keys: docs/reference/scenario.md
version: 1
"""

_CHAT = """\
name: chat for 6000 users

workloads:
  - name: chat
    kind: online_inference            # someone waits for the answer
    model: meta-llama/Llama-3.3-70B-Instruct   # a name, a folder, or a config.json
    precision: fp8                    # allowed weight precisions; below 16 bits is your call
    demand:
      users: 6000
      active_frac: 0.2                # of the users, in the busiest hour
      requests_per_user_per_h: 10
      # in place of users: requests_per_s, requests_per_day, concurrent_requests, trace …
      peak_to_mean: 3                 # how much higher the peak is than the mean
    request:
      input_tokens: {p50: 1500, p95: 6000}   # or one number
      output_tokens: {p50: 250, p95: 900}
      prefix_hit_frac: 0.3            # of the input that is in the prefix cache
      turns: 4
    slo:
      ttft_p95_ms: 2000               # time to first token
      tpot_p95_ms: 40                 # time per output token after the first
      availability_frac: 0.999
"""

_EMBEDDINGS = """\
name: embeddings of documents

workloads:
  - name: embeddings
    kind: online_inference
    model: sentence-transformers/all-MiniLM-L6-v2
    demand:
      requests_per_day: 200000        # one request is one document
      peak_to_mean: 10
    request:
      input_tokens: 256
      output_tokens: 0                # an embedding makes no tokens
    slo:
      e2e_p95_s: 0.2

  - name: nightly backfill
    kind: batch_inference             # only has to be done in time
    model: sentence-transformers/all-MiniLM-L6-v2
    batch:
      docs_per_day: 2.0e6
      deadline_h: 12
    request:
      input_tokens: 256
      output_tokens: 0
"""

_TRAINING = """\
name: pretraining in 45 days

workloads:
  - name: base model
    kind: pretraining
    model: {params_b: 100}            # billions of parameters, or a name
    precision: bf16
    training:
      tokens: 2.0e12
      deadline_days: 45
      sequence_tokens: 8192
      global_batch_tokens: 16.0e6
      mfu_frac: {low: 0.35, mid: 0.40, high: 0.45}   # leave it out to have it estimated
      accelerator_mtbf_h: 50000       # of one accelerator, host and links included
      checkpoint:
        size_tb: 1.4
        write_gb_per_s: 20
    # capacity:                       # what you know on certain hardware
    #   - {accelerator: tpu-v5p, mfu_frac: 0.5}
"""

_FINETUNE = """\
name: fine-tuning for support answers

workloads:
  - name: support adapter
    kind: finetuning
    model: meta-llama/Llama-3.1-8B-Instruct
    precision: bf16
    training:
      method: lora                    # full, lora or qlora
      lora_rank: 16
      samples: 50000
      epochs: 3
      sequence_tokens: 2048
      deadline_days: 1
    data_path:                        # leave it out if the data is small
      sample_kb: 8
      storage: {kind: local_nvme}
"""

_GROWTH = """
growth:
  per_month_frac: {low: 0.02, mid: 0.05, high: 0.10}
  lead_time_weeks: 16                 # from order to service
"""

_SITE = """
# Your own place; leave it out if you only rent.
site:
  region: de
  power_kw: 120
  racks: 4
  rack:
    units_u: 42
    circuit: {volts: 400, amps: 32, phases: 3, feeds: A+B}   # A and B are not added
  cooling: air
  pue: 1.4
  electricity_usd_per_kwh: {low: 0.10, mid: 0.14, high: 0.25}
"""

_TERMS = """
budget:
  horizon_months: 36
  # usd_per_month: 60000
  # capex_usd: 2000000

policy:
  # accelerators: {allowed: [H100, L40S, MI300X]}
  # clouds: {forbidden: [example-cloud]}
  spot_allowed: false
  survive: node                       # none, gpu, replica, node, rack or zone
  # max_accelerators: 64

# prices:                             # yours in place of the catalog's
#   offers:
#     - {accelerator: H100, usd_per_accelerator_h: 2.95, accelerators_per_node: 8}

objective: cost                       # cost, time, energy, carbon or regret
"""


def _workloads_of(template: str) -> str:
    return template.split("workloads:\n", 1)[1]


_MIXED = "name: chat by day, fine-tuning by night\n\nworkloads:\n" + "\n".join(
    _workloads_of(part) for part in (_CHAT, _FINETUNE)
)
_KINDS = {
    "chat": _CHAT + _GROWTH + _SITE + _TERMS,
    "embeddings": _EMBEDDINGS + _GROWTH + _TERMS,
    "training": _TRAINING + _SITE + _TERMS.replace("survive: node ", "survive: none "),
    "finetune": _FINETUNE + _TERMS.replace("survive: node ", "survive: none "),
    "mixed": _MIXED + _GROWTH + _SITE + _TERMS,
}
TEMPLATE_KINDS = tuple(_KINDS)


def scenario_template(kind: str = "chat") -> str:
    """A commented scenario.yaml of this kind, valid as written."""
    body = _KINDS.get(kind)
    if body is None:
        close = difflib.get_close_matches(kind, TEMPLATE_KINDS, n=1)
        guess = f"did you mean {close[0]}?" if close else f"choose {', '.join(TEMPLATE_KINDS)}"
        raise one(InputError, "init", "kind", f"{kind!r} is not known", guess)
    return _HEAD + body
