"""`gpuplan render`: a plan as files that other tools run."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan import api
from gpuplan.cli.command import OUTPUT
from gpuplan.cli.explain import File
from gpuplan.cli.options import Overlay, Store, opt, user_store
from gpuplan.cli.output import make_folder, write_whole

To = Annotated[
    str,
    opt(
        OUTPUT,
        "Target: kubernetes, kubernetes-dra, kserve, kueue, keda, karpenter, llm-d, dynamo, vllm, "
        "sglang, tensorrt-llm, training, slurm, skypilot, dstack, terraform, prometheus, grafana, "
        "bom, racks, xlsx or all.",
        "--to",
    ),
]
Out = Annotated[
    Path | None,
    opt(OUTPUT, "Folder, or a name for one file; text goes to the terminal by default.", "--out"),
]


def render(
    file: File, to: To = "kubernetes", out: Out = None, overlay: Overlay = None, store: Store = None
) -> None:
    """Render a plan as files for Kubernetes, engines, Slurm, SkyPilot, Prometheus and others."""
    found = api.render(file, to, overlays=overlay or (), store=user_store(store))
    folder = out if out is not None else _folder(found[0].path, len(found))
    is_file = out is not None and out.suffix and len(found) == 1 and not out.is_dir()
    for each in found:
        if folder is None:
            typer.echo(each.content.decode(), nl=False)
            continue
        target = folder if is_file else folder / each.path
        make_folder(target.parent)
        write_whole(target, each.content)
        typer.echo(f"wrote {target}", err=True)


def _folder(path: str, n_files: int) -> Path | None:
    """Several files and workbooks need a folder; one file of text is printed."""
    return Path("rendered") if n_files > 1 or path.endswith(".xlsx") else None
