"""Write the golden documents anew: what every example and a few more commands print.

    python tools/write_golden.py [PART_OF_A_NAME]

Look at the difference before committing it: a number that moved is a change of behaviour, and the
commit says why. Afterwards `pytest tests/golden` holds.
"""

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from golden.cases import FOLDER, documents  # noqa: E402


def main() -> None:
    """Write every document whose name holds what was given."""
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as scratch:
        for name, document in documents(Path(scratch), only):
            path = FOLDER / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(document, indent=1, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")
            print(f"{name}: {len(text):,} characters")


if __name__ == "__main__":
    main()
