"""Whether a model or a job fits: verdict, memory by part, and single changes that would help."""

import json

import pytest

from fakes.results import column, figure, fit, lines, survey, titled, training_fit
from gpuplan.report.prediction.fit import fit_sheet, survey_sheet, verdict
from gpuplan.report.prediction.training_run import PARTS, training_sheet
from gpuplan.units import GIB

FITS = {"context_tokens": 2550, "n_sequences": 38}
TOO_LONG = {"context_tokens": 16000, "n_sequences": 8}


def test_the_verdict_says_where_how_much_is_left_and_how_many_at_once():
    answer = fit(**FITS)
    head = verdict(answer)
    assert head.startswith("FITS on 2 × ")
    assert "38 × 2,550 tokens" in head
    assert f"{answer.headroom_bytes / GIB:,.2f} GiB per accelerator" in head
    assert f"up to {answer.max_concurrency:,} such sequences at once" in head


def test_what_does_not_fit_says_how_much_it_lacks():
    answer = fit("H100", **TOO_LONG)
    assert not answer.fits
    head = fit_sheet(answer).head
    assert head.startswith("DOES NOT FIT on 1 × ")
    assert f"lack {-answer.headroom_bytes / GIB:,.2f} GiB per accelerator" in head


def test_a_context_beyond_the_model_is_told_apart_from_memory():
    answer = fit("8xH200", context_tokens=400_000)
    assert not answer.fits
    assert answer.headroom_bytes >= 0
    assert "the context is 131,072 tokens" in verdict(answer)


def test_memory_parts_fill_the_engines_budget():
    sheet = fit_sheet(fit(**FITS))
    table = titled(sheet, "Memory of one accelerator")
    *parts, budget = map(figure, column(table, "size"))
    assert sum(parts) == pytest.approx(budget, abs=0.05)
    assert column(table, "share")[-1] == "92.0 %"


def test_only_parts_that_are_there_are_shown():
    table = titled(fit_sheet(fit(**FITS)), "Memory of one accelerator")
    assert "LoRA adapter slots" not in column(table, "part")
    assert "left for the KV cache" in column(table, "part")
    assert all(figure(size) != 0 for size in column(table, "size"))


def test_the_model_table_speaks_of_the_kv_cache():
    rows = dict(titled(fit_sheet(fit(**FITS)), "meta-llama").rows)
    assert rows["parameters"] == "70.55 B"
    assert rows["layers"] == "80"
    assert rows["maximum context"] == "131,072 tokens"
    assert any(label.startswith("KV cache per token") for label in rows)


def test_suggestions_come_only_where_it_does_not_fit():
    fitting, lacking = fit_sheet(fit(**FITS)), fit_sheet(fit("H100", **TOO_LONG))
    assert not any("makes it fit" in table.title for table in fitting.tables)
    table = titled(lacking, "Any one of these makes it fit")
    assert len(table.rows) == len(fit("H100", **TOO_LONG).suggestions)
    assert all(figure(cell) >= 0 for cell in column(table, "headroom then"))


def test_the_document_keeps_the_contract():
    document = json.loads(json.dumps(fit_sheet(fit(**FITS)).document))
    wanted = {
        "n_params", "n_active_params", "kv_bytes_per_token", "weights_bytes_per_accelerator",
        "usable_bytes", "fits", "headroom_bytes", "max_concurrency", "suggestions", "layout",
        "assumptions", "overrides", "schema_version", "cautions",
    }  # fmt: skip
    assert wanted <= set(document)
    assert document["layout"] == {"tp": 2, "pp": 1, "dp": 1, "ep": 1}
    assert document["precision"] == "fp8"
    assert isinstance(document["weights_bytes_per_accelerator"], int)


def test_bytes_of_the_document_are_those_of_the_answer():
    answer = fit(**FITS)
    document = fit_sheet(answer).document
    assert document["headroom_bytes"] == round(answer.headroom_bytes)
    assert document["kv_cache_bytes"] == round(answer.memory.cache_bytes)
    assert document["n_accelerators"] == 2


def test_assumptions_say_how_to_change_them():
    told = lines(fit_sheet(fit(**FITS)), "Assumptions:")
    assert told
    assert any("change with" in line for line in told)


def test_a_survey_lists_the_fewest_accelerators_first():
    sheet = survey_sheet(survey())
    counts = list(map(int, column(sheet.tables[0], "count")))
    assert counts == sorted(counts)
    assert len(counts) == len(survey().fits)
    assert "fewest accelerators that hold it" in sheet.tables[0].title


def test_a_survey_names_what_is_too_small():
    found = survey()
    sheet = survey_sheet(found)
    [told] = lines(sheet, "Too small, even eight or more of them:") or ("",)
    assert all(str(accelerator.id) in told for accelerator, _ in found.refused)
    assert len(sheet.document["refused"]) == len(found.refused)


def test_training_memory_adds_up_to_the_peak():
    answer = training_fit()
    table = titled(training_sheet(answer), "Memory of one accelerator at the peak")
    sizes = dict(zip(column(table, "part"), map(figure, column(table, "size")), strict=True))
    shown = [size for label, size in sizes.items() if label in PARTS.values()]
    assert sum(shown) == pytest.approx(sizes["peak"], abs=0.05)
    assert sizes["of it the minimum"] <= sizes["peak"]
    assert column(table, "share")[-1] == "100.0 %"


def test_training_verdict_names_task_batch_and_range():
    answer = training_fit("A10G", "qlora")
    head = training_sheet(answer).head
    assert "qlora of" in head
    assert "micro-batch 1 × 2,048 tokens" in head
    assert f"({answer.peak.low / GIB:,.2f} GiB to {answer.peak.high / GIB:,.2f} GiB)" in head


def test_training_that_does_not_fit_says_what_helps():
    answer = training_fit("H100", sequence_tokens=8192)
    sheet = training_sheet(answer)
    assert sheet.head.startswith("DOES NOT FIT on 1 × ")
    assert "per accelerator" in sheet.head
    assert titled(sheet, "Any one of these makes it fit").rows
    assert not lines(sheet, "Warnings:")


def test_training_document_has_every_part_in_whole_bytes():
    document = training_sheet(training_fit()).document
    assert all(isinstance(document[name], int) for name in PARTS)
    assert {"tp", "pp", "cp", "ep", "dp", "sharding"} == set(document["layout"])
    assert document["peak_bytes"]["low"] <= document["peak_bytes"]["value"]
    assert document["peak_bytes"]["value"] <= document["peak_bytes"]["high"]
