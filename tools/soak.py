"""`serve` and `watch` under load: memory, threads and open files every few seconds, and a verdict.

    python tools/soak.py [--minutes 60] [--out soak.csv]

Clients ask `serve` for cached and new answers, pages and errors, one of them for a new plan each
time; `watch` reads a monitoring server made for it.
Exit code 4 where memory or threads of a process grow from the first third to the last.
"""

import argparse
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

STEP_S = 5.0
GROWTH_FRAC, GROWTH_MB = 0.10, 20.0  # of memory, over a third of the run; both must be passed
MODEL, CARD = "Llama-3.1-8B", "H100"
PLANNED = ("Llama-3.3-70B", "Qwen3-32B", "Llama-3.1-8B", "DeepSeek-V3", "Mistral-7B", "Gemma-3-27B")


class Monitoring(BaseHTTPRequestHandler):
    """A Prometheus that answers every query with a steady fleet."""

    def do_GET(self) -> None:
        """One series of utilization for each GPU, or an instant value."""
        query = parse_qs(urlsplit(self.path).query)
        now = time.time()
        start = float(query.get("start", [now - 600])[0])
        end, step = float(query.get("end", [now])[0]), float(query.get("step", [30])[0])
        n = max(1, min(2000, int((end - start) / max(step, 1.0))))
        rows = []
        for gpu in range(4):
            labels = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": str(gpu), "Hostname": "node-1"}
            values = [[start + i * step, str(60 + (i + gpu) % 30)] for i in range(n)]
            rows.append({"metric": labels, "values": values, "value": values[-1]})
        kind = "matrix" if "query_range" in self.path else "vector"
        body = json.dumps({"status": "success", "data": {"resultType": kind, "result": rows}})
        with suppress(BrokenPipeError, ConnectionResetError):  # a client that has had enough
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def started(*words: str) -> subprocess.Popen[bytes]:
    """A gpuplan of its own, in a process group of its own."""
    command = [sys.executable, "-m", "gpuplan", *words]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)


def wait_for(address: str) -> None:
    """Return when the address answers."""
    for _ in range(3000):
        try:
            urlopen(address).close()
            return
        except HTTPError:
            return  # it answers
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"{address} does not answer")


def family(pid: int) -> list[int]:
    """The process and all that it started."""
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        for task in Path(f"/proc/{found[-1]}/task").glob("*/children"):
            todo += map(int, task.read_text().split())
    return found


def measured(pid: int) -> dict[str, float]:
    """Resident MB, threads and open files of a process and its children."""
    rss_kb = threads = files = 0
    for each in family(pid):
        try:
            status = Path(f"/proc/{each}/status").read_text()
            files += len(list(Path(f"/proc/{each}/fd").iterdir()))
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        rss_kb += int(fields.get("VmRSS", "0 kB").split()[0])
        threads += int(fields.get("Threads", "0"))
    return {"rss_mb": rss_kb / 1024, "threads": threads, "files": files}


class Clients:
    """Threads that ask until they are told to stop."""

    def __init__(self, address: str, n: int) -> None:
        self.address, self.stop = address, threading.Event()
        self.n_answers, self.n_errors, self.n_plans = 0, 0, 0
        self._threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(n)]
        for each in self._threads:
            each.start()

    def _ask(self, client: int) -> None:
        n = 0
        ask = self._one if client else self._plan
        while not self.stop.is_set():
            n += 1
            try:
                ask(client, n)
                self.n_answers += 1
            except HTTPError as error:
                self.n_answers += 1
                self.n_errors += error.code >= 500
            except (URLError, OSError):
                self.n_errors += not self.stop.is_set()
            self.stop.wait(0.05)

    def _plan(self, _: int, n: int) -> None:
        """A plan that nobody has asked for yet, over all accelerators."""
        asked = {"words": f"{PLANNED[n % len(PLANNED)]} chat for {1000 + 37 * n} users"}
        self._post("plan?wait=300&sheet=true", asked | {"samples": 50})
        self.n_plans += 1

    def _post(self, path: str, asked: object) -> None:
        kind = {"Content-Type": "application/json"}
        body = json.dumps(asked).encode()
        urlopen(Request(f"{self.address}/v1/{path}", body, kind), timeout=320).read()

    def _one(self, client: int, n: int) -> None:
        asked = {"model": MODEL, "on": CARD, "context_tokens": 1000 + (n * 7 + client) % 4000}
        bodies = {0: asked, 1: {**asked, "context_tokens": 4096}, 2: {"nothing": "known"}}
        if n % 5 < 3:
            self._post("fit", bodies[n % 5])
        else:
            path = "/?" + urlencode({}) if n % 5 == 3 else "/catalog?what=accelerators"
            urlopen(self.address + path, timeout=300).read()

    def end(self) -> None:
        """Stop all of them."""
        self.stop.set()
        for each in self._threads:
            each.join(timeout=330)


