"""The file format of the data path: storage, data loader, copy to the device, staging."""

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

StorageClass = Literal[
    "local_nvme",
    "local_ssd",
    "hdd_nfs",
    "ssd_nfs",
    "hdd_array",
    "parallel_fs",
    "object",
    "object_cached",
]


class StorageSpec(Strict):
    """The storage that holds the dataset."""

    kind: StorageClass = key("Class of storage", example="hdd_nfs")
    gb_per_s: Positive | None = optional("Measured read bandwidth")
    iops: Positive | None = optional(
        "Measured random reads (IOPS)", "operations per second", to="operations_per_s"
    )
    network_gbit_per_s: Positive | None = optional("Line rate of the link from storage to host")


class LoaderSpec(Strict):
    """The data loader, which turns stored samples into tensors on the host."""

    cores: Positive | None = optional("Usable CPU cores of a node", example=104)
    samples_per_s_per_core: Positive | None = optional(
        "Decoding and augmentation rate of one core", "samples per second", example=120
    )
    workers: CountOrZero | None = optional("Worker processes of the data loader", "processes")
    gpu_decode: bool = key(
        "Whether samples are decoded on the accelerator",
        to="is_on_accelerator",
        default=False,
        why="data loaders decode on the host unless configured otherwise",
    )


class CopySpec(Strict):
    """The copy of a batch from host memory to the accelerator."""

    batch_samples: Count = key("Samples of one batch", example=256)
    tensor_kb_per_sample: Positive = key(
        "Size of one sample as a tensor, after decoding",
        "kB (1e3 bytes)",
        to="sample_bytes",
        example=602.1,
    )
    pinned: bool = key(
        "Whether batches are copied from pinned (page-locked) memory",
        default=False,
        why="data loaders do not pin memory unless configured to",
    )
    overlapped: bool = key(
        "Whether copies overlap with computation",
        default=False,
        why="copies are taken as waited for unless they are known to overlap",
    )


class StagingSpec(Strict):
    """The transfer of a dataset to the site of the work."""

    dataset_tb: Positive = key("Size of the dataset", example=200)
    link_gbit_per_s: Positive = key("Line rate of the link", example=10)
    efficiency_frac: PositiveFrac = key(
        "Share of the line rate that a long transfer reaches",
        default=0.7,
        why="protocol, small files and other traffic take about a third of a long link",
    )
    back_tb: NonNegative = key(
        "Size of the results that are transferred back, and pay egress",
        default=0.0,
        why="no results are stated to come back",
    )


class RetentionSpec(Strict):
    """What storage must hold over the horizon besides the dataset of today."""

    dataset_growth_frac: NonNegative | None = optional(
        "Growth of the dataset in a month, compound; 0", example=0.05
    )
    log_gb_per_day: NonNegative | None = optional(
        "Logs and metrics of one accelerator that are retained; 0.1", example=0.5
    )
    artifacts_tb_per_month: NonNegative | None = optional(
        "Artifacts that are retained: models, evaluations, outputs; 0", example=2
    )


class DataPathSpec(Strict):
    """How samples reach the accelerator."""

    sample_kb: Positive | None = optional("Size of one sample as stored", example=110)
    samples_per_s_per_accelerator: Positive | None = optional(
        "Samples that one accelerator could process", "samples per second", example=3000
    )
    samples_per_file: Positive = key(
        "Samples stored in one file",
        "samples",
        default=1.0,
        why="one file per sample unless a sharded format is named",
    )
    cache_hit_frac: Frac = key(
        "Share of reads served from the page cache in host memory",
        default=0.0,
        why="a shuffled dataset larger than memory is read anew each epoch",
    )
    storage: StorageSpec | None = optional("Storage that holds the dataset")
    loader: LoaderSpec | None = optional("Data loader on the host")
    copy_to_device: CopySpec | None = optional(
        "Copy of a batch from host memory to the accelerator", to="copy"
    )
    staging: StagingSpec | None = optional("Transfer of the dataset to the site of the work")
    retention: RetentionSpec | None = optional("Data that accumulates over the horizon")
