#!/usr/bin/env python3
"""One entry for people and machines: sets up what is missing, then runs the job.

    python3 dev.py demo    the main job, on a fresh machine
    python3 dev.py test    the tests
    python3 dev.py check   every check: format, lint, types, imports, catalog, tests
    python3 dev.py lock    write requirements.lock anew
    python3 dev.py consistency [--examples 10000] [--questions all]
                           drawn scenarios of every kind and worked questions
    python3 dev.py requirements [--write]
                           every requirement of the two documents, tried by running; a line each
    python3 dev.py consumers [--engine vllm|sglang]
                           rendered files, read by SkyPilot and dstack, or by an engine's parser
    python3 dev.py docs    the documentation as a site in dist/site; every broken link is an error
    python3 dev.py fuzz    the description of the HTTP interface, tried by Schemathesis: no 5xx
    python3 dev.py sbom    software bill of materials (CycloneDX) of the locked packages, in dist
    python3 dev.py licences [--write]
                           the licences of the locked packages; one that is not accepted ends with 4
    python3 dev.py wheel   the wheel, built twice: the same bytes
    python3 dev.py soak [--minutes 60]
                           `serve` and `watch` under load: flat memory, threads and open files
    python3 dev.py screenshots [--all]
                           pictures of the page and of the report, by Chromium
    python3 dev.py ray [--speed]
                           sweeps on a real Ray cluster of this server, workers killed on the way;
                           1,000 simulations on one worker and on two (needs an idle server)
    python3 dev.py peers   tools of the field beside ours, in one table
    python3 dev.py numba   the kernel tests on the oldest and the newest numba that is supported

Needs Python 3.11 or newer and nothing else.
"""

import hashlib
import os
import subprocess
import sys
import tomllib
import venv
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = Path(os.environ.get("GPUPLAN_VENV", ROOT / ".venv"))
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "gpuplan-lock.sha256"
LOCK = ROOT / "requirements.lock"


def main() -> int:
    """Run the job that was named."""
    jobs = {"demo": demo, "test": test, "check": check, "lock": lock, "numba": numba}
    jobs |= {
        "consistency": consistency,
        "consumers": consumers,
        "ray": ray,
        "requirements": requirements,
    }
    jobs |= {"docs": docs, "fuzz": fuzz, "peers": peers, "sbom": sbom, "wheel": wheel}
    jobs |= {name: partial(tool, name) for name in ("licences", "screenshots", "soak")}
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if sys.version_info < (3, 11):  # noqa: UP036  (an older Python should say so, not fail)
        print("gpuplan needs Python 3.11 or newer; this is " + sys.version.split()[0])
        return 2
    if name not in jobs:
        print(__doc__)
        return 2
    return jobs[name](sys.argv[2:])


def demo(_: list[str]) -> int:
    """A plan for a chat service of 6000 users, its reasons, and a page to read and send."""
    set_up()
    commands = [
        ["plan", "examples/chat.yaml", "--out", "plan.yaml"],
        ["explain", "plan.yaml"],
        ["report", "plan.yaml", "--out", "plan.html"],
    ]
    for command in commands:
        print("\n$ gpuplan " + " ".join(command), flush=True)
        code = run(BIN / "gpuplan", *command)
        if code:
            return code
    return 0


def test(arguments: list[str]) -> int:
    """The tests, on all cores."""
    set_up()
    return run(BIN / "python", "-m", "pytest", "-n", "auto", *arguments)


def check(arguments: list[str]) -> int:
    """Every check, the cheap ones first; all run, so that one report names every fault."""
    set_up()
    steps = [
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["mypy"],
        ["lint-imports"],
        ["gpuplan", "catalog", "check"],
    ]
    codes = [run(BIN / step[0], *step[1:]) for step in steps]
    return max([*codes, test(arguments)])


def consistency(arguments: list[str]) -> int:
    """Plans of drawn scenarios held against every other verb; more of them than the tests draw."""
    names = {"--examples": "GPUPLAN_CONSISTENCY_EXAMPLES", "--questions": "GPUPLAN_QUESTIONS"}
    rest = list(arguments)
    for option, name in names.items():
        if option in rest:
            place = rest.index(option)
            os.environ[name] = rest[place + 1]
            del rest[place : place + 2]
    set_up()
    tests = ["tests/consistency", "-n", "auto", *rest]
    return run(BIN / "python", "-m", "pytest", *tests)


def requirements(arguments: list[str]) -> int:
    """A line for each requirement with its verdict; 0 when none is missing."""
    set_up()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        str(ROOT / name) for name in ("src", "tests", "tools")
    )
    return run(BIN / "python", "-m", "requirements.page", *arguments)


def lock(_: list[str]) -> int:
    """Pin every package with its hashes; no index is named in the file."""
    set_up()
    run(BIN / "python", "-m", "pip", "install", "--quiet", "uv")
    options = ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--universal"]
    options += ["--extra", "all", "--group", "dev", "--no-header", "--python-version", "3.11"]
    command = ["uv", "pip", "compile", "pyproject.toml", *options, "-o", str(LOCK)]
    return run(BIN / command[0], *command[1:])


