"""The pages, as a browser without scripts sees them."""

import html
import io
import json
import re
import zipfile
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient

from gpuplan.report.formats import accelerator_name, percent, span, usd
from gpuplan.server.rest.access import Access, read_tokens
from gpuplan.server.rest.serve import ServeOptions, application

SHOP = """\
version: 1
name: shop
workloads:
  - name: chat
    kind: online_inference
    model: meta-llama/Llama-3.1-8B-Instruct
    demand: {requests_per_s: 4}
    request: {input_tokens: 500, output_tokens: 100}
    slo: {ttft_p95_ms: 2000, tpot_p95_ms: 60}
policy: {accelerators: {allowed: [L40S, L4]}}
"""
HERE = "http://localhost"
HTML = {"Accept": "text/html"}
TELEMETRY = "timestamp,gpu,hostname,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE\n" + "\n".join(
    f"{1789948800 + 600 * step}.0,{gpu},node-0,{95 if step > 40 else 5},300.0"
    for step in range(72)
    for gpu in range(2)
)
TRACE = "arrival_s,input_tokens,output_tokens\n" + "\n".join(
    f"{3 * i},{200 + i % 50},{40 + i % 7}" for i in range(2000)
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs") / "jobs.sqlite"
    app = application(ServeOptions("127.0.0.1", 8642, path, None, 1, 120.0), Access())
    with TestClient(app, base_url=HERE, headers=HTML) as found:
        yield found


def answered(client, **params):
    """The answer to the shop's question (or to words), waited for."""
    asked = params if "words" in params else {"scenario": SHOP, **params}
    for _ in range(8):
        found = client.get("/answer", params=asked)
        assert found.status_code == 200, found.text
        if "data-job" not in found.text:
            break
    return found.text


@pytest.fixture(scope="module")
def plan(client):
    return answered(client)


def job_of(text):
    return re.search(r"/export/([0-9a-f]{32})/report", text)[1]


def test_the_answer_begins_with_a_sentence_and_the_table(plan):
    assert "Serve Llama-3.1-8B-Instruct" in plan
    assert plan.index('class="headline"') < plan.index("<table") < plan.index("<svg")
    assert "this plan" in plan
    assert "Purchase option" in plan


def test_the_page_holds_the_answer_and_its_state(client, plan):
    found = client.get("/", params={"scenario": SHOP}).text
    assert "Serve Llama-3.1-8B-Instruct" in found
    assert 'name="workloads[0].demand.requests_per_s"' in found
    assert "name: shop" in found


def test_nothing_within_a_page_needs_what_the_policy_forbids(client, plan):
    found = client.get("/", params={"scenario": SHOP})
    policy = found.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert not re.search(r"<script(?! src=)|\sstyle=|\son\w+=|<style", found.text)
    assert not re.search(r'(src|href)="(https?:)?//', found.text)


def test_a_budget_that_is_too_low_keeps_the_table(client):
    text = answered(client, **{"budget.usd_per_month": "1"})
    assert "No plan meets every limit" in text
    assert "over budget" in text
    assert "Take it with you" not in text


def test_a_power_limit_that_nothing_keeps_names_the_least(client):
    text = answered(client, power_kw="0.001")
    assert "No fleet keeps to 0.001 kW" in text
    assert "over the power limit" in text


def test_a_generous_power_limit_changes_nothing(client, plan):
    headline = re.search(r'class="headline">(.*?)</p>', plan)[1]
    assert headline in answered(client, power_kw="100000")


def test_the_page_says_how_words_were_read_and_what_was_assumed(client):
    words = "Llama-3.1-8B chat for 300 users on L40S"
    found = answered(client, words=words, **{"workloads[0].slo.ttft_p95_ms": "1500"})
    read = html.unescape(found.partition('class="reading"')[2].partition("</section>")[0])
    assert found.index("headline") < found.index('class="reading"') < found.index("<table")
    assert "“300 users” as demand.users <b>300</b>" in read
    assert "share of users active at the peak <b>0.2</b>" in read
    assert "tpot_p95_ms" in read
    assert "ttft_p95_ms" not in read, "what the page set is no assumption"


def test_a_scenario_file_has_no_words_to_be_read(plan):
    assert 'class="reading"' not in plan


def test_a_pinned_answer_is_the_first_lines_alone(client):
    text = answered(client, pin="l4,bf16")
    assert "L4" in re.search(r'class="headline">(.*?)</p>', text)[1]
    assert "the comparison follows" in text
    assert "<table" not in text


def test_the_sheet_of_a_verb_is_there_for_programs(client):
    body = {"scenario": yaml.safe_load(SHOP), "samples": 200}
    found = client.post("/v1/plan", params={"sheet": True, "wait": 120}, json=body)
    assert set(found.json()["result"]) == {
        *("document", "head", "tables", "remarks", "heat", "purchases", "reading")
    }


def test_what_if_shows_both_and_what_differs(client):
    params = {"scenario": SHOP, "what_if": "workloads[0].demand.requests_per_s=40"}
    text = client.get("/what-if", params=params).text
    assert "as it is" in text
    assert "requests_per_s=40" in text
    assert "What differs" in text


def test_what_if_without_a_change_leads_back(client):
    found = client.get("/what-if", params={"scenario": SHOP}, follow_redirects=False)
    assert found.status_code == 303
    assert found.headers["location"].startswith("/?scenario=")


def test_saved_plans_are_compared_and_removed(client, plan):
    other = answered(client, **{"workloads[0].demand.requests_per_s": "40"})
    for name, text in (("small", plan), ("large <b>", other)):
        form = {"job": job_of(text), "name": name, "address": "/?words=x"}
        assert client.post("/plans", data=form).status_code == 200
    listed = client.get("/plans").text
    assert "large &lt;b&gt;" in listed
    beside = client.get("/plans", params={"plan": ["small", "large <b>"]}).text
    assert "What differs" in beside
    assert "Cost per month" in beside
    client.post("/plans", data={"forget": "small"})
    assert "small" not in client.get("/plans").text


def test_an_address_of_another_site_is_not_kept(client, plan):
    form = {"job": job_of(plan), "name": "odd", "address": "//evil.example"}
    assert "evil" not in client.post("/plans", data=form).text


@pytest.mark.parametrize(
    ("target", "kind", "part"),
    [
        ("plan.yaml", "application/yaml", b"gpuplan-plan"),
        ("plan.json", "application/json", b"gpuplan-plan"),
        ("report", "text/html", b"<html"),
        ("report.md", "text/markdown", b"# "),
        ("report.xlsx", "application/vnd.openxmlformats", b"PK"),
        ("bom", "text/csv", b"l4"),
        ("vllm", "text/plain", b"vllm serve"),
    ],
)
def test_exports_are_downloads(client, plan, target, kind, part):
    found = client.get(f"/export/{job_of(plan)}/{target}")
    assert found.status_code == 200, found.text
    assert found.headers["content-type"].startswith(kind)
    assert found.headers["content-disposition"].startswith("attachment")
    assert part in found.content.lower() if target == "bom" else part in found.content


def test_several_files_come_as_one_archive(client, plan):
    found = client.get(f"/export/{job_of(plan)}/all")
    names = zipfile.ZipFile(io.BytesIO(found.content)).namelist()
    assert len(names) > 5


def test_an_export_that_the_plan_does_not_allow_says_what_it_needs(client, plan):
    found = client.get(f"/export/{job_of(plan)}/training")
    assert found.status_code == 422
    assert "training" in found.text
    assert client.get(f"/export/{'0' * 32}/bom").status_code == 404


def test_telemetry_becomes_a_diagnosis_with_a_heat_map(client):
    found = client.post("/telemetry", data={"kind": "telemetry", "text": TELEMETRY})
    assert found.status_code == 200
    assert "/telemetry/" in str(found.url)
    assert "heat b" in found.text
    assert "utilization mean" in found.text


def test_a_trace_leads_to_a_plan(client):
    found = client.post("/telemetry", data={"kind": "trace", "text": TRACE}).text
    assert "2,000 requests" in found
    assert "Requests over time" in found
    assert re.search(r'href="/\?words=Llama[^"]+requests[^"]+">Plan for this load', found)


def test_text_that_is_no_telemetry_is_explained(client):
    found = client.post("/telemetry", data={"kind": "telemetry", "text": "hello there"})
    assert found.status_code == 422
    assert "This could not be answered" in found.text
    assert client.post("/telemetry", data={"text": " "}).status_code == 422


def test_the_catalog_is_browsed_with_sources(client):
    listed = client.get("/catalog", params={"q": "h100"}).text
    assert "item=h100-sxm" in listed
    assert "item=a100" not in listed
    one = client.get("/catalog", params={"item": "h100-sxm"}).text
    assert "source" in one
    assert client.get("/catalog", params={"what": "cheese"}).status_code == 422


def test_errors_are_pages_for_browsers_and_documents_for_programs(client):
    assert "<h1>" in client.get("/nothing").text
    assert client.get("/nothing", headers={"Accept": "*/*"}).json()["error"]["code"] == "http"
    wrong = client.get("/answer", params={"scenario": SHOP, "policy.survive": "nods"})
    assert "nods" in wrong.text
    assert client.get("/answer", params={"power_kw": "x"}).status_code == 422


@pytest.mark.parametrize("name", ["page.css", "page.js", "icon.svg"])
def test_files_of_the_page_are_served(client, name):
    assert client.get(f"/static/{name}").status_code == 200


@pytest.mark.parametrize("name", ["../pages.py", "..%2fpages.py", "pages.py", "%2fetc%2fpasswd"])
def test_no_other_file_is_served(client, name):
    assert client.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize("path", ["/plans", "/telemetry", "/login"])
def test_a_form_of_too_many_fields_is_refused(client, path):
    assert client.post(path, data={f"k{i}": "1" for i in range(51)}).status_code == 422


def test_pages_of_other_sites_change_nothing(client):
    found = client.post(
        "/telemetry", data={"text": TELEMETRY}, headers={"Origin": "https://evil.example"}
    )
    assert found.status_code == 403
    own = {"Origin": HERE}
    assert client.post("/telemetry", data={"text": TELEMETRY}, headers=own).status_code == 200


def test_a_token_is_entered_once(tmp_path: Path):
    (tmp_path / "tokens").write_text("ann a-secret\n", encoding="utf-8")
    options = ServeOptions("0.0.0.0", 1, tmp_path / "j.sqlite", tmp_path / "tokens", 1, 60.0)
    access = Access(owners=read_tokens(tmp_path / "tokens"))
    with TestClient(application(options, access), base_url=HERE, headers=HTML) as client:
        assert str(client.get("/plans").url).endswith("/login")
        assert client.post("/login", data={"token": "guess"}).status_code == 401
        client.post("/login", data={"token": "a-secret"}, follow_redirects=False)
        assert client.get("/plans").status_code == 200
        cookie = next(iter(client.cookies.jar))
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert client.get("/v1/jobs", headers={"Authorization": "Bearer guess"}).status_code == 401


def exports(client, text):
    """The plan in every form that the page offers, as text; of workbooks that of their cells."""
    job = job_of(text)
    forms = ("report", "report.md", "report.csv", "plan.json", "plan.yaml")
    found = {form: client.get(f"/export/{job}/{form}").text for form in forms}
    workbook = client.get(f"/export/{job}/report.xlsx").content
    with zipfile.ZipFile(io.BytesIO(workbook)) as packed:
        names = [name for name in packed.namelist() if name.endswith(".xml")]
        found["report.xlsx"] = " ".join(packed.read(name).decode() for name in names)
    return {form: html.unescape(text) for form, text in found.items()}


def test_cost_fleet_latency_power_and_odds_are_the_same_on_the_page_and_in_every_file(client, plan):
    """JSON is the truth; the page, the report, Markdown, CSV, the workbook and REST repeat it."""
    found = exports(client, plan)
    document = json.loads(found["plan.json"])
    assert yaml.safe_load(found["plan.yaml"]) == document
    body = {"scenario": yaml.safe_load(SHOP), "samples": 200}
    assert client.post("/v1/plan", params={"wait": 120}, json=body).json()["result"] == document
    whole, [pool] = document["plan"], document["plan"]["pools"]
    cost, kw = whole["cost_usd_per_month"], whole["power_w"]["value"] / 1000
    assert pool["n_accelerators"] == document["comparison"][0]["n_accelerators"]
    fleet = f"{pool['n_accelerators']} × {accelerator_name(pool['accelerator'])}"
    shown = [usd(cost["value"]), fleet, percent(document["risk"]["probability_frac"])]
    shown += [f"{usd(cost['low'])} … {usd(cost['high'])}"]
    for form in ("report", "report.md"):
        for words in (*shown, f"{kw:,.1f}"):
            assert words in found[form], (form, words)
    for words in (shown[0], f"{kw:,.1f}", *(n for n in shown[3:])):
        assert words in html.unescape(plan), words
    assert f"<v>{cost['value']:.0f}</v>" in found["report.xlsx"]
    assert shown[0] in found["report.csv"]
    for slo in whole["slo"]["promises"]:
        reached = slo["reached_s"]["value"]
        assert f"{reached * 1000:,.0f}" in html.unescape(plan), slo["what"]
        for form in ("report", "report.md", "report.csv", "report.xlsx"):
            assert span(reached) in found[form], (form, slo["what"])
