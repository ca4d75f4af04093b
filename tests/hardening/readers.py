"""Every reader of text or files from outside, given bytes; and what each is mostly given."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qsl

import yaml

from gpuplan.calibration.runs.detect import read_runs
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.catalog.overlay import apply_overlay
from gpuplan.catalog.update.skypilot import parse as parse_prices
from gpuplan.cli.sweep import cases_of, read_sweep
from gpuplan.csv_rows import csv_rows
from gpuplan.inputs.cluster import read_cluster
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.fleet import read_fleet
from gpuplan.inputs.jobs.read import read_jobs
from gpuplan.inputs.plan_file import plan_of
from gpuplan.inputs.scenario.read import scenario_of
from gpuplan.inputs.step_times import read_step_table, step_times_in
from gpuplan.inputs.traces.read import read_trace
from gpuplan.inputs.words.read import MAX_TEXT, described_scenario
from gpuplan.observe.opencost import read_opencost
from gpuplan.observe.read import read_telemetry, read_text
from gpuplan.server.rest.access import read_tokens
from gpuplan.server.state import read_state
from gpuplan.server.web.state import state_of
from gpuplan.studies.naming import lexicon
from hardening.spoiled import FILES

ROOT = Path(__file__).resolve().parents[2]
MAX_SEED_BYTES = 1500  # the first lines: what is later in a file is more of the same
N_CASES = 20
WORDS = lexicon()
Reader = Callable[[bytes, Path, str], object]
Seeds = list[tuple[str, bytes]]


def _of_file(read: Callable[[Path], object], ending: str = "") -> Reader:
    """The reader of a path, given bytes."""

    def reader(data: bytes, folder: Path, name: str) -> object:
        path = folder / f"input{ending or Path(name).suffix or '.csv'}"
        path.write_bytes(data)
        return read(path)

    return reader


def _of_text(read: Callable[[str, str], object]) -> Reader:
    """The reader of a text, given bytes."""
    return lambda data, _, name: read(data.decode("utf-8", "replace"), name)


def _overlay(text: str, _: str) -> object:
    return apply_overlay(read_catalog(), read_yaml_text(text, name="fuzz").data, overlay="fuzz")


def _sweep(path: Path) -> object:
    return list(islice(cases_of(read_sweep(path)), N_CASES))


def _address(text: str, _: str) -> object:
    state = state_of(parse_qsl(text, keep_blank_values=True))
    return state.address(), state.body()


READERS: dict[str, Reader] = {
    "telemetry": _of_file(read_telemetry),
    "trace": _of_file(read_trace),
    "pasted text": _of_text(lambda text, name: read_text(text, source="fuzz", name=name)),
    "plan file": _of_text(lambda text, _: plan_of(read_yaml_text(text, name="fuzz"))),
    "table": _of_text(lambda text, _: csv_rows(text, source="fuzz")),
    "yaml": _of_text(lambda text, _: read_yaml_text(text, name="fuzz")),
    "scenario": _of_text(
        lambda text, _: scenario_of(read_yaml_text(text, name="fuzz"), folder=None)
    ),
    "overlay": _of_text(_overlay),
    "words": _of_text(lambda text, _: described_scenario(text[: MAX_TEXT + 1], {}, WORDS)),
    "model": _of_file(lambda path: find_model(str(path)), ".json"),
    "model name": _of_text(lambda text, _: find_model(text[:100].replace("/", "-").strip(".~"))),
    "cluster": _of_file(read_cluster, ".yaml"),
    "fleet": _of_file(read_fleet, ".yaml"),
    "jobs": _of_file(read_jobs),
    "step table": _of_file(read_step_table, ".csv"),
    "step formula": _of_text(lambda text, _: step_times_in(text)),
    "runs": lambda data, _, name: read_runs(data, name),
    "sweep": _of_file(_sweep, ".yaml"),
    "costs": _of_file(read_opencost, ".json"),
    "prices": _of_text(lambda text, _: parse_prices("aws", text)),
    "tokens": _of_file(read_tokens, ".txt"),
    "watch state": _of_file(read_state, ".json"),
    "page address": _of_text(_address),
}
# What a reader is mostly given: names of seeds that are of its kind.
OWN = {
    "words": ("words",),
    "model name": ("words",),
    "model": ("config.json",),
    "scenario": ("scenario", ".yaml"),
    "yaml": (".yaml",),
    "overlay": ("overlay",),
    "plan file": (".yaml",),
    "cluster": ("teams.yaml", "night.yaml"),
    "fleet": ("fleet",),
    "jobs": ("teams.csv", "night.csv"),
    "runs": ("runs",),
    "step table": ("steps",),
    "step formula": ("formula",),
    "sweep": ("sweep",),
    "costs": ("costs",),
    "prices": ("prices",),
    "tokens": ("tokens",),
    "watch state": ("state",),
    "page address": ("address",),
}
MADE: Seeds = [
    ("tokens", b"# who may ask\nanna 3f9c\nben 77aa\n"),
    ("state.json", b'{"version": 1, "points": [[1760000000.0, 12.5, "requests"]]}'),
    ("address", b"words=Llama-3.1-8B+chat&workloads[0].demand.users=50&power_kw=12&pin=h100,fp8"),
    ("address", b"scenario=workloads:%0A+-+name:+a&policy.purchases=spot&what_if=budget.x%3D1"),
    ("steps.csv", b"tokens,step_ms,context_tokens,prefill_pairs\n512,20,0,900\n8,10,900,0\n"),
    ("formula", b"step_s=0.008,token_s=2e-5,context_s=4e-8,pair_s=1e-9"),
    (
        "prices.csv",
        b"InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region\n"
        b"p5.48xlarge,H100,8,192,2048,98.3,,us-east-1\n",
    ),
    (
        "costs.json",
        b'{"code":200,"data":[{"team-a":{"name":"team-a","gpuCost":12.5,"totalCost":20,'
        b'"window":{"start":"2026-01-01T00:00:00Z","end":"2026-01-02T00:00:00Z"}}}]}',
    ),
    ("overlay.yaml", b"accelerators:\n  h100-sxm:\n    memory_gb: 81\n    source: our own\n"),
    (
        "sweep.yaml",
        b"verb: simulate\noptions: {model: Llama-3.1-8B, on: H100}\n"
        b"axes: {rate: [1, 2], seed: 0..9}\ncolumns: [ttft_s.p95]\n",
    ),
]


def seeds() -> Seeds:
    """Sound and spoiled inputs to begin with: made anew, and those kept for what they do."""
    found = [(name, make()[:MAX_SEED_BYTES]) for name, make in FILES.items()] + MADE
    questions = ROOT / "examples" / "questions.yaml"
    files = sorted((ROOT / "examples").rglob("*"))
    shipped = [p for p in files if p.suffix in (".yaml", ".csv", ".json", ".jsonl")]
    for path in shipped:
        if path != questions:
            found.append((path.name, path.read_bytes()[:MAX_SEED_BYTES]))
    for each in yaml.safe_load(questions.read_text(encoding="utf-8"))["questions"]:
        found.append(("words", each["question"].encode()))
        if "scenario" in each:
            found.append(("scenario.yaml", yaml.safe_dump(each["scenario"]).encode()))
    return found


def kept() -> Iterator[tuple[str, str, bytes]]:
    """Reader, name and bytes of inputs that earlier runs kept, one for each kind of refusal."""
    for path in sorted((Path(__file__).parent / "corpus").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, text = line.partition("\t")
            data = text.encode().decode("unicode_escape").encode("latin-1")
            yield path.stem.replace("-", " "), name, data