def consumers(arguments: list[str]) -> int:
    """Rendered files before the tools that they are for, in an environment of their own."""
    needed = ["skypilot", "dstack", "kubernetes-validate"]
    name = "consumers"
    if "--engine" in arguments:  # several GB: vLLM and SGLang do not stand side by side
        place = arguments.index("--engine")
        name, arguments = arguments[place + 1], arguments[:place] + arguments[place + 2 :]
        needed = [name]
    home = VENV.with_name(f"{VENV.name}-{name}")
    venv.create(home, with_pip=True, clear=False)
    python = home / BIN.name / "python"
    needed += ["hypothesis", "pytest", "xlsxwriter"]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return run(*pip, "-e", ROOT, *needed) or run(
        python, "-m", "pytest", "-q", ROOT / "tests/unit/render", *arguments
    )


def docs(arguments: list[str]) -> int:
    """The pages as a site that opens without a network, in an environment of its own."""
    home = VENV.with_name(VENV.name + "-docs")
    venv.create(home, with_pip=True, clear=False)
    python = home / BIN.name / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    build = ["-m", "mkdocs", "build", "--strict", "--site-dir", ROOT / "dist" / "site"]
    return run(*pip, "mkdocs-material>=9.5,<10") or run(python, *build, *arguments)


def fuzz(arguments: list[str]) -> int:
    """Drawn requests to every path of a running server, in an environment of their own."""
    set_up()
    home = VENV.with_name(VENV.name + "-fuzz")
    venv.create(home, with_pip=True, clear=False)
    python = home / BIN.name / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    code = run(*pip, "schemathesis")
    return code or run(BIN / "python", "tools/fuzz_serve.py", home / BIN.name / "st", *arguments)


def sbom(arguments: list[str]) -> int:
    """What the locked packages are, in CycloneDX."""
    python, code = _environment("sbom", "cyclonedx-bom")
    program = python.with_name("cyclonedx-py")
    return code or run(python, "tools/supply.py", "sbom", program, *arguments)


def wheel(arguments: list[str]) -> int:
    """The wheel, built twice and compared."""
    python, code = _environment("wheel", "build")
    return code or run(python, "tools/supply.py", "wheel", *arguments)


def tool(name: str, arguments: list[str]) -> int:
    """A tool that runs with the packages of the project."""
    set_up()
    script = ["tools/supply.py", "licences"] if name == "licences" else [f"tools/{name}.py"]
    return run(BIN / "python", *script, *arguments)


def _environment(name: str, *packages: str) -> tuple[Path, int]:
    """An environment of its own with these packages: its Python, and the exit code of pip."""
    home = VENV.with_name(f"{VENV.name}-{name}")
    venv.create(home, with_pip=True, clear=False)
    python = home / BIN.name / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return python, run(*pip, *packages)


def ray(arguments: list[str]) -> int:
    """Sweeps on Ray, in an environment of their own."""
    home = VENV.with_name(VENV.name + "-ray")
    venv.create(home, with_pip=True, clear=False)
    python = home / BIN.name / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    job = ["-m", "pytest", "-q", ROOT / "tests/unit/execution/test_sweep.py", *arguments]
    if "--speed" in arguments:
        rest = [word for word in arguments if word != "--speed"]
        job = [ROOT / "benchmarks/bench_ray.py", *rest]
    return run(*pip, "-e", f"{ROOT}[ray]", "pytest", "hypothesis") or run(python, *job)


def peers(arguments: list[str]) -> int:
    """Every peer that can be installed, beside ours on the same rows; others say why not."""
    set_up()
    python, code = _environment("peers", "torch==2.13.0", "accelerate", "deepspeed")
    _, other = _environment("peers", "aiconfigurator", "llm-analysis", "accasim")
    folder, program = ROOT / "benchmarks" / "peers", python.with_name("aiconfigurator")
    jobs = [
        [folder / "memory.py", "--peers", python],
        [folder / "selection.py"],
        [folder / "cluster.py", "--peers", python],
        [folder / "training.py", "--peers", python, *arguments],
        [ROOT / "benchmarks/bench_plan.py", "--only-peer", "--peer", program],
    ]
    return max([code, other, *(run(BIN / "python", *job) for job in jobs)])


def numba(arguments: list[str]) -> int:
    """The kernel tests on the oldest numba that pyproject.toml allows, and on the newest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    allowed = next(p for p in project["project"]["dependencies"] if p.startswith("numba>="))
    codes = []
    for wanted in (allowed.replace(">=", "=="), "numba"):
        home = VENV.with_name(VENV.name + "-" + wanted.replace("==", "-"))
        python = home / BIN.name / "python"
        venv.create(home, with_pip=True, clear=False)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        code = run(*pip, "--upgrade", wanted, "-e", ROOT, "hypothesis", "pytest", "simpy")
        print("gpuplan: kernel tests on " + wanted, flush=True)
        codes.append(code or run(python, "-m", "pytest", "tests/kernels", *arguments))
    return max(codes)


def set_up() -> None:
    """A virtual environment with the locked packages and this project, made once per lock."""
    wanted = hashlib.sha256(LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    print("gpuplan: setting up " + str(VENV) + " (once)", file=sys.stderr, flush=True)
    venv.create(VENV, with_pip=True, clear=False)
    pip = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for arguments in (["--require-hashes", "-r", str(LOCK)], ["--no-deps", "-e", str(ROOT)]):
        if subprocess.call([*pip, *arguments], cwd=ROOT):
            sys.exit("gpuplan: the packages could not be installed; see above")
    STAMP.write_text(wanted)


def run(*command: object) -> int:
    """The command's exit code."""
    return subprocess.call([str(part) for part in command], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
