"""Networks that are no language models: their work by hand, their limits, their scenario."""

from dataclasses import replace
from itertools import pairwise

import pytest
from fits.networks import KINDS
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.calibration.networks.fit import basis_of, family_of
from gpuplan.calibration.networks.stored import (
    benchmark_rate,
    benchmarks,
    network_constants,
    network_estimate,
)
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.other import (
    DenoiserShape,
    Device,
    NetworkConstants,
    NetworkKind,
    NetworkWork,
    SpeedBasis,
)
from gpuplan.errors import CatalogError, InputError
from gpuplan.performance import other_networks as o
from gpuplan.studies.networks.speech import board_figures

GFLOP = 1e9
H100 = find_accelerator("h100-sxm", read_catalog()).accelerator
L4 = find_accelerator("l4", read_catalog()).accelerator
CARDS = [c for c in read_catalog().accelerators.values() if c.power.limit_w and not c.is_cpu]


def seconds(
    kind: NetworkKind, work: NetworkWork, card: Accelerator, model: str, stack: str, n: int = 1
) -> float:
    return o.network_time_s(
        work,
        o.device_of(card, "fp16"),
        constants=network_constants(kind, model, stack, accelerator=card),
        basis=basis_of(kind),
        n_devices=n,
    )


def resnet50(batch: int) -> NetworkWork:
    return o.vision_work(4.11e9, 11.1e6, 25.6e6, batch=batch)


def test_minilm_is_six_gigaflop_a_document() -> None:
    """Six layers of width 384, 256 tokens; the embedding table is looked up, not multiplied."""
    work = o.encoder_work(6, 384, n_tokens=256, batch=1)
    assert work.flop + work.attention_flop == pytest.approx(6.0 * GFLOP, rel=0.02)
    with_table = work.flop + 2 * 30522 * 384 * 256
    assert with_table > 2 * work.flop


def test_a_processor_is_enough_for_few_documents() -> None:
    """16 virtual cores embed about 60 documents a second; an L4 a hundred times that."""
    sixteen_threads = Device(
        flop_per_s=0.9e12, attention_flop_per_s=0.9e12, bytes_per_s=50e9, power_w=120.0
    )
    work = o.on_processor(o.encoder_work(6, 384, n_tokens=256, batch=1, bytes_per_value=4.0))
    on_cpu_s = o.network_time_s(
        work,
        sixteen_threads,
        constants=network_constants("vision-cpu", "minilm", "compiled-nchw", accelerator=L4),
        basis=basis_of("vision-cpu"),
    )
    assert 1 / on_cpu_s == pytest.approx(60, rel=0.4)
    batch = o.encoder_work(6, 384, n_tokens=256, batch=256)
    on_l4_s = seconds("encoder", batch, L4, "MiniLM", "served-fused")
    assert 256 / on_l4_s > 20 / on_cpu_s


def test_resnet_on_an_rtx_3090() -> None:
    """About 3,000 images a second, mixed precision, channels last, not compiled."""
    card = find_accelerator("rtx-3090", read_catalog()).accelerator
    rate = 1024 / seconds("vision", resnet50(1024), card, "resnet50", "eager-nhwc")
    assert 2000 < rate < 4000


def test_compiling_helps_and_channels_last_too() -> None:
    eager, last, compiled = (
        seconds("vision", resnet50(256), H100, "resnet50", stack)
        for stack in ("eager-nchw", "eager-nhwc", "compiled-nchw")
    )
    assert compiled < last < eager


def test_training_costs_three_to_five_inferences() -> None:
    card = find_accelerator("rtx-3090", read_catalog()).accelerator
    step = seconds("vision-training", resnet50(256), card, "resnet50", "eager-nchw")
    forward = seconds("vision", resnet50(256), card, "resnet50", "eager-nchw")
    assert 2.8 < step / forward < 5.0


def test_denoiser_work_by_hand() -> None:
    shape = DenoiserShape(n_layers=57, hidden_size=3072, n_text_tokens=512, n_passes=1)
    tokens = o.latent_tokens(shape, 1024, width_px=1024)
    assert tokens == 4096 + 512
    work = o.denoiser_work(shape, tokens, n_steps=1)
    assert work.flop == pytest.approx(2 * 12 * 57 * 3072**2 * 4608)
    assert work.attention_flop == pytest.approx(4 * 57 * 3072 * 4608**2)
    guided = o.denoiser_work(replace(shape, n_passes=2), tokens, n_steps=1)
    assert guided.flop == 2 * work.flop


def test_clip_tokens() -> None:
    plain = DenoiserShape(n_layers=30, hidden_size=1536)
    assert o.latent_tokens(plain, 480, width_px=832, n_frames=81) == 21 * 30 * 52
    folded = replace(plain, frames_per_token=8)
    assert o.latent_tokens(folded, 768, width_px=1360, n_frames=81) == 11 * 48 * 85


def test_more_devices_help_less_and_less() -> None:
    shape = DenoiserShape(n_layers=57, hidden_size=3072, n_text_tokens=512, n_passes=1)
    work = o.denoiser_work(shape, 4608, n_steps=50)
    times = [seconds("denoiser", work, H100, "FLUX", "xdit", n) for n in (1, 2, 4, 8)]
    assert all(more <= fewer * (1 + 1e-9) for fewer, more in pairwise(times))
    assert times[0] / times[3] < 8


