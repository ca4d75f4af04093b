"""Validation of other networks: a row of a vision, encoder or diffusion table to its prediction."""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from gpuplan.calibration.networks.fit import basis_of, devices
from gpuplan.calibration.networks.stored import (
    VisionShape,
    denoiser_shape,
    has_vision_kin,
    network_constants,
    network_estimate,
    vision_shape,
    widened,
)
from gpuplan.calibration.power import busy_frac, power_constants, power_estimate
from gpuplan.calibration.tables import read_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId
from gpuplan.domain.hardware.power import Utilization
from gpuplan.domain.model.other import Device, NetworkKind, NetworkWork
from gpuplan.domain.provenance import Estimate
from gpuplan.errors import InputError, Problem
from gpuplan.performance import other_networks as o
from gpuplan.performance.power import accelerator_power_w
from gpuplan.studies.measured.inference import number_in, stated_number
from gpuplan.units import GFLOP, MS

Row = dict[str, str]

VISION_COLUMNS = frozenset({"gmacs", "macts_m", "infer_samples_per_s", "torch_compile"})
VISION_TRAINING_COLUMNS = frozenset({"train_samples_per_s", "torch_compile", "param_count_m"})
ENCODER_COLUMNS = frozenset({"seq_len", "latency_avg_ms", "gpu", "precision", "batch"})
DIFFUSION_COLUMNS = frozenset({"inference_steps", "batch_latency_s", "gpu_model", "num_gpus"})


class Case(NamedTuple):
    """What a row ran, on what."""

    kind: NetworkKind
    model: str
    stack: str
    board: str


def predicted_vision(row: Row) -> PredictedRow:
    """The images a second of one row at inference, beside what was measured."""
    is_cpu = row["precision"] == "fp32"
    batch = _images(row)
    shape = _vision_shape(row)
    work = o.vision_work(
        shape.n_macs,
        shape.n_activations,
        shape.n_params,
        batch=batch,
        bytes_per_value=4.0 if is_cpu else 2.0,
    )
    kind: NetworkKind = "vision-cpu" if is_cpu else "vision"
    mode = "compiled" if row["torch_compile"] == "True" else "eager"
    case = Case(kind, row["model"], f"{mode}-{row['memory_format']}", row["device"])
    seconds = widened(_seconds(case, work), shape)
    return _row(row, "infer_samples_per_s", seconds.rate(batch), row["device"])


def predicted_vision_training(row: Row) -> PredictedRow:
    """The images a second of one row in training, beside what was measured."""
    batch = _images(row)
    shape = _vision_shape(row)
    work = o.vision_work(shape.n_macs, shape.n_activations, shape.n_params, batch=batch)
    stack = f"eager-{row['memory_format']}"
    case = Case("vision-training", row["model"], stack, row["device"])
    seconds = widened(_seconds(case, work), shape)
    return _row(row, "train_samples_per_s", seconds.rate(batch), row["device"])


def _images(row: Row) -> int:
    """Images of one batch on one device; InputError where the row is of several devices."""
    n = number_in(row, "n_accelerators") or 1.0
    if n > 1:
        problem = Problem("n_accelerators", f"got {n:g}", "give rows of one device")
        raise InputError(row.get("id", "row"), [problem])
    return int(stated_number(row, "batch_size"))


def _vision_shape(row: Row) -> VisionShape:
    """As the row says; where it does not, as the package's table of shapes does."""
    n_params = stated_number(row, "param_count_m") * 1e6
    n_macs, n_activations = (number_in(row, key) or 0.0 for key in ("gmacs", "macts_m"))
    if n_macs > 0 and n_activations > 0:
        return VisionShape(n_macs * GFLOP, n_activations * 1e6, n_params)
    name = row["model"].rsplit("/", maxsplit=1)[-1]
    if not has_vision_kin(name):
        problem = Problem("model", f"{name!r} is of no known family", "give gmacs and macts_m")
        raise InputError(row.get("id", "row"), [problem])
    return vision_shape(name, int(stated_number(row, "img_size")), n_params)


def predicted_encoder(row: Row) -> PredictedRow:
    """The latency of a batch of sequences, beside what was measured."""
    n_layers, hidden = (12, 768) if "base" in row["model"].lower() else (24, 1024)
    is_int8 = row["precision"].upper().startswith("INT8")
    kind = "sparse" if "sparse" in row["precision"].lower() else "int8" if is_int8 else "fp16"
    work = o.encoder_work(
        n_layers,
        hidden,
        n_tokens=int(stated_number(row, "seq_len")),
        batch=int(stated_number(row, "batch")),
        bytes_per_value=1.0 if is_int8 else 2.0,
    )
    case = Case("encoder", row["model"], f"tensorrt-{kind}", row["gpu"])
    seconds = _seconds(case, work, peak_ratio=2.0 if is_int8 else 1.0)
    return _row(row, "latency_avg_ms", seconds.scaled(1 / MS), row["gpu"])