def grows(rows: list[dict[str, float]], name: str) -> bool:
    """Whether a process takes more in the last third than in the middle one; the first warms up."""
    third = max(1, len(rows) // 3)
    middle = median(row[f"{name}_rss_mb"] for row in rows[third : 2 * third] or rows)
    last = median(row[f"{name}_rss_mb"] for row in rows[2 * third :] or rows)
    more_threads = median(row[f"{name}_threads"] for row in rows[2 * third :] or rows) > 2 + median(
        row[f"{name}_threads"] for row in rows[third : 2 * third] or rows
    )
    return more_threads or (last - middle > GROWTH_MB and last > middle * (1 + GROWTH_FRAC))


def observed(pids: dict[str, int], minutes: float, out: Path) -> list[dict[str, float]]:
    """A row every few seconds, until the time is over; in the file at once."""
    begun, rows = time.monotonic(), []
    with out.open("w", newline="", encoding="utf-8", buffering=1) as file:
        while time.monotonic() - begun < 60 * minutes:
            row = {"at_s": round(time.monotonic() - begun, 1)}
            for name, pid in pids.items():
                row |= {f"{name}_{key}": value for key, value in measured(pid).items()}
            writer = csv.DictWriter(file, row)
            if not rows:
                writer.writeheader()
            writer.writerow(row)
            rows.append(row)
            time.sleep(STEP_S)
    return rows


def main() -> int:
    """Start both, load them, watch them, say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("soak.csv"))
    options = parser.parse_args()
    monitoring = ThreadingHTTPServer(("127.0.0.1", 0), Monitoring)
    threading.Thread(target=monitoring.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{monitoring.server_port}"
    port, watch_port = free_port(), free_port()
    address = f"http://127.0.0.1:{port}"
    with TemporaryDirectory() as folder:
        serve = started("serve", "--port", str(port), "--state", f"{folder}/jobs.sqlite")
        listen = ("--listen", f"127.0.0.1:{watch_port}", "--interval-s", "5")
        watch = started("watch", url, *listen, "--state", f"{folder}/watch.json")
        try:
            wait_for(f"{address}/healthz")
            wait_for(f"http://127.0.0.1:{watch_port}/metrics")
            clients = Clients(address, options.clients)
            pids = {"serve": serve.pid, "watch": watch.pid}
            rows = observed(pids, options.minutes, options.out)
            clients.end()
        finally:
            for process in (serve, watch):
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
    return reported(rows, clients)


def reported(rows: list[dict[str, float]], clients: Clients) -> int:
    """A line for each process; the exit code."""
    asked = f"{clients.n_answers:,} answers, {clients.n_plans} of them new plans"
    print(f"{asked}, {clients.n_errors} errors, {len(rows)} samples")
    bad = clients.n_errors > 0
    for name in ("serve", "watch"):
        third = rows[len(rows) // 3], rows[-1]
        text = ", ".join(
            f"{key} {third[0][f'{name}_{key}']:.0f} -> {third[1][f'{name}_{key}']:.0f}"
            for key in ("rss_mb", "threads", "files")
        )
        bad |= grows(rows, name)
        print(f"{name}: {text}: {'GROWS' if grows(rows, name) else 'flat'}")
    return 4 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
