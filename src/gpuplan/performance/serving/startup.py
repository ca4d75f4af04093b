"""Start-up time by phase, in: what a replica starts with; out: seconds of each phase."""

from gpuplan.domain.inference.startup import StartConditions, StartConstants, StartPhases
from gpuplan.errors import InputError, one

# A registry or a hub gives about half of the line to one node (Assumption).
NETWORK_FRAC = 0.5
# Share of a disk's rate that large sequential reads reach [measured:runai-streamer].
STORAGE_FRAC = 0.95


def startup_phases(start: StartConditions, constants: StartConstants) -> StartPhases:
    """Phases follow one another; what is cached or present takes no time."""
    layers = start.n_layers
    return StartPhases(
        image_pull_s=_fetch_s(start.image_bytes, start, "image_bytes"),
        download_s=_fetch_s(start.download_bytes, start, "download_bytes"),
        bootstrap_s=constants.bootstrap_s,
        load_s=load_time_s(start, constants),
        compile_s=0.0 if start.is_eager else layers * _compile_s_per_layer(start, constants),
        profile_s=layers * constants.profile_s_per_layer,
        capture_s=0.0 if start.is_eager else _capture_s(start, constants),
    )


def load_time_s(start: StartConditions, constants: StartConstants) -> float:
    """Weights into the accelerators: the slower of the storage and of the streams that read it."""
    if start.n_readers < 1:
        found = f"got {start.n_readers}"
        raise one(InputError, "startup", "n_readers", found, "use 1 or more streams")
    rate = start.n_readers * constants.reader_bytes_per_s[start.source]
    if start.storage_bytes_per_s is not None:
        rate = min(rate, STORAGE_FRAC * start.storage_bytes_per_s)
    return start.weight_bytes / rate


def _compile_s_per_layer(start: StartConditions, constants: StartConstants) -> float:
    if start.is_compile_cached:
        return constants.trace_s_per_layer + constants.cached_compile_s_per_layer
    return constants.trace_s_per_layer + constants.compile_s_per_layer


def _capture_s(start: StartConditions, constants: StartConstants) -> float:
    each_s = (
        constants.capture_s_per_graph_layer
        if start.tp == 1
        else constants.split_capture_s_per_graph_layer
    )
    return start.n_graphs * start.n_layers * each_s


def _fetch_s(n_bytes: float, start: StartConditions, what: str) -> float:
    if n_bytes <= 0:
        return 0.0
    if start.network_bytes_per_s is None:
        fix = "give network_bytes_per_s, e.g. 1.25e9 for 10 Gb/s"
        raise one(InputError, "startup", what, "has to be fetched over a line of no rate", fix)
    return n_bytes / (NETWORK_FRAC * start.network_bytes_per_s)
