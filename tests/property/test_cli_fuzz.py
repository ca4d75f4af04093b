"""Whatever is typed, the program answers or says what is wrong: never a traceback (INV-9)."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model, models_in_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.cli.app import app
from gpuplan.errors import InputError, PlannerError

MODELS = models_in_catalog()
ACCELERATORS = tuple(str(item) for item in read_catalog().accelerators)
names = st.one_of(
    st.text(max_size=40),
    st.sampled_from(MODELS + ACCELERATORS),
    st.from_regex(r"[0-9]{0,3}x?[a-zA-Z0-9 ./_-]{0,20}", fullmatch=True),
)
integers = st.one_of(st.integers(-2, 70_000), st.integers(-(2**70), 2**70)).map(str)
numbers = st.one_of(integers, st.floats().map(str), st.text(max_size=8))
precisions = st.one_of(st.text(max_size=8), st.sampled_from(["fp8", "int4", "bf16", "nf4"]))
options = st.one_of(
    st.tuples(st.sampled_from(["--tp", "--pp", "--dp", "--ep", "--max-loras"]), integers),
    st.tuples(st.sampled_from(["--context", "--concurrency", "--max-num-seqs"]), integers),
    st.tuples(st.just("--gpu-memory-utilization"), numbers),
    st.tuples(st.sampled_from(["--precision", "--kv-precision"]), precisions),
    st.tuples(st.sampled_from(["--engine-version", "--task"]), st.text(max_size=8)),
)


def answer(arguments: list[str]):
    done = CliRunner().invoke(app, arguments)
    is_ours = done.exception is None or isinstance(done.exception, SystemExit | PlannerError)
    assert is_ours, f"{arguments}: {done.exception!r}"
    if isinstance(done.exception, PlannerError):
        for problem in done.exception.problems:
            assert all((problem.where, problem.what, problem.fix)), arguments
    return done


@given(names, names, st.lists(options, max_size=4))
@settings(deadline=None, max_examples=150)
def test_fit_answers_or_says_what_is_wrong(model, accelerator, given_options):
    flags = [part for option in given_options for part in option]
    answer(["fit", "--json", *flags, "--on", accelerator, "--", model])


@given(st.sampled_from(MODELS), st.sampled_from(ACCELERATORS), st.lists(options, max_size=3))
@settings(deadline=None, max_examples=150)
def test_every_model_on_every_accelerator(model, accelerator, given_options):
    flags = [part for option in given_options for part in option]
    done = answer(["fit", model, "--on", accelerator, "--json", *flags])
    if done.exit_code == 0:
        document = json.loads(done.stdout)
        assert 0 < document["n_active_params"] <= document["n_params"]
        assert document["weights_bytes_per_accelerator"] > 0
        assert document["max_concurrency"] >= 0


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=150)
def test_names_are_found_or_refused(text):
    for find in (find_model, lambda name: find_accelerator(name, read_catalog())):
        with contextlib.suppress(InputError):
            assert find(text) is not None


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_read(model):
    found = find_model(model)
    assert found.n_params >= found.n_active_params > 0
    assert found.main.n_params > 0
