"""Tables of other networks: every row gets a prediction, what is borrowed gets a wider range."""

from dataclasses import replace

import pytest

from gpuplan.calibration.networks.stored import denoiser_shape, vision_shape
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.errors import InputError
from gpuplan.performance.other_networks import device_of, speed_ratio
from gpuplan.studies.validation.report import table_kind, validate_rows

VISION = {
    "model": "resnet50.a1_in1k", "device": "RTX 4090", "precision": "amp", "memory_format": "nchw",
    "pytorch": "pt291", "torch_compile": "True", "img_size": "224", "batch_size": "256",
    "infer_samples_per_s": "6000", "gmacs": "4.11", "macts_m": "11.11", "param_count_m": "25.56",
}  # fmt: skip
TRAINING = {key: VISION[key] for key in VISION if key not in ("gmacs", "macts_m")} | {
    "train_samples_per_s": "900", "device": "RTX 3090", "torch_compile": "False",
}  # fmt: skip
ENCODER = {"model": "BERT large", "gpu": "L40S", "precision": "INT8", "seq_len": "128",
           "batch": "32", "latency_avg_ms": "6.0"}  # fmt: skip
DIFFUSION = {
    "model_id": "black-forest-labs/FLUX.1-schnell", "gpu_model": "H100", "num_gpus": "1",
    "batch_size": "1", "inference_steps": "4", "height": "1024", "width": "1024", "num_frames": "",
    "batch_latency_s": "1.2", "energy_j_per_item": "600", "avg_power_w_all_gpus": "600",
    "total_params_b": "12",
}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "kind", "metrics"),
    [
        (VISION, "vision", {"infer_samples_per_s"}),
        (TRAINING, "vision_training", {"train_samples_per_s"}),
        (ENCODER, "encoder", {"latency_avg_ms"}),
        (DIFFUSION, "diffusion", {"batch_latency_s", "avg_power_w_all_gpus", "energy_j_per_item"}),
    ],
)
def test_each_kind_of_table(row: dict[str, str], kind: str, metrics: set[str]) -> None:
    assert table_kind([row], "x") == kind
    report = validate_rows([row], where="x")
    assert (report.n_covered, set(report.metrics)) == (1, metrics)
    for estimate in report.rows[0].predicted.values():
        assert estimate.low < estimate.value < estimate.high


def test_an_unknown_board_of_the_catalog_is_predicted() -> None:
    report = validate_rows([{**VISION, "device": "H100 SXM"}], where="x")
    found = report.rows[0].predicted["infer_samples_per_s"]
    known = validate_rows([VISION], where="x").rows[0].predicted["infer_samples_per_s"]
    assert found.value > known.value
    assert found.tier == "estimated"


def test_a_board_that_nobody_knows_is_refused_with_a_reason() -> None:
    report = validate_rows([{**VISION, "device": "abacus"}], where="x")
    assert report.n_covered == 0
    assert "abacus" in report.refused[0][1]


def test_borrowed_work_has_a_wider_range() -> None:
    told = validate_rows([VISION], where="x").rows[0].predicted["infer_samples_per_s"]
    bare = {**VISION, "gmacs": "", "macts_m": ""}
    borrowed = validate_rows([bare], where="x").rows[0].predicted["infer_samples_per_s"]
    assert borrowed.high / borrowed.low > told.high / told.low
    assert borrowed.value == pytest.approx(told.value, rel=0.35)


def test_shapes_scale_with_area_and_parameters() -> None:
    small = vision_shape("resnet50", 224, 25.56e6)
    large = vision_shape("resnet50", 448, 25.56e6)
    assert large.n_macs / small.n_macs == pytest.approx(4.0, rel=0.2)
    assert vision_shape("nosuchnet", 224, 50e6).n_macs > 0


def test_unknown_denoiser_takes_the_shape_of_its_size() -> None:
    shape = denoiser_shape("someone/unheard-of", 12e9)
    assert 12 * shape.n_layers * shape.hidden_size**2 == pytest.approx(12e9, rel=0.05)
    with pytest.raises(InputError, match="no known denoiser"):
        denoiser_shape("someone/unheard-of")


@pytest.mark.parametrize("board", ["TPU v5e", "Trainium2", "Inferentia2", "Gaudi 3", "MI355X"])
@pytest.mark.parametrize(
    ("row", "column", "metric"),
    [
        (VISION, "device", "infer_samples_per_s"),
        (TRAINING, "device", "train_samples_per_s"),
        (ENCODER, "gpu", "latency_avg_ms"),
        (DIFFUSION, "gpu_model", "batch_latency_s"),
    ],
    ids=["vision", "training", "encoder", "diffusion"],
)
def test_boards_without_a_published_power_limit_are_predicted(row, column, metric, board) -> None:
    report = validate_rows([{**row, column: board}], where="x")
    assert report.n_covered == 1, report.refused
    found = report.rows[0].predicted[metric]
    assert found.tier == "estimated"
    assert 0 < found.low < found.value < found.high


def test_a_board_as_strong_in_all_is_as_fast_with_and_without_its_limit() -> None:
    card = read_catalog().accelerators[AcceleratorId("h100-sxm")]
    whole = device_of(card, "fp16")
    unsaid = replace(whole, power_w=None)
    assert speed_ratio(unsaid, whole) == pytest.approx(1.0)
    half = replace(whole, flop_per_s=whole.flop_per_s / 2, bytes_per_s=whole.bytes_per_s / 2)
    assert speed_ratio(replace(half, power_w=None), whole) == pytest.approx(0.5)
