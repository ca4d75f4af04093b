"""Labels of a serving setup: what its constants may depend on."""

from collections.abc import Iterable, Mapping

from gpuplan.calibration.inference.eras import ERAS, era_of, generation_of
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.calibration.constants import AT_LIMIT, Labels
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import ServingLoad, ServingSetup
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.layers import Experts, LatentAttention, Recurrence
from gpuplan.domain.model.network import Model

NONE = "no"
MANY_USERS = 16
NEWEST = {era.engine: era.label for era in ERAS}
# --scheduler-recv-interval of a suite's scripts [InferenceX]: the first row that fits holds.
POLLING = packaged_rows("gpuplan.calibration", "data/polling.csv")
MEASURED_ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")  # each by several publications
# No server in front of the engine: nothing is tokenised, streamed or counted per request.
OFFLINE_REGIMES = ("static_batch", "max_load", "offline", "prefill")


def inference_labels(setup: ServingSetup, *, benchmark: str = "") -> dict[str, str]:
    """Label by kind; `benchmark` names a suite whose rules differ from plain serving."""
    engine = setup.engine.name
    family = family_label(setup.accelerator)
    kind = model_class(setup)
    era = era_of(engine, setup.engine.version)
    return {
        "family": family,
        "accelerator": str(setup.accelerator.id),
        "precision": precision_label(setup),
        "engine": engine,
        "era": era,
        "release": _release(era, benchmark),  # stays as it is where a new era takes its nearest
        "generation": generation_of(era),
        "mode": "offline" if setup.load.regime in OFFLINE_REGIMES else "served",
        "class": kind,
        "kind": "dense" if kind == "dense" else "experts",
        "mixer": "latent" if kind.startswith("latent") else "heads",
        "drafting": f"{engine}|{family}" if setup.is_speculative else NONE,
        "drafts": engine if setup.is_speculative else NONE,
        "spread": engine if setup.layout.dp > 1 else NONE,
        "bench": f"{benchmark}|{kind}" if benchmark == "mlperf" else NONE,
        "portable": _portable(setup) if engine == "llamacpp" else NONE,
        "attention": _attention(setup),
        "polling": _polling(setup, benchmark),
        "undated": f"{engine}|{kind}" if benchmark and not setup.engine.version else NONE,
        "link": link_label(setup.accelerator, setup.layout),
        "ranks": str(setup.layout.n_accelerators // setup.layout.pp),
        "port": NONE if setup.accelerator.vendor == "NVIDIA" else f"{era}|{family}",
    }


def _release(era: str, benchmark: str) -> str:
    """The era whose way to plan steps a server has.

    A suite asks vLLM to plan ahead before that is the default [InferenceX]; rows that NVIDIA
    published beside it say nothing and are taken alike (Assumption).
    """
    plans_ahead = benchmark == "inferencex" and era.startswith("vllm")
    return NEWEST["vllm"] if plans_ahead else era


def _attention(setup: ServingSetup) -> str:
    """Kernels of attention and what they read, where an engine was set to leave its usual ones.

    A version says so behind a plus sign: 0.15.0+flashinfer.
    """
    is_native = setup.engine.version.lower().endswith("+flashinfer")
    if not is_native or family_label(setup.accelerator) != "Blackwell":
        return NONE
    return f"flashinfer|{setup.storage.cache.name}"


def _polling(setup: ServingSetup, benchmark: str) -> str:
    """How often the server looks for new requests, where a suite sets it (data/polling.csv)."""
    if benchmark != "inferencex" or setup.engine.name != "sglang":
        return NONE
    has = (family_label(setup.accelerator), setup.model.name.lower(), precision_label(setup))
    has_many_users = (setup.load.n_sequences or 0) >= MANY_USERS
    column = "from_16_users" if has_many_users else "below_16_users"
    return next((row[column] for row in POLLING if _is_script_of(row, has)), NONE)


def _is_script_of(row: Mapping[str, str], has: tuple[str, str, str]) -> bool:
    """Whether a suite's script is that of this family, model and precision; empty is any."""
    family, model, precision = has
    named = row["model"] in model and precision.startswith(row["precision"])
    return named and row["family"] == family


def _portable(setup: ServingSetup) -> str:
    """Of llama.cpp: games' cards add up in 16 bits there, at twice the rate of 32."""
    card = "games" if "GeForce" in setup.accelerator.name else "work"
    return f"{precision_label(setup)}|{card}"


def family_label(accelerator: Accelerator) -> str:
    """Architecture, data-centre boards with a full link apart from cards without."""
    link = accelerator.scale_up
    family = accelerator.family.replace(" Ultra", "")
    if (
        "GeForce" in accelerator.name
    ):  # half the rate where sums are of 32 bits: never short of power
        return f"{family}-games"
    if link is not None and "bridge" not in link.name:
        return family
    # An Ampere with graphics memory is another chip than one with stacked memory.
    is_graphics = family == "Ampere" and accelerator.memory.kind.startswith("GDDR")
    return f"{family}-gddr" if is_graphics else f"{family}-pcie"


def link_label(accelerator: Accelerator, layout: ServingLayout) -> str:
    """What joins the ranks of the layout."""
    n_ranks, link = layout.n_accelerators // layout.pp, accelerator.scale_up
    if n_ranks == 1:
        return "none"
    return link.name if link is not None and n_ranks <= link.n_domain else "pcie"


def precision_label(setup: ServingSetup) -> str:
    """Storage format and the units that compute it."""
    form = setup.storage.quantized
    if form is None:
        return "16"
    has_units = form.compute in setup.accelerator.peak_flop_per_s
    return f"{form.name.split('-')[0]}/{form.compute if has_units else '16'}"


def model_class(setup: ServingSetup) -> str:
    """Kind of network, as far as kernels differ."""
    form = setup.storage.quantized
    suffix = "-mx" if form is not None and form.name == "mxfp4" else ""
    return _network_class(setup.model) + suffix


def _network_class(model: Model) -> str:
    mixers = [group.mixer for group in model.main.groups]
    if any(isinstance(mixer, Recurrence) for mixer in mixers):
        return "hybrid"
    if any(isinstance(mixer, LatentAttention) for mixer in mixers):
        return "latent"
    has_experts = any(isinstance(g.feed_forward, Experts) for g in model.main.groups)
    return "moe" if has_experts else "dense"


def nearest_era(era: str, known: Iterable[str]) -> str:
    """The era itself if known, else the nearest known one of the same engine."""
    labels = set(known)
    if era in labels:
        return era
    engine = next((e.engine for e in ERAS if e.label == era), "")
    order = [e.label for e in ERAS if e.engine == engine]
    near = [label for label in order if label in labels]
    if not near:
        return era
    return min(near, key=lambda label: abs(order.index(label) - order.index(era)))


def range_kind(labels: Labels) -> str:
    """What an error depends on beside its regime, the widest group first.

    The kind of network, whether the engine runs where it was written for or is a port, and which
    of the widely measured engines it is.
    """
    home = "cuda" if labels["port"] == NONE else "port"
    engine = labels["engine"] if labels["engine"] in MEASURED_ENGINES else "other"
    return f"{labels['kind']}|{home}|{engine}"


def range_regime(labels: Labels, load: ServingLoad) -> str:
    """The regime that a range is learned in.

    Requests at a rate run the steps of closed loops, and what queues is simulated on top;
    submissions at a rate run as near to their limits as they can. A burst fills and drains.
    """
    if load.regime == "poisson":
        return "fixed_concurrency" if labels["bench"] == NONE else AT_LIMIT
    return "burst" if load.regime == "max_load" and load.n_requests else load.regime
