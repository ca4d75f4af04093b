"""Screenshots of the web page and of the report, made by the program itself for docs/img.

    python tools/screenshots.py [--out docs/img] [--all]

Needs Debian's Chromium and playwright. Without --all: the pictures that the documentation shows.
With it: every page at a phone, a laptop and a wall screen, light and dark, to look at.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from urllib.parse import urlencode
from urllib.request import urlopen

from playwright.sync_api import Browser, sync_playwright
from soak import free_port, started, wait_for

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SIZES = {"phone": (360, 780), "laptop": (1366, 768), "wall": (2560, 1440)}
WORDS = "Llama-3.3-70B chat for 6000 users on H100"
PLAN = "/?" + urlencode({"words": WORDS})
PAGES = {
    "plan": (PLAN, "#compared"),
    "catalog": ("/catalog?what=accelerators", "table"),
    "telemetry": ("/telemetry", "main"),
}
SHOWN = (("plan", "laptop", "light"), ("report", "laptop", "light"), ("plan", "phone", "dark"))


def wanted(is_all: bool) -> Iterator[tuple[str, str, str]]:
    """Page, size and colours of each picture."""
    if not is_all:
        yield from SHOWN
        return
    for name in (*PAGES, "report"):
        for size in SIZES:
            yield from ((name, size, scheme) for scheme in ("light", "dark"))


def shoot(browser: Browser, address: str, until: str, how: tuple[str, str], path: Path) -> None:
    """One picture of what a reader sees first."""
    size, scheme = how
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(until, timeout=120_000)
    page.screenshot(path=path)
    context.close()
    print(f"wrote {path}: {path.stat().st_size / 1024:.0f} KB")


def report_of(address: str, folder: Path) -> str:
    """The report of the plan, saved as the page offers it; its address."""
    end_s = time.monotonic() + 300
    while "data-job" in (text := urlopen(address + PLAN).read().decode()):
        if time.monotonic() > end_s:
            raise SystemExit("the plan was not answered")
        time.sleep(1)
    job = text.partition("/export/")[2].partition("/")[0]
    path = folder / "report.html"
    path.write_bytes(urlopen(f"{address}/export/{job}/report").read())
    return path.as_uri()


def main() -> int:
    """Start a server, look at it, end it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "img")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with TemporaryDirectory() as folder:
        serve = started("serve", "--port", str(port), "--state", f"{folder}/jobs.sqlite")
        try:
            wait_for(f"{address}/healthz")
            report = report_of(address, Path(folder))
            pages = {name: (address + path, until) for name, (path, until) in PAGES.items()}
            pages["report"] = (report, "main")
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=which("chromium"), args=FLAGS)
                for name, size, scheme in wanted(options.all):
                    path = options.out / f"{name}-{size}-{scheme}.png"
                    shoot(browser, *pages[name], (size, scheme), path)
                browser.close()
        finally:
            os.killpg(serve.pid, signal.SIGTERM)
            serve.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
