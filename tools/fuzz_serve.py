"""A server of its own before Schemathesis: drawn requests to every path, and no 5xx.

python tools/fuzz_serve.py PATH_OF_ST [--max-examples 30 …]
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from tempfile import TemporaryDirectory

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"


def main() -> int:
    """The exit code of Schemathesis."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with TemporaryDirectory() as folder:
        serve = [sys.executable, "-m", "gpuplan", "serve", "--port", str(port), "--limit-s", "20"]
        serve += ["--state", f"{folder}/jobs.sqlite"]
        process = subprocess.Popen(serve, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"{address}/healthz").close()
                    break
                except OSError:
                    time.sleep(0.2)
            st, *rest = sys.argv[1:]
            run = [st, "run", f"{address}/openapi.json", "--checks", CHECKS]
            run += ["--request-timeout", "60", *(rest or ["--max-examples", "20"])]
            return subprocess.call(run, cwd=folder)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
