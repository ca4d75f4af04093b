"""Help speaks the field's language: named groups, texts that stand alone, no home-made words."""

import re

import pytest
import typer
from typer.testing import CliRunner

from gpuplan.cli.app import COMMANDS, app
from gpuplan.cli.command import group_of
from gpuplan.csv_rows import meanings

RENAMED = meanings("cli", "renamed_flag")

# Words that a text in mid-sentence begins with.
DANGLING = re.compile(
    r"(also|and|as|at|between|beside|by|each|for|from|if|in|into|its|of|on|or|per|so|such|than|that"
    r"|the|these|they|this|those|to|when|where|whether|which|while|whose|with)\b",
    re.IGNORECASE,
)
# The words that the field does not use, and does not look for.
HOME_MADE = (
    r"promis\w*|kept|broken|in time|mean use|how busy|urgenc\w*|a draft(?! token)|living"
    r"|hand(ed)? over|handover"
    r"|key-value|the cache|text of prompts|answers?|dealt|attention replicas?|machines?|islands?"
    r"|places?|left out|in all|price of|of hours|goes first|deviation|computed again|mend|heap"
    r"|may wait|foretold|told|said|seen|held(?![ -]out)|prospect|cut into parts|how it is paid"
)
FORBIDDEN = re.compile(rf"\b(?:{HOME_MADE})\b", re.IGNORECASE)


def verbs(group, prefix: str = "") -> list[tuple[str, object]]:
    found = []
    for name in group.list_commands(None):
        command, full = group.get_command(None, name), f"{prefix}{name}"
        is_group = hasattr(command, "list_commands")
        found += verbs(command, f"{full} ") if is_group else [(full, command)]
    return found


VERBS = dict(verbs(typer.main.get_command(app)))
PARAMETERS = [
    pytest.param(param, id=f"{verb} {param.opts[0]}")
    for verb, command in VERBS.items()
    for param in command.params
]


@pytest.mark.parametrize("param", PARAMETERS)
def test_every_option_has_a_group_and_a_text_that_stands_alone(param):
    if param.param_type_name == "option":
        assert param.rich_help_panel, "give it a group of gpuplan.cli.options"
    words = param.help.split()
    assert len(words) >= 3
    assert not DANGLING.match(param.help)
    assert words[0][0].isupper() or words[0] == "vLLM"
    assert not FORBIDDEN.search(param.help), FORBIDDEN.search(param.help)[0]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_in_a_sentence_what_it_does(verb):
    help_text = VERBS[verb].help
    first = help_text.splitlines()[0]
    assert first.endswith(".")
    assert len(first.split()) >= 4
    assert not FORBIDDEN.search(help_text), FORBIDDEN.search(help_text)[0]


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_list_of_verbs_fits_one_line_each(verb):
    line = COMMANDS[verb].line
    assert line.endswith(".")
    assert len(verb) + len(line) < 90
    assert not FORBIDDEN.search(line)


def test_the_options_that_matter_come_first():
    """Verbs with more options than a screen holds open with ten at most."""
    for verb, command in VERBS.items():
        options = [param for param in command.params if param.param_type_name == "option"]
        if len(options) > 24:
            first = [param for param in options if group_of(param) == "Common options"]
            assert 0 < len(first) <= 10, verb
            assert options[: len(first)] == first, verb


def test_options_of_a_group_stand_together():
    for verb, command in VERBS.items():
        done = CliRunner().invoke(app, [*verb.split(), "--help"])
        headings = re.findall(r"^(\S.*):$", done.output, re.MULTILINE)
        assert len(headings) == len(set(headings)), verb
        for param in command.params:
            assert group_of(param) in headings, f"{verb} {param.opts[0]}"


def test_former_flags_are_understood_and_not_shown():
    assert len(RENAMED) == len(set(RENAMED.values()))
    for verb, command in VERBS.items():
        own = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
        new = {flag for flag in own if flag in RENAMED.values()}
        former = {old for old, now in RENAMED.items() if now in new}
        assert not former & own, verb
    everywhere = {
        flag
        for command in VERBS.values()
        for param in command.params
        for flag in (*param.opts, *param.secondary_opts)
    }
    assert set(RENAMED.values()) <= everywhere
