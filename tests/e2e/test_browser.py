"""The main journeys in a real browser: three sizes, no console errors, no outside requests, axe."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from shutil import which
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pytest

from gpuplan.server.web.state import EXAMPLE

pytest.importorskip("playwright", reason="playwright is not installed")
axe_module = pytest.importorskip("axe_playwright_python.sync_playwright")
from playwright.sync_api import sync_playwright  # noqa: E402

CHROMIUM = which("chromium") or which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("chromium is not installed: apt-get install chromium", allow_module_level=True)

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"phone": (360, 780), "desk": (1280, 900), "wall": (2560, 1440)}
LONG_MS = 60_000  # on a machine that is busy with other tests
WORDS = "Llama-3.1-8B chat, 4 requests/s, 500 input tokens, 100 output tokens, on L40S"
SHOP = "/?" + urlencode({"words": WORDS})
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gpuplan", "serve", "--port", str(port)]
    command += ["--state", str(folder / "jobs.sqlite")]
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    end_s = time.monotonic() + 120
    while True:
        try:
            urlopen(f"{address}/healthz").close()
            break
        except OSError:
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end_s
            time.sleep(0.2)
    # A fresh machine compiles its kernels first: that is no part of any journey.
    end_s = time.monotonic() + 300
    while b"data-job" in urlopen(f"{address}/answer").read():
        assert time.monotonic() < end_s, "the example was not answered"
    yield address
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=30)
    log.close()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


class Visit:
    """A page that remembers what went wrong while it was looked at."""

    def __init__(self, browser, server, size, **options):
        width, height = SIZES[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, base_url=server, **options
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(LONG_MS)
        self.wrong = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("request", lambda asked: self._asked(asked, server))

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def _asked(self, request, server):
        if urlsplit(request.url).scheme in ("http", "https") and not request.url.startswith(server):
            self.wrong.append(f"outside request: {request.url}")

    def open(self, path, until="main"):
        self.page.goto(path)
        self.page.wait_for_selector(until)
        return self.page

    def close(self):
        assert self.wrong == []
        self.context.close()


@pytest.fixture
def visit(browser, server, request):
    made = []

    def start(size="desk", **options):
        made.append(Visit(browser, server, size, **options))
        return made[-1]

    yield start
    for each in made:
        each.close()


def refuse_faults(page):
    """Raise where axe finds anything that keeps people out."""
    found = axe_module.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def keep_picture(page, name):
    """A screenshot for people to look at, where a folder is named."""
    folder = os.environ.get("GPUPLAN_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def width_of(page):
    return page.evaluate("document.documentElement.scrollWidth")


@pytest.mark.parametrize("size", SIZES)
def test_the_start_page_shows_an_answered_example(visit, size):
    page = visit(size).open("/", "#compared")
    assert page.input_value("#words-text") == EXAMPLE
    assert "$" in page.inner_text(".headline")
    assert page.locator("table.sortable tbody tr").count() > 10
    assert page.locator("tr.chosen").count() == 1
    assert width_of(page) <= SIZES[size][0]
    refuse_faults(page)
    keep_picture(page, f"start-{size}")


@pytest.mark.parametrize("path", ["/plans", "/telemetry", "/catalog", "/catalog?item=h100-sxm"])
@pytest.mark.parametrize("size", ["phone", "desk"])
def test_other_pages_fit_their_screen(visit, path, size):
    scheme = "dark" if size == "phone" else "light"
    page = visit(size, color_scheme=scheme).open(path)
    assert width_of(page) <= SIZES[size][0]
    refuse_faults(page)
    keep_picture(page, f"{path.strip('/').replace('?', '-')}-{size}")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Pages that the command line writes, to be opened from a disk."""
    folder = tmp_path_factory.mktemp("pages")
    jobs = [f"{EXAMPLES}/clusters/six-teams.yaml", "--jobs", f"{EXAMPLES}/clusters/six-teams.csv"]
    load = ["--model", "Llama-3.1-8B", "--on", "H100", "--rate", "2", "--duration", "2m"]
    load += ["--input-tokens", "500", "--output-tokens", "100"]
    commands = {
        "cluster": ["simulate", *jobs, "--chart"],
        "charts": ["simulate", *load, "--chart"],
        "report": ["plan", WORDS, "--html"],
    }
    for name, command in commands.items():
        full = [sys.executable, "-m", "gpuplan", *command, str(folder / f"{name}.html")]
        subprocess.run(full, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", ["cluster", "charts", "report"])
@pytest.mark.parametrize("size", ["phone", "desk"])
def test_written_pages_fit_their_screen(visit, written, name, size):
    scheme = "dark" if size == "phone" else "light"
    page = visit(size, color_scheme=scheme).open((written / f"{name}.html").as_uri())
    assert width_of(page) <= SIZES[size][0]
    refuse_faults(page)
    keep_picture(page, f"written-{name}-{size}")


def test_the_answer_follows_a_slider_and_the_address_keeps_it(visit):
    page = visit(color_scheme="dark").open(SHOP, "#compared")
    refuse_faults(page)
    before = page.inner_text(".headline")
    slider = page.locator("input[type=range]").first
    slider.focus()
    page.keyboard.press("End")
    page.wait_for_selector("#live[data-quick-ms]")
    page.wait_for_selector("#live[data-full-ms][aria-busy=false] #compared")
    after = page.inner_text(".headline")
    assert after != before
    assert "requests_per_s=" in page.url
    shared = visit().open(page.url, "#compared")
    assert shared.inner_text(".headline") == after
    assert shared.locator("input[type=number]").first.input_value() == slider.input_value()


def test_a_budget_that_is_too_low_says_what_binds(visit):
    page = visit().open(SHOP + "&budget.usd_per_month=1", "#compared")
    assert page.inner_text(".headline").startswith("No plan meets every limit")
    assert page.locator("tr.over").count() >= 1
    refuse_faults(page)


def test_a_heading_sorts_and_turns_round(visit):
    page = visit().open("/", "#compared")
    heading = page.get_by_role("columnheader", name="$/month")
    values = lambda: [  # noqa: E731
        float(cell.get_attribute("data-sort"))
        for cell in page.locator('.sortable td[data-label="$/month"]').all()
    ]
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert values() == sorted(values())
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert values() == sorted(values(), reverse=True)


def test_plans_are_saved_and_seen_side_by_side(visit):
    page = visit().open(SHOP, "#take")
    for name, path in (("four", SHOP), ("forty", SHOP.replace("4+requests", "40+requests"))):
        page.goto(path)
        page.wait_for_selector("#take")
        page.get_by_label("Name").fill(name)
        page.get_by_role("button", name="Save to compare").click()
        page.wait_for_url("**/plans")
    page.get_by_role("button", name="Side by side").click()
    page.wait_for_selector("text=What differs")
    assert page.get_by_role("link", name="forty").count() == 1
    refuse_faults(page)
    keep_picture(page, "side-by-side")


def test_what_if_compares_with_the_plan(visit):
    page = visit("phone").open(SHOP, "#what-if-title")
    page.get_by_role("link", name="twice the load").click()
    page.wait_for_selector("text=Figures of each plan")
    assert page.get_by_role("link", name=re.compile("requests_per_s=8")).count() == 1
    assert width_of(page) <= SIZES["phone"][0]
    keep_picture(page, "what-if-phone")


def test_a_manifest_is_downloaded(visit, tmp_path):
    page = visit().open(SHOP, "#take")
    for name, part in (("kubernetes", "Deployment"), ("plan.yaml", "gpuplan-plan")):
        with page.expect_download() as waiting:
            page.get_by_role("link", name=name, exact=True).click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        content = path.read_bytes()
        assert part.encode() in content or content[:2] == b"PK"


@pytest.mark.parametrize(
    ("kind", "name", "shown"),
    [("telemetry", "telemetry.csv", "utilization"), ("trace", "requests.csv", "requests/s")],
)
def test_a_file_is_diagnosed_with_a_heat_map(visit, kind, name, shown):
    page = visit().open("/telemetry")
    page.check(f"input[value={kind}]")
    page.set_input_files("#file", EXAMPLES / "data" / name)
    page.wait_for_selector("#text:valid")
    page.get_by_role("button", name="Diagnose").click()
    page.wait_for_selector(".headline")
    assert shown in page.inner_text(".headline")
    assert page.locator("svg rect.heat").count() > 0
    refuse_faults(page)
    keep_picture(page, kind)


def test_errors_are_told_on_the_page(visit):
    started = visit()
    page = started.open("/?words=serve+nothing+known+to+anybody", "[role=alert]")
    assert page.inner_text("[role=alert]")
    refuse_faults(page)
    started.wrong.clear()  # a refused page is an error of the console


def test_everything_is_there_without_scripts_and_in_print(visit):
    page = visit(java_script_enabled=False).open(SHOP, "#compared")
    assert "$" in page.inner_text(".headline")
    page.emulate_media(media="print")
    assert not page.locator("#details").is_visible()
    assert page.locator("table.sortable").is_visible()


def test_the_keyboard_reaches_the_answer_and_the_theme(visit):
    page = visit().open(SHOP, "#compared")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    button = page.locator("#theme")
    for wanted in ("light", "dark", "auto"):
        button.press("Enter")
        assert button.inner_text() == f"Theme: {wanted}"
