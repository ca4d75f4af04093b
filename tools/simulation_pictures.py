"""Pictures of measured and simulated runs: distributions, and figures over the number of users."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from validation.multiturn_runs import simulated
from validation.serving_runs import MEASURES, Judged, Times

COLOURS = {"measured": "#111827", "as is": "#dc2626", "own steps": "#2563eb"}
TITLES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E"}
SHOWN = ("tp1_bs16", "tp1_bs128", "tp1_bs256", "tp1_bs512", "tp8_bs64", "tp8_bs256")
FIGURES = {
    "output_tokens_per_s": "output tokens/s",
    "cache_frac": "mean use of the cache",
    "hit_frac": "prompt tokens found in the cache",
    "n_preemptions": "preemptions",
}


def pictures(opened: Sequence[Judged], talks: Sequence[Any]) -> dict[str, bytes]:
    """File names and the bytes of each picture."""
    shown = [talk.judged for talk in talks if talk.served.run.name in SHOWN]
    return {
        "simulation-open.png": distributions(opened),
        "simulation-conversations.png": distributions(shown),
        "simulation-users.png": over_users(talks),
    }


def distributions(group: Sequence[Judged]) -> bytes:
    """Shares of all requests at or below each time; one row a run."""
    figure = _figure(12.0, 2.6 * len(group) + 0.4)
    for row, j in enumerate(group):
        for column, name in enumerate(MEASURES):
            axes = figure.add_subplot(len(group), 3, 3 * row + column + 1)
            _curves(axes, j, name)
            axes.set_title(f"{_title(j.run.name)}: {TITLES[name]}", fontsize=9, loc="left")
            if row == 0 and column == 0:
                axes.legend(fontsize=8, frameon=False)
    return _bytes(figure)


def _curves(axes: Axes, j: Judged, name: str) -> None:
    curves: dict[str, Times] = {
        "measured": j.run.measured, "as is": j.as_is.times, "own steps": j.own.times
    }  # fmt: skip
    for label, times in curves.items():
        values = np.sort(getattr(times, name))
        share = np.arange(1, len(values) + 1) / len(values)
        axes.plot(values, share, color=COLOURS[label], label=label, linewidth=1.3)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("s", fontsize=8)
    axes.grid(visible=True, alpha=0.25)
    axes.tick_params(labelsize=6)


def over_users(talks: Sequence[Any]) -> bytes:
    """Counters over the number of users; one row a layout."""
    figure = _figure(14.0, 6.0)
    layouts = list(dict.fromkeys(talk.served.run.name.split("_")[0] for talk in talks))
    for row, layout in enumerate(layouts):
        chosen = [talk for talk in talks if talk.served.run.name.startswith(f"{layout}_")]
        for column, name in enumerate(FIGURES):
            axes = figure.add_subplot(len(layouts), len(FIGURES), len(FIGURES) * row + column + 1)
            _lines(axes, chosen, name)
            axes.set_title(f"{_cards(layout)}: {FIGURES[name]}", fontsize=9, loc="left")
            if row == 0 and column == 0:
                axes.legend(fontsize=8, frameon=False)
    return _bytes(figure)


def _lines(axes: Axes, chosen: Sequence[Any], name: str) -> None:
    users = [int(talk.served.run.name.split("_bs")[1]) for talk in chosen]
    lines = {
        "measured": [talk.served.counted for talk in chosen],
        "as is": [simulated(talk.served, talk.judged.as_is) for talk in chosen],
        "own steps": [simulated(talk.served, talk.judged.own) for talk in chosen],
    }
    for label, counted in lines.items():
        values = [getattr(each, name) for each in counted]
        style = "o-" if label == "measured" else "x--"
        axes.plot(users, values, style, color=COLOURS[label], label=label, linewidth=1.2)
    axes.set_xscale("log", base=2)
    axes.set_xticks(users, [str(n) for n in users])
    axes.set_ylim(0, max(1.0, axes.get_ylim()[1]) if name[:2] == "n_" else None)
    axes.set_xlabel("users", fontsize=8)
    axes.grid(visible=True, alpha=0.25)
    axes.tick_params(labelsize=7)


def _title(name: str) -> str:
    if "_" not in name:
        return name
    layout, users = name.split("_bs")
    return f"{_cards(layout)}, {users} users"


def _cards(layout: str) -> str:
    return f"{layout.removeprefix('tp')} B200"


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _bytes(figure: Figure) -> bytes:
    held = io.BytesIO()
    # No date inside: the same runs are the same bytes.
    figure.savefig(held, format="png", metadata={"Software": None})
    return held.getvalue()
