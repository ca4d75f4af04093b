"""The screen of `gpuplan top` in small and large terminals: nothing cut, nothing lost unsaid."""

import io

import numpy as np
import pytest
from rich.console import Console

from gpuplan.cli.top import HEAD_ROWS, _screen
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.monitoring import TopDevice, TopEngine, TopFrame


def frame(n_devices: int, n_engines: int, name: str = "node-007 gpu {}") -> TopFrame:
    devices = tuple(
        TopDevice(
            name=name.format(k), team="", band="good", use_frac=0.8, sm_frac=0.6, tensor_frac=0.3,
            memory_frac=1.0, power_w=1000.0, heat_c=60.0, trail_frac=floats(np.linspace(0, 1, 40)),
        )
        for k in range(n_devices)
    )  # fmt: skip
    engines = tuple(
        TopEngine(name=f"engine {k}", n_running=200.0, n_waiting=3.0, cache_frac=0.9,
                  output_tokens_per_s=12345.0)
        for k in range(n_engines)
    )  # fmt: skip
    return TopFrame(
        source="made", at_s=1.7e9, devices=devices, engines=engines, mean_frac=0.8, peak_frac=1.0,
        headline="fine: nothing", n_devices=n_devices,
    )  # fmt: skip


def drawn(content: TopFrame, columns: int, rows: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=columns, height=rows, legacy_windows=False)
    console.print(_screen(content, rows=rows - HEAD_ROWS, columns=columns))
    return out.getvalue().splitlines()


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
@pytest.mark.parametrize(("n_devices", "n_engines"), [(8, 0), (64, 0), (64, 12), (0, 4)])
def test_it_fits_and_cuts_no_figure(columns, rows, n_devices, n_engines):
    lines = drawn(frame(n_devices, n_engines), columns, rows)
    assert len(lines) <= rows
    assert max(map(len, lines)) <= columns
    assert not any("…" in line for line in lines)


def test_what_is_not_shown_is_counted():
    lines = drawn(frame(64, 0), 80, 24)
    shown = sum("node-007" in line for line in lines)
    assert f"and {64 - shown} more devices" in lines


def test_the_trail_takes_the_room_there_is():
    narrow, wide = (drawn(frame(2, 0), columns, 24) for columns in (80, 200))
    assert max(map(len, wide)) > max(map(len, narrow))
    assert "█" in "".join(narrow)
