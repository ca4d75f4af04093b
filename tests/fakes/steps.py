"""Work and constants of an iteration that can be checked by hand."""

from fakes.models import device, model
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.links import LinkModel, Protocol
from gpuplan.domain.inference.serving import ServingLayout, StorageFormats
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.kernels.regimes import (
    RegimeConstants,
    Served,
    ServingCase,
    closed_loop_at,
    loop_times,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork
from gpuplan.performance.serving.work import step_work

BF16 = StorageFormats(base=FORMATS["bf16"], quantized=None, parts=(), cache=FORMATS["bf16"])
# Everything at its peak, nothing beside the arithmetic and the bytes.
IDEAL = StepConstants(
    gemm_compute_frac=1.0, gemm_read_frac=1.0, gemm_warm_tokens=0.0, gemm_serial_frac=0.0,
    expert_serial_frac=0.0, expert_compute_frac=1.0, expert_read_frac=1.0, expert_pad_tokens=0.0,
    expert_uneven_frac=0.0, expert_evenness=1e6, cache_read_frac=1.0, attention_compute_frac=1.0,
    activation_read_frac=1e9, sample_s=0.0, operator_s=0.0, launch_s=0.0,
    reduce_sync_s=0.0, reduce_time_frac=0.0,
    host_s=0.0, host_sequence_s=0.0, host_hidden_frac=0.0, slowdown_frac=1.0,
)  # fmt: skip
USUAL = StepConstants(
    gemm_compute_frac=0.65, gemm_read_frac=0.8, gemm_warm_tokens=24.0, gemm_serial_frac=0.25,
    expert_serial_frac=0.9, expert_compute_frac=0.7, expert_read_frac=0.9, expert_pad_tokens=6.0,
    expert_uneven_frac=0.15, expert_evenness=0.5, cache_read_frac=0.75, attention_compute_frac=0.55,
    activation_read_frac=0.8, sample_s=4e-6, operator_s=3e-6, launch_s=0.0,
    reduce_sync_s=5e-6, reduce_time_frac=1.0,
    host_s=2e-3, host_sequence_s=2e-5, host_hidden_frac=0.0, slowdown_frac=1.0,
)  # fmt: skip
REGIME = RegimeConstants(
    start_s=0.0, serve_start_s=0.05,
    start_prompts=1.0,
    start_steps=2.0, interference_frac=1.0, first_wave_frac=0.1, fill_frac=1.0,
    batch_limit=1024.0,
)  # fmt: skip


def link(bytes_per_s: float = 450e9) -> LinkModel:
    plain = Protocol(
        launch_s=5e-6, alpha_s=1e-6, rate_frac=0.8, copy_frac=0.0, ramp_s=0.0, ramp_bytes=1.0
    )
    return LinkModel(
        name="nvlink4", bytes_per_s=bytes_per_s, pair_bytes_per_s=None, contended_frac=1.0,
        has_tree=False, ring=plain, pairwise=plain, switch=None, direct=None,
    )  # fmt: skip


def work(
    network: Model | None = None, *, accelerator: Accelerator | None = None,
    layout: ServingLayout | None = None, storage: StorageFormats = BF16,
) -> StepWork:  # fmt: skip
    return step_work(
        network or model(), accelerator or device(), storage=storage,
        layout=layout or ServingLayout(), link=link(),
    )  # fmt: skip


def case(**changes: float) -> ServingCase:
    usual = ServingCase(
        n_sequences=8.0, requests_per_s=0.0, input_tokens=128.0, output_tokens=64.0,
        cache_bytes=1e9, n_stages=1.0,
    )  # fmt: skip
    return usual._replace(**changes)


def closed_loop(
    doing: StepWork, k: StepConstants, r: RegimeConstants, here: ServingCase, wait_s: float
) -> Served:
    """A closed loop whose users wait so long for their first token."""
    return closed_loop_at(doing, k, r, here, wait_s, loop_times(doing, k, r, here))
