"""Streams through SGLang's own scheduler; run by the interpreter of an environment that has SGLang.

python real.py HARNESS < cases > answers

HARNESS is the folder of `sglang_oracle.py`, which drives the engine's real classes on a clock. A
line is a case as `sglang_mixes.py` makes it; an empty one asks for the version.
"""

import importlib
import json
import os
import sys
from typing import Any

TOLD = ("first_s", "end_s", "n_preemptions", "n_steps", "hits", "cached", "error")


def main(harness: str) -> None:
    """A line of answers for each line of cases; a case that fails says why."""
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the engine writes to what it takes for the screen
    sys.path.insert(0, harness)
    oracle: Any = importlib.import_module("sglang_oracle")
    for line in sys.stdin:
        case = json.loads(line)
        found = oracle.in_child(case) if case else oracle.sglang.__version__
        if case:
            found = {name: found[name] for name in TOLD if name in found}
        told.write(json.dumps(found) + "\n")
        told.flush()


if __name__ == "__main__":
    main(sys.argv[1])
