"""From nothing to the first token: what has to happen, and how long each phase takes."""

from typing import Literal

from gpuplan.domain.noun import dataclass

# Where weights are read from: the page cache, a disk of the machine, a disk over the network, or
# an object store.
WeightSource = Literal["page-cache", "local-disk", "network-disk", "object-store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConditions:
    """What a replica starts with."""

    weight_bytes: float  # of the whole replica
    n_layers: int
    tp: int = 1
    source: WeightSource = "local-disk"
    storage_bytes_per_s: float | None = None  # of the disk or store; None: the reader decides
    n_readers: int = 1  # parallel streams; plain safetensors use one
    is_compile_cached: bool = False
    is_eager: bool = False  # neither compiled nor captured
    n_graphs: int = 67  # batch sizes captured: vLLM's default up to 512
    image_bytes: float = 0.0  # still to pull; 0 where the node has the image
    download_bytes: float = 0.0  # still to fetch to the node's own disk
    network_bytes_per_s: float | None = None  # for image and download


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPhases:
    """Seconds of each phase, in order."""

    image_pull_s: float
    download_s: float
    bootstrap_s: float
    load_s: float
    compile_s: float
    profile_s: float
    capture_s: float

    @property
    def total_s(self) -> float:
        """Until the first request is served."""
        return (
            self.image_pull_s
            + self.download_s
            + self.bootstrap_s
            + self.load_s
            + self.compile_s
            + self.profile_s
            + self.capture_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConstants:
    """Fitted costs of an engine's start."""

    bootstrap_s: float
    reader_bytes_per_s: dict[str, float]  # of one stream, by source
    trace_s_per_layer: float  # graph traced, on every start
    compile_s_per_layer: float
    cached_compile_s_per_layer: float
    profile_s_per_layer: float
    capture_s_per_graph_layer: float
    split_capture_s_per_graph_layer: float  # when several ranks capture together
