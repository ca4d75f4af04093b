"""The server under load: cached answers beside a bare FastAPI ping, and a hand on a slider.

    python benchmarks/bench_serve.py [--seconds 60] [--connections 200]

Both servers run at the same time on loopback, and each second of the run is asked of both, so that
whatever else the machine does slows both.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

PING = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/ping")
async def ping():
    return {"state": "ok"}
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
"""
BODY = json.dumps({"model": "Llama-3.1-8B", "on": "H100"})
QUESTION = (
    f"POST /v1/fit HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(BODY)}\r\n\r\n{BODY}"
).encode()
PING_QUESTION = b"GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
WORDS = "Llama-3.3-70B chat for 6000 users on H100"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def started(command, port, path):
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}").close()
            return process
        except OSError:
            time.sleep(0.2)
    raise TimeoutError("no server")


async def asked(reader, writer, question):
    """Status of one question over an open connection."""
    writer.write(question)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


async def client(port, question, end_s, spans, errors):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < end_s:
        begun = time.perf_counter()
        status = await asked(reader, writer, question)
        spans.append(time.perf_counter() - begun)
        if status != 200:
            errors.append(status)
    writer.close()


async def load(port, question, n, seconds):
    """Spans and errors of so many connections."""
    spans, errors = [], []
    end_s = time.monotonic() + seconds
    await asyncio.gather(*(client(port, question, end_s, spans, errors) for _ in range(n)))
    return spans, errors


def p99(spans):
    return statistics.quantiles(spans, n=100)[98]


async def both(ports, n, seconds):
    """In turns of five seconds, so that both see the same machine."""
    found = {"ping": ([], []), "cached": ([], [])}
    questions = {"ping": PING_QUESTION, "cached": QUESTION}
    end_s = time.monotonic() + 2 * seconds
    while time.monotonic() < end_s:
        for name, question in questions.items():
            spans, errors = await load(ports[name], question, n, min(5.0, seconds))
            found[name][0].extend(spans)
            found[name][1].extend(errors)
    return found


def slider(port, n_moves=8):
    """Seconds of answers to a slider in a warm process, one new load after the other."""
    spans = []
    for move in range(n_moves + 2):
        users = {"workloads[0].demand.users": str(6000 + 137 * move)}
        query = urlencode({"words": WORDS, **users, "pin": "h100-sxm,fp8"})
        begun = time.perf_counter()
        urllib.request.urlopen(f"http://127.0.0.1:{port}/answer?{query}").read()
        spans.append(time.perf_counter() - begun)
    return spans[2:]  # the first ones warm up what the start did not


def cpu_s(process):
    """User seconds of a process and what it started."""
    ticks = os.sysconf("SC_CLK_TCK")
    found = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == process.pid:  # of the same process group
            found += (int(fields[11]) + int(fields[12])) / ticks
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=200)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        (Path(folder) / "ping.py").write_text(PING)
        ports = {"ping": free_port(), "cached": free_port()}
        serve = [sys.executable, "-m", "gpuplan", "serve", "--port", str(ports["cached"])]
        serve += ["--state", f"{folder}/jobs.sqlite", "--workers", "1"]
        ping = [sys.executable, f"{folder}/ping.py", str(ports["ping"])]
        processes = [started(ping, ports["ping"], "/ping")]
        processes.append(started(serve, ports["cached"], "/healthz"))
        try:
            page = f"http://127.0.0.1:{ports['cached']}"
            head = {"Content-Type": "application/json"}
            first = urllib.request.Request(f"{page}/v1/fit?wait=200", BODY.encode(), head)
            urllib.request.urlopen(first).read()
            while b"data-job" in urllib.request.urlopen(f"{page}/answer").read():
                time.sleep(1.0)  # the example of the start page is answered first
            before = cpu_s(processes[1])
            moves = slider(ports["cached"])
            each = (cpu_s(processes[1]) - before) / (len(moves) + 2)
            print(f"slider: median {statistics.median(moves):.2f} s wall, {each:.2f} s CPU a move")
            found = asyncio.run(both(ports, options.connections, options.seconds))
        finally:
            for process in processes:
                os.killpg(process.pid, signal.SIGTERM)
    for name, (spans, errors) in found.items():
        print(
            f"{name}: {len(spans):,} answers, {len(errors)} errors, p99 {1e3 * p99(spans):.1f} ms"
        )
    ratio = p99(found["cached"][0]) / p99(found["ping"][0])
    print(f"p99 of cached answers over a bare ping: {ratio:.1f} (at most 50)")
    return 1 if ratio > 50 or any(errors for _, errors in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
