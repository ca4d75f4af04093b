"""`gpuplan init` and `gpuplan scenario`: a file to start from, and what is wrong with yours."""

import json
from pathlib import Path
from typing import Annotated

import typer

from gpuplan import api
from gpuplan.cli.command import OUTPUT, Form, add_to, group
from gpuplan.cli.options import ANALYSIS, Out, arg, opt
from gpuplan.cli.output import emit, write_whole
from gpuplan.errors import InputError, one

app = group("Check a scenario file; write one from words; print its JSON Schema.")

Kind = Annotated[str, opt(ANALYSIS, "Template: chat, training, finetune, embeddings or mixed.")]
Force = Annotated[bool, opt(OUTPUT, "Overwrite a file that exists.")]
Words = Annotated[str, arg('Description: "Llama-3.3-70B, 6000 users, chat".')]
File = Annotated[Path, arg("Scenario file (YAML or JSON).")]


def init(kind: Kind = "chat", out: Out = None, force: Force = False) -> None:
    """Write a commented scenario to start from."""
    text = api.scenario_template(kind)
    if out is None:
        typer.echo(text, nl=False)
        return
    if out.exists() and not force:
        raise one(InputError, "init", str(out), "exists already", "give another name, or --force")
    write_whole(out, text)
    typer.echo(f"wrote {out}; next: gpuplan scenario check {out}", err=True)


def check(file: File, form: Form) -> None:
    """Check a scenario file: all errors at once with their lines, or what was understood."""
    sheet = api.scenario_sheet(api.read_known_scenario(file), str(file))
    emit(sheet, form)


def write(words: Words, form: Form, out: Out = None) -> None:
    """Write the scenario of a description in words, and say how it was understood."""
    from datetime import date

    from gpuplan.domain.requests.plan import PlanRequest

    found = api.describe(PlanRequest(target=words, today=date.today()))
    if found is None:
        raise one(InputError, "scenario", words, "is a file", 'give words: "70B, 6000 users"')
    if out is None:
        emit(api.description_sheet(found), form)
        return
    write_whole(out, api.scenario_text(found))
    typer.echo(f"wrote {out}; next: gpuplan plan {out}", err=True)


def schema() -> None:
    """Print the JSON Schema of scenario files, for editors and other tools."""
    typer.echo(json.dumps(api.scenario_schema(), indent=2, ensure_ascii=False))


add_to(app, "check", check)
add_to(app, "write", write)
add_to(app, "schema", schema)
