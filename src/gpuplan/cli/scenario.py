"""`gpuplan init` and `gpuplan scenario`: a file to start from, and what is wrong with yours."""

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, Out, Output
from gpuplan.cli.output import Form, chosen, emit
from gpuplan.errors import InputError, one

app = typer.Typer(
    help="Check a scenario file; print its schema.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Kind = Annotated[str, typer.Option(help="chat, training, finetune, embeddings or mixed.")]
Force = Annotated[bool, typer.Option(help="Write over a file that exists.")]
File = Annotated[Path, typer.Argument(help="The scenario file (YAML or JSON).")]


def init(kind: Kind = "chat", out: Out = None, force: Force = False) -> None:
    """Write a commented scenario to start from."""
    from gpuplan import api

    text = api.scenario_template(kind)
    if out is None:
        typer.echo(text, nl=False)
        return
    if out.exists() and not force:
        raise one(InputError, "init", str(out), "exists already", "give another name, or --force")
    write_whole(out, text)
    typer.echo(f"wrote {out}; next: gpuplan scenario check {out}", err=True)


def write_whole(path: Path, text: str) -> None:
    """All of it or nothing: a reader never sees half a file."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)  # as any other file of the user, not as a secret
        Path(name).replace(path)
    except OSError as error:
        raise one(
            InputError, "init", str(path), f"cannot be written: {error.strerror}",
            "give a place that exists and is yours",
        ) from error  # fmt: skip


@app.command("check")
def check(file: File, output: Output = Form.TABLE, as_json: Json = False) -> None:
    """Read a scenario: every fault at once with its line, or what was understood."""
    from gpuplan import api

    sheet = api.scenario_sheet(api.read_scenario(file), str(file))
    emit(sheet, chosen(output, as_json=as_json))


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors and other tools."""
    from gpuplan import api

    typer.echo(json.dumps(api.scenario_schema(), indent=2, ensure_ascii=False))
