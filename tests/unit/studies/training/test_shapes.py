"""What may be tried for a training job: degrees that divide, shardings, what the user asks for."""

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.scenario.workload import Layout
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.studies.measured.names import named_model
from gpuplan.studies.training.shapes import LayoutOptions, ServerKind, TrainingTask, with_chunks

CARDS = read_catalog().accelerators


def options(name="Llama-3.1-8B", stack="megatron", *, n=8, **rest):
    given = {"sequence_tokens": 4096, "batch_samples": 256.0, **rest}
    job = TrainingTask(
        model=named_model(name), columns=(), task="pretrain", precision="bf16", **given
    )
    return LayoutOptions(job, ServerKind(accelerator=CARDS["h100-sxm"], n_per_node=n), stack)


def test_shardings_follow_software_and_distance():
    assert options().shardings(1) == ("none",)
    assert options().shardings(8) == ("zero1", "zero3")
    assert options().shardings(64) == ("zero1", "zero3", "hsdp")
    assert options(stack="finetune").shardings(64) == ("none", "zero3")
    assert options(requested=Layout(sharding="fsdp")).shardings(64) == ("zero3",)


@pytest.mark.parametrize(
    ("name", "pp", "chunks"),
    [
        ("Llama-3.1-8B", 1, (1,)),  # no pipeline, no chunks
        ("Llama-3.1-8B", 4, (1, 8)),  # 32 layers: single ones
        ("Llama-3.1-405B", 16, (1, 4)),  # 126 layers and two tables: 128 slots of 64 chunks
        ("Llama-3.1-405B", 9, (1, 14)),
    ],
)
def test_chunks_divide_the_layers_with_or_without_the_tables(name, pp, chunks):
    assert options(name).chunks(pp) == chunks


def test_only_megatron_has_pipelines_and_scripts_have_no_model_parallelism():
    assert options().stages("zero1")[-1] > 1
    assert options().stages("zero3") == (1,)
    script = options(stack="finetune")
    assert (script.tensor, script.stages("none"), script.context) == ((1,), (1,), (1,))
    assert options(requested=Layout(n_pipeline=3)).stages("zero1") == (3,)


def test_tensor_parallelism_stays_inside_servers():
    assert options(n=4).tensor == (1, 2, 4)
    assert options(n=1).tensor == (1,)
    assert options(requested=Layout(n_tensor=16)).tensor == (16,)


def test_experts_and_long_sequences_are_split():
    assert options().experts() == (1,)
    assert options("Mixtral-8x7B-v0.1").experts() == (1, 2, 4, 8)
    assert options("Mixtral-8x7B-v0.1", requested=Layout(n_expert=4)).experts() == (4,)
    assert options().context == (1,)
    assert options(sequence_tokens=65_536).context == (1, 2, 4, 8)
    assert options(requested=Layout(n_context=2)).context == (2,)


def test_recomputation_by_its_name_in_each_software():
    assert options().recomputes == ("none", "full")
    assert options(stack="fsdp").recomputes == ("none", "alternate", "full")
    asked = Layout(recompute="selective")
    assert options(stack="fsdp", requested=asked).recomputes == ("alternate",)
    assert options(requested=asked).recomputes == ("selective",)


def test_chunks_make_a_schedule():
    plain = ParallelLayout(pp=4, dp=2)
    assert with_chunks(plain, 1) == plain
    assert with_chunks(plain, 8).schedule == "interleaved"


def test_batches_by_the_step_or_by_the_accelerator():
    assert options().job.n_samples(64) == 256
    assert options(samples_per_accelerator=2.0).job.n_samples(64) == 128
    assert options(samples_per_accelerator=0.001).job.n_samples(64) == 1
