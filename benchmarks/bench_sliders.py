"""A hand on every slider of five plans: seconds of each answer in a warm process.

    python benchmarks/bench_sliders.py [--moves 20] [--plans 5]

What is timed is the work of the process that the server keeps for sliders: the plan pinned to its
fleet, its sheet and its document; the page around it takes milliseconds.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from gpuplan.server.rest.verbs import answer
from gpuplan.server.web.state import sliders, state_of

PLANS = (
    "Llama-3.3-70B chat for 6000 users on H100",
    "Qwen3-8B, 20 req/s, 1500 input tokens, 200 output tokens",
    "DeepSeek-V3, 4 req/s chat on H200",
    "serve Qwen3-32B for 200 concurrent coding agents with 12k context",
    "whisper large-v3, 10k hours/day",
)
WARM = 2  # moves of a plan that warm up what its first answer did not


def p95(spans):
    return statistics.quantiles(spans, n=20)[-1] if len(spans) > 1 else spans[0]


def pinned(words):
    """The first answer of a plan: its pin, and what its sliders move."""
    state = state_of([("words", words)])
    document = answer("plan+sheet", state.body())["document"]
    row = next((row for row in document["comparison"] if row["is_chosen"]), None)
    plan = document["plan"]
    usd, kw = plan["cost_usd_per_month"]["value"], (plan["power_w"] or {"value": 0})["value"] / 1e3
    found = sliders(state, document["provenance"]["scenario"], usd=usd, kw=kw)
    return f"{row['accelerator']},{row['precision']}" if row else "", found


def moved(words, pin, slider, n):
    """Wall and CPU seconds of so many positions of one slider, none of them asked before."""
    spans = []
    for move in range(n):
        middle = slider.value or 0.6 * slider.high
        value = middle * (0.85 + 0.3 * (move + 0.37) / n)
        asked = [("words", words), (slider.key, f"{value:.6g}"), ("pin", pin)]
        wall, cpu = time.perf_counter(), time.process_time()
        answer("plan+quick", state_of(asked).body())
        spans.append((time.perf_counter() - wall, time.process_time() - cpu))
    return spans


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=20)
    parser.add_argument("--plans", type=int, default=len(PLANS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for words in PLANS[: options.plans]:
        pin, found = pinned(words)
        moved(words, pin, found[0], WARM)
        for slider in found:
            spans = moved(words, pin, slider, options.moves)
            wall, cpu = (p95([each[i] for each in spans]) for i in (0, 1))
            rows.append(
                {"plan": words, "slider": slider.label, "wall_p95_s": wall, "cpu_p95_s": cpu}
            )
            print(f"{words[:44]:44} {slider.label[:28]:28} p95 {wall:5.2f} s wall {cpu:5.2f} s CPU")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))
    return 0 if all(row["cpu_p95_s"] <= 1.0 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
