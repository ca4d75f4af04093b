"""Telemetry made from physics: levels with noise, written as exporters of either generation do."""

import json

import numpy as np

from gpuplan.observe.read import read_text

# meaning → names of the two generations, with what a base unit is multiplied by
DCGM = {
    "gpu_util": (("DCGM_FI_DEV_GPU_UTIL", 100.0), ("DCGM_FI_DEV_GPU_UTIL_RATIO", 1.0)),
    "engine": (("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1.0), ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1.0)),
    "sm": (("DCGM_FI_PROF_SM_ACTIVE", 1.0), ("DCGM_FI_PROF_SM_UTIL_RATIO", 1.0)),
    "tensor": (("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1.0), ("DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1.0)),
    "dram": (("DCGM_FI_PROF_DRAM_ACTIVE", 1.0), ("DCGM_FI_PROF_DRAM_UTIL_RATIO", 1.0)),
    "fp32": (("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1.0), ("DCGM_FI_PROF_FP32_UTIL_RATIO", 1.0)),
    "power_w": (("DCGM_FI_DEV_POWER_USAGE", 1.0), ("DCGM_FI_DEV_BOARD_POWER_WATTS", 1.0)),
    "heat_c": (("DCGM_FI_DEV_GPU_TEMP", 1.0), ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1.0)),
    "clock_hz": (("DCGM_FI_DEV_SM_CLOCK", 1e-6), ("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1.0)),
    "held_bytes": (("DCGM_FI_DEV_FB_USED", 2.0**-20), ("DCGM_FI_DEV_FB_USED_BYTES", 1.0)),
    "free_bytes": (("DCGM_FI_DEV_FB_FREE", 2.0**-20), ("DCGM_FI_DEV_FB_FREE_BYTES", 1.0)),
    "link": (("DCGM_FI_PROF_NVLINK_TX_BYTES", 1.0), ("DCGM_FI_PROF_NVLINK_TX_BYTES", 1.0)),
    "pcie": (("DCGM_FI_PROF_PCIE_RX_BYTES", 1.0), ("DCGM_FI_PROF_PCIE_RX_BYTES", 1.0)),
    "throttle": (
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 1.0), ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1.0),
    ),
    "xid": (("DCGM_FI_DEV_XID_ERRORS", 1.0), ("DCGM_FI_DEV_XID_ERROR", 1.0)),
    "rows_lost": (
        ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 1.0),
        ("DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", 1.0),
    ),
}  # fmt: skip
EXACT = ("throttle", "xid", "rows_lost", "held_bytes", "free_bytes")
STEP_S = 5.0


class Scene:
    """A fleet under watch; every line is one device, node or engine."""

    def __init__(self, *, generation: int = 0, n_samples: int = 240, seed: int = 0) -> None:
        self.generation, self.n_samples = generation, n_samples
        self.random = np.random.default_rng(seed)
        self.at_s = 1.7e9 + STEP_S * np.arange(n_samples)
        self.result: list[dict] = []

    def _noisy(self, level, *, is_exact: bool) -> np.ndarray:
        values = np.broadcast_to(np.asarray(level, dtype=float), self.n_samples).copy()
        noise = 1.0 if is_exact else 1.0 + 0.03 * self.random.standard_normal(self.n_samples)
        return values * noise

    def _add(self, name: str, values: np.ndarray, labels: dict[str, str]) -> None:
        points = [[at, repr(float(v))] for at, v in zip(self.at_s, values, strict=True)]
        self.result.append({"metric": {"__name__": name, **labels}, "values": points})

    def device(self, gpu: int = 0, node: str = "n1", **levels) -> "Scene":
        """One accelerator; levels in base units, a number or one for each sample."""
        host = "Hostname" if self.generation == 0 else "hostname"
        labels = {"gpu": str(gpu), "UUID": f"GPU-{node}-{gpu}", host: node}
        labels["modelName"] = levels.pop("model", "NVIDIA H100 80GB HBM3")
        for key in ("namespace", "pod"):
            if key in levels:
                labels[key] = levels.pop(key)
        for what, level in levels.items():
            name, scale = DCGM[what][self.generation]
            values = self._noisy(level, is_exact=what in EXACT) * scale
            if what in ("gpu_util", "sm", "tensor", "dram", "fp32", "engine"):
                values = np.clip(values, 0.0, scale)
            if name == "DCGM_FI_DEV_GPU_UTIL":
                values = np.round(values)
            self._add(name, values, labels)
        return self

    def gauge(self, name: str, level, **labels: str) -> "Scene":
        """Any metric by its own name, in its own unit."""
        self._add(name, self._noisy(level, is_exact=False), labels)
        return self

    def exact(self, name: str, level, **labels: str) -> "Scene":
        """The same without noise."""
        self._add(name, self._noisy(level, is_exact=True), labels)
        return self

    def counter(self, name: str, per_s, **labels: str) -> "Scene":
        """A counter that rises at this rate."""
        rates = np.broadcast_to(np.asarray(per_s, dtype=float), self.n_samples)
        self._add(name, np.concatenate([[0.0], np.cumsum(rates[:-1] * STEP_S)]), labels)
        return self

    def telemetry(self):
        """What a reader makes of it."""
        data = {"resultType": "matrix", "result": self.result}
        return read_text(json.dumps({"status": "success", "data": data}), source="scene")
