"""The watch under load: a real Prometheus with ten thousand series, its death, and many looks.

    python benchmarks/bench_watch.py [N_DEVICES] [N_LOOKS]

Prints CPU time and memory of looks, whether a death in the middle of a query is survived and the
state outlives a restart, and the growth of memory over many looks with a clock of its own.
"""

import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from gpuplan.domain.telemetry.monitoring import ServerAccess, WatchRequest
from gpuplan.server.watch import Watch
from integration.prometheus_server import Exporter, Prometheus

METRICS = {
    "DCGM_FI_DEV_GPU_UTIL": 80, "DCGM_FI_PROF_SM_ACTIVE": 0.6,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.3, "DCGM_FI_PROF_DRAM_ACTIVE": 0.3,
    "DCGM_FI_DEV_POWER_USAGE": 500, "DCGM_FI_DEV_GPU_TEMP": 60, "DCGM_FI_DEV_FB_USED": 40000,
    "DCGM_FI_DEV_SM_CLOCK": 1900,
}  # fmt: skip
HOUR_S = 3600.0


def text(n_devices: int) -> str:
    """What the exporters of so many devices say."""
    return "".join(
        f'{name}{{gpu="{k % 8}",UUID="GPU-{k}",Hostname="n{k // 8}",modelName="NVIDIA H100 80GB '
        f'HBM3"}} {level * (0.9 + 0.01 * (k % 10))}\n'
        for name, level in METRICS.items()
        for k in range(n_devices)
    )


def used() -> tuple[float, float]:
    """CPU seconds so far, and memory now in MB."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return usage.ru_utime + usage.ru_stime, pages * 4096 / 1e6


def many_series(folder: Path, n_devices: int) -> None:
    """Looks at a large fleet, a death in the middle, a restart with the state."""
    body = text(n_devices)
    exporter = Exporter(lambda _: body)
    server = Prometheus(folder, exporter.port)
    config = folder / "prometheus.yml"
    config.write_text(config.read_text().replace("250ms", "5s").replace("200ms", "5s"))
    server.start()
    time.sleep(25)
    asked = WatchRequest(
        access=ServerAccess(url=server.url, timeout_s=30.0), look_back_s=60.0, step_s=5.0
    )
    watch = Watch(asked, state=folder / "state.json")
    for _ in range(3):
        before, _ = used()
        is_well = watch.look()
        after, memory_mb = used()
        print(f"{len(METRICS) * n_devices} series: look {is_well} {watch.last_error[:120]} "
              f"{after - before:.1f} CPU-s, {memory_mb:.0f} MB")  # fmt: skip
    threading.Timer(0.3, server.kill).start()
    print(f"killed in a query: look {watch.look()}, health {watch.health()[1]}")
    n_hours = len(watch.points)
    again = Watch(asked, state=folder / "state.json")
    print(f"restarted: {len(again.points)} of {n_hours} hours known")
    server.start()
    print(f"server back: look {again.look()} {again.last_error[:120]}")
    told = subprocess.run(
        ["promtool", "check", "metrics"], input=again.metrics(), capture_output=True, check=False
    )
    print(f"promtool: exit {told.returncode} {told.stderr.decode()[:300]}")
    server.kill()
    exporter.close()


def many_looks(folder: Path, n_looks: int) -> None:
    """Memory over many looks, an hour apart by a clock of its own."""
    body = text(8) + 'vllm:num_requests_running{model_name="m"} 12\n'
    exporter = Exporter(lambda _: body)
    server = Prometheus(folder, exporter.port)
    server.start()
    time.sleep(2)
    now = [time.time()]
    asked = WatchRequest(access=ServerAccess(url=server.url), look_back_s=10.0, step_s=1.0)
    watch = Watch(asked, state=folder / "state.json", clock=lambda: now[0])
    watch.look()
    start_s, (cpu_s, _) = now[0], used()
    for k in range(n_looks):
        # The clock leaps for what is remembered; the server's samples are of today.
        watch.clock = lambda: now[0]
        watch.look()
        watch.points = tuple(
            type(one)(at_s=one.at_s - HOUR_S, n_demand=one.n_demand, metric=one.metric)
            for one in watch.points
        )
        now[0] = max(start_s, time.time())
        if k % (n_looks // 5) == 0:
            print(f"look {k}: {used()[1]:.0f} MB, {len(watch.points)} hours kept")
    print(f"{n_looks} looks: {(used()[0] - cpu_s) / n_looks * 1e3:.0f} CPU-ms each, "
          f"{used()[1]:.0f} MB, {watch.n_failures} failed")  # fmt: skip
    server.kill()
    exporter.close()


if __name__ == "__main__":
    devices = int(sys.argv[1]) if len(sys.argv) > 1 else 1250
    looks = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        many_series(Path(first), devices)
        many_looks(Path(second), looks)
