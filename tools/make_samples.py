"""Write the sample files of examples/data, which the README's commands use.

requests.csv    a request trace, drawn by gpuplan's own generator
telemetry.csv   ten days of four GPUs, as DCGM names its fields
service.json    an hour of the service of examples/chat.yaml, as Prometheus answers
my_runs.csv     measured rows in gpuplan's columns, taken from the package's own table
config.json     the configuration of a dense decoder of 3 billion parameters
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

from make_telemetry import device  # noqa: E402

from gpuplan import api  # noqa: E402
from gpuplan.domain.scenario.demand import TokenLengths  # noqa: E402
from gpuplan.domain.traffic.drawn import DrawnLoad  # noqa: E402
from gpuplan.units import DAY, HOUR, MINUTE  # noqa: E402

FOLDER = ROOT / "examples" / "data"
MEASURED = ROOT / "src/gpuplan/calibration/data/measured/llm_inference.csv"
BEGIN_S = 1_790_000_000 // 86400 * 86400  # a midnight
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 28,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
SOURCE, MODEL, ACCELERATOR = "inferencex/nvidia closed loop", "meta-llama/Llama-3.1-70B", "H100 SXM"
N_REPLICAS, REQUESTS_PER_S = 3, 6000 * 0.2 * 10 / HOUR  # as examples/chat.yaml has it
TTFT_S, TTFT_UPPER_S = 0.4, (0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


def main() -> None:
    """Write every file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    _write("requests.csv", requests())
    _write("telemetry.csv", telemetry())
    _write("my_runs.csv", runs())
    for name, document in (("config.json", CONFIG), ("service.json", service())):
        (FOLDER / name).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        print(f"examples/data/{name}")


def requests() -> list[list[object]]:
    """Five minutes of chat at 3 requests per second."""
    load = DrawnLoad(
        requests_per_s=3.0,
        duration_s=5 * MINUTE,
        burstiness_ratio=1.5,
        law="gamma",
        input=TokenLengths(shape="lognormal", mean_tokens=900, p95_tokens=2600),
        output=TokenLengths(shape="lognormal", mean_tokens=220, p95_tokens=600),
    )
    drawn = api.drawn_load(load, seed=7).requests
    rows = zip(drawn.arrive_s, drawn.input_tokens, drawn.output_tokens, strict=True)
    head: list[object] = ["arrival_s", "input_tokens", "output_tokens"]
    return [head, *([round(float(at_s), 3), int(n_in), int(n_out)] for at_s, n_in, n_out in rows)]


def telemetry() -> list[list[object]]:
    """Hourly samples of one server's four GPUs; the first is idle."""
    random, at_s = np.random.default_rng(3), BEGIN_S + np.arange(0, 10 * DAY, HOUR)
    columns = [device(random, at_s, k) for k in range(4)]
    filled = [{n: np.broadcast_to(v, len(at_s)) for n, v in made.items()} for made in columns]
    rows = [[_plain(v[i]) for v in made.values()] for i in range(len(at_s)) for made in filled]
    return [list(columns[0]), *rows]


def runs() -> list[list[object]]:
    """Rows of one model on one accelerator, as somebody would measure them."""
    with MEASURED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = (SOURCE, MODEL, ACCELERATOR)
    chosen = [row for row in rows if (row["source"], row["model"], row["accelerator"]) == wanted]
    chosen = chosen[:: len(chosen) // 8][:8]
    return [list(chosen[0]), *(list(row.values()) for row in chosen)]


def service() -> dict[str, object]:
    """Counters of the replicas, one sample a minute."""
    at_s = BEGIN_S + 12 * HOUR + np.arange(0, HOUR, MINUTE)
    rate = REQUESTS_PER_S / N_REPLICAS
    bucket = "vllm:time_to_first_token_seconds_bucket"
    result = []
    for k in range(N_REPLICAS):
        labels = {"model_name": "chat", "instance": f"replica-{k}:8000"}
        result.append(_counter("vllm:request_success_total", labels, at_s, rate))
        for upper_s in TTFT_UPPER_S:
            seen = rate if upper_s >= TTFT_S else 0.0
            result.append(_counter(bucket, {**labels, "le": str(upper_s)}, at_s, seen))
        result.append(_counter(bucket, {**labels, "le": "+Inf"}, at_s, rate))
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def _counter(
    name: str, labels: dict[str, str], at_s: np.ndarray, per_s: float
) -> dict[str, object]:
    values = [[int(at), f"{per_s * (at - at_s[0]):.0f}"] for at in at_s]
    return {"metric": {"__name__": name, **labels}, "values": values}


def _plain(value: object) -> object:
    number = value.item() if isinstance(value, np.generic) else value
    return round(number, 3) if isinstance(number, float) else number


def _write(name: str, rows: list[list[object]]) -> None:
    with (FOLDER / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    print(f"examples/data/{name}: {len(rows) - 1} rows")


if __name__ == "__main__":
    main()
