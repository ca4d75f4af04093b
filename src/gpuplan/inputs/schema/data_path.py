"""The file format of the way that samples take: storage, loader, copy to the device, staging."""

from typing import Literal

from gpuplan.inputs.schema.keys import (
    Count,
    CountOrZero,
    Frac,
    NonNegative,
    Positive,
    PositiveFrac,
    Strict,
    key,
    optional,
)


class StorageSpec(Strict):
    """Where the data lies."""

    kind: Literal[
        "local_nvme", "local_ssd", "hdd_nfs", "ssd_nfs", "hdd_array", "parallel_fs", "object",
        "object_cached",
    ] = key("Class of storage", example="hdd_nfs")  # fmt: skip
    gb_per_s: Positive | None = optional("Read rate, measured", "GB (1e9 bytes) per second")
    iops: Positive | None = optional("Random reads, measured", "operations per second")
    network_gbit_per_s: Positive | None = optional("Link to the host", "Gbit per second")


class LoaderSpec(Strict):
    """What turns stored samples into tensors on the host."""

    cores: Positive | None = optional("Usable cores of a node", "cores", example=104)
    samples_per_s_per_core: Positive | None = optional(
        "Decoding and augmenting", "samples per second", example=120
    )
    workers: CountOrZero | None = optional("Loader processes", "processes")
    gpu_decode: bool = key(
        "Decoding is done on the accelerator",
        default=False,
        why="host decoding is what loaders do unless told otherwise",
    )


class CopySpec(Strict):
    """The way of a batch from host memory to the accelerator."""

    batch_samples: Count = key("Samples of one batch", "samples", example=256)
    tensor_kb_per_sample: Positive = key(
        "One sample as a tensor, after decoding", "kB (1e3 bytes)", example=602.1
    )
    pinned: bool = key(
        "From page-locked memory", default=False, why="loaders do not pin unless told to"
    )
    overlapped: bool = key(
        "Copied while the accelerator computes",
        default=False,
        why="copies are taken as waited for unless they are known to overlap",
    )


class StagingSpec(Strict):
    """Moving a dataset to where the work is."""

    dataset_tb: Positive = key("Size", "TB (1e12 bytes)", example=200)
    link_gbit_per_s: Positive = key("Line rate", "Gbit per second", example=10)
    efficiency_frac: PositiveFrac = key(
        "Share of the line rate that a long transfer reaches",
        "fraction",
        default=0.7,
        why="protocol, small files and other traffic take about a third of a long link",
    )
    back_tb: NonNegative = key(
        "Results that come back, and pay egress",
        "TB (1e12 bytes)",
        default=0.0,
        why="nothing is said to come back",
    )


class DataPathSpec(Strict):
    """How samples reach the accelerator."""

    sample_kb: Positive | None = optional("One sample as stored", "kB (1e3 bytes)", example=110)
    samples_per_s_per_accelerator: Positive | None = optional(
        "What one accelerator could take", "samples per second", example=3000
    )
    samples_per_file: Positive = key(
        "Samples stored in one file",
        "samples",
        default=1.0,
        why="one file per sample unless a sharded format is named",
    )
    cache_hit_frac: Frac = key(
        "Reads answered from host memory",
        "fraction",
        default=0.0,
        why="a shuffled dataset larger than memory is read anew each epoch",
    )
    storage: StorageSpec | None = optional("Where the data lies")
    loader: LoaderSpec | None = optional("What decodes it")
    copy_to_device: CopySpec | None = optional("The way to the accelerator")
    staging: StagingSpec | None = optional("Moving the dataset to where the work is")