def predicted_diffusion(row: Row) -> PredictedRow:
    """The latency of a batch of images or clips, its power and its energy, beside the measured."""
    params = row.get("total_params_b", "")
    shape = denoiser_shape(row["model_id"], float(params) * 1e9 if params else None)
    tokens = o.latent_tokens(
        shape,
        int(stated_number(row, "height")),
        width_px=int(number_in(row, "width") or stated_number(row, "height")),
        n_frames=int(number_in(row, "num_frames") or 1),
    )
    n, batch = (int(stated_number(row, name)) for name in ("num_gpus", "batch_size"))
    work = o.denoiser_work(
        shape, tokens, n_steps=int(stated_number(row, "inference_steps")), batch=batch
    )
    name = row["model_id"].split("/")[-1]
    seconds = _seconds(Case("denoiser", name, "xdit", row["gpu_model"]), work, n_devices=n)
    found = _row(row, "batch_latency_s", seconds, row["gpu_model"])
    predicted = dict(found.predicted)
    if _card(row["gpu_model"]).power.limit_w is not None:
        power = _denoiser_power(work, seconds.value, row["gpu_model"], n).scaled(n)
        # Slow runs draw less: the range of energy is that of time alone, as held-out rows bear out.
        energy = seconds.scaled(power.value / batch)
        predicted |= {"avg_power_w_all_gpus": power, "energy_j_per_item": energy}
    names = ("batch_latency_s", "avg_power_w_all_gpus", "energy_j_per_item")
    return replace(
        found,
        predicted=predicted,
        measured={name: value for name in names if (value := number_in(row, name))},
    )


def _denoiser_power(work: NetworkWork, seconds: float, board: str, n_devices: int) -> Estimate:
    card = _card(board)
    flop_per_s = (work.flop + work.attention_flop) / seconds / n_devices
    use = Utilization(
        compute_frac=flop_per_s / _device(board).attention_flop_per_s,
        busy_frac=busy_frac("diffusion", step_s=seconds / work.n_kernels),
    )
    watts = accelerator_power_w(card, use, power_constants(card, "diffusion"))
    return power_estimate(watts, card, "diffusion")


def _seconds(
    case: Case, work: NetworkWork, *, n_devices: int = 1, peak_ratio: float = 1.0
) -> Estimate:
    card = _card(case.board)
    device = _device(case.board)
    device = replace(device, flop_per_s=device.flop_per_s * peak_ratio)
    constants = network_constants(case.kind, case.model, case.stack, accelerator=card)
    seconds = o.network_time_s(
        work, device, constants=constants, basis=basis_of(case.kind), n_devices=n_devices
    )
    return network_estimate(seconds, case.kind, model=case.model, accelerator=card)


@lru_cache(maxsize=256)
def _device(board: str) -> Device:
    """Figures of a board by its name in the package's table, or in the catalog."""
    known = devices()
    if board in known:
        return known[board][1]
    card = find_accelerator(board, read_catalog()).accelerator
    return o.device_of(card, "fp16" if "fp16" in card.peak_flop_per_s else "bf16")


@lru_cache(maxsize=256)
def _card(board: str) -> Accelerator:
    """The catalog's accelerator; a board that only the package's table knows borrows a name."""
    for row in read_rows("network_devices.csv"):
        if row["device"] == board:
            if row["accelerator"]:
                return read_catalog().accelerators[AcceleratorId(row["accelerator"])]
            stand_in = next(iter(read_catalog().accelerators.values()))
            return replace(stand_in, id=AcceleratorId(board), name=board, family=row["family"])
    return find_accelerator(board, read_catalog()).accelerator


def _row(row: Row, metric: str, estimate: Estimate, board: str) -> PredictedRow:
    groups = {
        "regime": metric,
        "accelerator": board,
        "model": row.get("model") or row.get("model_id", ""),
        "source": row.get("source_repo", ""),
        "engine": row.get("engine") or row.get("pytorch", "") or row.get("software", ""),
    }
    value = number_in(row, metric)
    measured = {metric: value} if value else {}
    return PredictedRow(id="", groups=groups, predicted={metric: estimate}, measured=measured)
