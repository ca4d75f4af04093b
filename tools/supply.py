"""What gpuplan is made of: a software bill of materials, the licences, a wheel built twice.

    python tools/supply.py sbom CYCLONEDX_PY --out dist/sbom.cdx.json
    python tools/supply.py licences [--write]
    python tools/supply.py wheel

`python3 dev.py sbom|licences|wheel` sets up what each needs. A licence that is not on the list of
those that may be used together with Apache-2.0 ends with exit code 4, as does a wheel that differs.
"""

import argparse
import hashlib
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
EPOCH = "1767225600"  # the moment that files of a wheel carry: 2026-01-01
# Licences whose terms allow use beside Apache-2.0 without changing the licence of gpuplan.
ACCEPTED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL[- ]2|Mozilla Public License 2|"
    r"Unlicense|HPND|Zlib|0BSD|CC0|Matplotlib|LGPL|Historical Permission",
    re.IGNORECASE,
)
HEAD = """# Licences

gpuplan itself is Apache-2.0. The packages of `requirements.lock` that it runs with or is tested
with, as their own metadata states it. Written by `python tools/supply.py licences --write`.

| package | version | licence |
|---|---|---|
"""


def locked() -> list[tuple[str, str]]:
    """Name and version of every locked package."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    found = [re.match(r"([A-Za-z0-9_.-]+)==([^ ;\\]+)", line) for line in lines]
    return [(match[1], match[2]) for match in found if match]


def licence_of(name: str) -> str | None:
    """The licence as the package's metadata states it; None where it is not installed here."""
    try:
        about = distribution(name).metadata
    except PackageNotFoundError:
        return None
    classifiers = about.get_all("Classifier") or []
    named = [c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License ::")]
    stated = about.get("License-Expression") or ", ".join(named)
    return stated or (about.get("License") or _first_line(name)).splitlines()[0][:80]


def _first_line(name: str) -> str:
    """How the licence file of a package begins."""
    for path in distribution(name).files or ():
        if path.name.upper().startswith("LICEN"):
            text = path.locate().read_text(encoding="utf-8", errors="replace").strip()
            return text.partition("\n")[0] or "not stated"
    return "not stated"


def licences(options: argparse.Namespace) -> int:
    """The list; 4 where a licence is not accepted."""
    rows, refused, absent = [], [], []
    for name, version in locked():
        licence = licence_of(name)
        if licence is None:
            absent.append(name)  # for another system or Python: the lock is universal
            continue
        rows.append(f"| {name} | {version} | {licence} |")
        refused += [] if ACCEPTED.search(licence) else [f"{name}: {licence}"]
    left = f"\nNot installed on this system, so not read: {', '.join(absent)}.\n" if absent else ""
    text = HEAD + "\n".join(rows) + "\n" + left
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    print(f"{len(rows)} licences read, {len(absent)} packages of other systems")
    for line in refused:
        print(f"not accepted: {line}")
    return 4 if refused else 0


def sbom(options: argparse.Namespace) -> int:
    """CycloneDX of the lock, the same bytes for the same lock."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    command = [options.program, "requirements", "requirements.lock", "--output-reproducible"]
    command += ["--pyproject", "pyproject.toml", "--of", "JSON", "-o", str(options.out)]
    code = subprocess.call(command, cwd=ROOT)
    if code == 0:
        print(f"wrote {options.out}: {len(locked())} packages")
    return code


def wheel(_: argparse.Namespace) -> int:
    """The wheel built twice, in folders of their own; 4 where the bytes differ."""
    digests = []
    for _turn in range(2):
        with TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, str(ROOT)]
            built = subprocess.run(
                command, env={"SOURCE_DATE_EPOCH": EPOCH, "PATH": "/usr/bin:/bin"}, check=False
            )
            if built.returncode:
                return built.returncode
            [made] = Path(folder).glob("*.whl")
            digests.append(hashlib.sha256(made.read_bytes()).hexdigest())
            print(f"{made.name}: sha256 {digests[-1]}, {made.stat().st_size:,} bytes")
    return 0 if len(set(digests)) == 1 else 4


def main() -> int:
    """Run the job that was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    jobs = parser.add_subparsers(required=True)
    one = jobs.add_parser("sbom")
    one.add_argument("program")
    one.add_argument("--out", type=Path, default=ROOT / "dist" / "sbom.cdx.json")
    one.set_defaults(job=sbom)
    two = jobs.add_parser("licences")
    two.add_argument("--write", action="store_true")
    two.set_defaults(job=licences)
    jobs.add_parser("wheel").set_defaults(job=wheel)
    options = parser.parse_args()
    return int(options.job(options))


if __name__ == "__main__":
    sys.exit(main())
