"""Options as one class, groups in help, flags under their former names, errors as compilers'."""

from typing import Annotated, NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.cli.command import Form, add_to, group, with_new_names
from gpuplan.cli.options import LOAD, MODEL, opt
from gpuplan.errors import InputError


class Options(NamedTuple):
    rate: Annotated[float, opt(LOAD, "Requests per second.", min=0)]
    tp: Annotated[int, opt(MODEL, "Tensor-parallel size.")] = 2
    burst: Annotated[bool, opt(LOAD, "Bursty arrivals instead.", "--burst")] = False


def show(options: Options) -> None:
    """Show what was typed."""
    typer.echo(f"{options.rate} {options.tp} {options.burst}")


def made() -> typer.Typer:
    parent = group("Two verbs.")
    add_to(parent, "show", show)
    add_to(parent, "other", show)
    return parent


def test_fields_are_options_with_their_defaults():
    assert CliRunner().invoke(made(), ["show", "--rate", "3"]).stdout == "3.0 2 False\n"
    assert CliRunner().invoke(made(), ["show", "--rate", "3", "--burst"]).stdout == "3.0 2 True\n"
    assert CliRunner().invoke(made(), ["show"]).exit_code == 2
    assert CliRunner().invoke(made(), ["show", "--rate", "-1"]).exit_code == 2


def test_a_verb_that_takes_a_form_has_its_two_options_and_no_other_verb_has():
    def told(options: Options, form: Form) -> None:
        """Tell the form."""
        typer.echo(f"{options.rate} {form}")

    parent = made()
    add_to(parent, "told", told)

    def answered(*asked: str) -> str:
        return CliRunner().invoke(parent, ["told", "--rate", "3", *asked]).stdout

    assert answered() == "3.0 table\n"
    assert answered("-o", "yaml") == answered("--output", "yaml") == "3.0 yaml\n"
    assert answered("--json") == answered("-o", "csv", "--json") == "3.0 json\n"
    assert CliRunner().invoke(parent, ["show", "--rate", "3", "--json"]).exit_code == 2


def test_help_shows_groups_in_the_order_of_their_first_option():
    text = CliRunner().invoke(made(), ["show", "--help"]).stdout
    places = [text.index(word) for word in ("Load:", "--rate X", "--burst", "Model and layout:")]
    assert places == sorted(places)
    assert "--tp N" in text
    assert text.index("Output:") < text.index("--help")


def test_former_flags_become_the_new_ones(capsys):
    known = {"--input-tokens", "--hours", "--horizon-h"}
    args = ["--input", "5", "--input=6", "--hours", "2", "x", "--", "--input"]
    expected = ["--input-tokens", "5", "--input-tokens=6", "--hours", "2", "x", "--", "--input"]
    assert with_new_names(args, known, is_silent=False) == expected
    assert "--input is now --input-tokens" in capsys.readouterr().err
    assert with_new_names(["--curve", "1..3"], known, is_silent=False) == ["--curve", "1..3"]


def test_a_former_flag_works_and_says_its_new_name():
    new = ["roofline", "Llama-3.1-8B", "--on", "H100", "--json", "--input-tokens", "512"]
    old = [*new[:-2], "--input", "512"]
    first, second = (CliRunner().invoke(app, arguments) for arguments in (new, old))
    assert first.exit_code == second.exit_code == 0
    assert first.stdout == second.stdout
    assert "--input is now --input-tokens" in second.stderr
    assert not first.stderr


def test_a_typo_is_answered_with_the_nearest_verb():
    done = CliRunner().invoke(app, ["pln"])
    assert done.exit_code == 2
    assert "did you mean 'plan'?" in done.output


def test_verbs_are_listed_in_groups():
    text = CliRunner().invoke(app, ["--help"]).stdout
    places = [text.index(word) for word in ("Plan and design:", " plan ", "Operate:", " watch ")]
    assert places == sorted(places)


@pytest.mark.parametrize("rate", ["inf", "1e18"])
def test_what_is_no_number_and_what_is_past_all_numbers_is_refused(rate: str):
    found = CliRunner().invoke(made(), ["show", "--rate", rate])
    assert isinstance(found.exception, InputError)
    assert "--rate" in str(found.exception)
    assert CliRunner().invoke(made(), ["show", "--rate", "1e14"]).exit_code == 0