def test_unknown_precision_is_said() -> None:
    with pytest.raises(CatalogError, match="use one of"):
        o.device_of(H100, "fp3")


def test_ranges_widen_for_what_is_new() -> None:
    known = find_accelerator("rtx-4090", read_catalog()).accelerator
    a = network_estimate(1.0, "vision", model="resnet50", accelerator=known)
    b = network_estimate(1.0, "vision", model="neverheardof", accelerator=known)
    c = network_estimate(1.0, "vision", model="resnet50", accelerator=H100)
    assert b.high - b.low > a.high - a.low
    assert c.high - c.low >= a.high - a.low
    assert (a.tier, b.tier, c.tier) == ("fitted", "estimated", "estimated")


@pytest.mark.parametrize(
    ("name", "family"),
    [("resnet50.a1_in1k", "resnet"), ("tf_efficientnetv2_s", "efficientnetv2"),
     ("vit_base_patch16_224", "vit"), ("mobilenetv3_large_100", "mobilenetv3"),
     ("regnety_032", "regnety")],
)  # fmt: skip
def test_families(name: str, family: str) -> None:
    assert family_of(name) == family


def test_pipelines_carry_over_between_boards() -> None:
    figures = board_figures()
    rate = benchmark_rate(
        "dlrm-v2-99", figures["h100-sxm"], known=figures, speed_ratio=o.speed_ratio
    )
    assert rate.low < 69_699 < rate.high
    assert "rnnt" in benchmarks()
    with pytest.raises(InputError, match="never measured"):
        benchmark_rate("chess", figures["l4"], known=figures, speed_ratio=o.speed_ratio)


WORK = st.builds(
    NetworkWork,
    flop=st.floats(1e6, 1e18),
    attention_flop=st.floats(0, 1e17),
    activation_bytes=st.floats(0, 1e13),
    weight_bytes=st.floats(0, 1e11),
    n_kernels=st.floats(0, 1e4),
)
KIND = st.sampled_from(KINDS)


@given(kind=KIND, work=WORK, card=st.sampled_from(CARDS), n=st.integers(1, 8))
def test_no_network_beats_the_peak(
    kind: NetworkKind, work: NetworkWork, card: Accelerator, n: int
) -> None:
    least = (work.flop + work.attention_flop) / max(card.peak_flop_per_s.values()) / n
    assert seconds(kind, work, card, "x", "eager-nchw", n) >= least * (1 - 1e-9)


@given(kind=KIND, work=WORK, more=st.floats(1.0, 20.0), part=st.sampled_from(
    ["flop_per_s", "attention_flop_per_s", "bytes_per_s", "power_w"]))  # fmt: skip
def test_a_better_board_is_never_slower(
    kind: NetworkKind, work: NetworkWork, more: float, part: str
) -> None:
    board = o.device_of(H100, "fp16")
    better = replace(board, **{part: getattr(board, part) * more})
    constants = network_constants(kind, "resnet50", "eager-nchw", accelerator=H100)
    basis = basis_of(kind)
    slow = o.network_time_s(work, board, constants=constants, basis=basis)
    quick = o.network_time_s(work, better, constants=constants, basis=basis)
    assert quick <= slow * (1 + 1e-9)


@given(kind=KIND, work=WORK, more=st.floats(1.0, 20.0), part=st.sampled_from(
    ["flop", "attention_flop", "activation_bytes", "weight_bytes", "n_kernels"]))  # fmt: skip
def test_more_work_is_never_quicker(
    kind: NetworkKind, work: NetworkWork, more: float, part: str
) -> None:
    harder = replace(work, **{part: getattr(work, part) * more})
    least = seconds(kind, work, H100, "resnet50", "eager-nchw")
    assert seconds(kind, harder, H100, "resnet50", "eager-nchw") >= least * (1 - 1e-9)


@given(second=st.floats(1e-3, 1e3), byte=st.floats(1e-3, 1e3), is_mean=st.booleans())
def test_network_time_is_a_time(second: float, byte: float, is_mean: bool) -> None:
    work = NetworkWork(flop=1e13, attention_flop=1e12, activation_bytes=1e9, n_kernels=10.0)
    ratios = NetworkConstants(
        compute_ratio=1.5, attention_ratio=3.0, traffic_ratio=8.0, weight_ratio=1.0,
        launch_s=1e-4, split_ratio=0.1, scale_ratio=1.0,
    )  # fmt: skip

    def board(s: float, b: float, f: float) -> Device:
        return Device(
            flop_per_s=f / s, attention_flop_per_s=f / s, bytes_per_s=1e12 * b / s, power_w=400.0
        )

    def time_s(s: float, b: float) -> float:
        basis = SpeedBasis(reference=board(s, b, 2e14), is_mean=is_mean)
        resized = replace(work, activation_bytes=1e9 * b)
        constants = replace(ratios, launch_s=1e-4 * s)
        return o.network_time_s(resized, board(s, b, 3e14), constants=constants, basis=basis)

    assert time_s(second, byte) == pytest.approx(second * time_s(1.0, 1.0))
