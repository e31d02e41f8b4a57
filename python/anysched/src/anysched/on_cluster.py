"""What `anysched run --on` starts: runs made on a cluster.

It reads what to run from standard input, as JSON, and writes the runs as they come back.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from ._changes import Changes
from .errors import Error
from .experiment import Experiment
from .sweep import stream


def main() -> int:
    # The command, which gets the same Ctrl-C, ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job: dict[str, Any] = json.load(sys.stdin)
    changed: dict[str, Any] = job["changes"]
    # JSON has no tuples.
    pairs = {key: [(name, value) for name, value in changed[key]] for key in ("settings", "sweep")}
    changes: Changes = {**changed, **pairs}  # type: ignore[typeddict-item]
    experiment = Experiment(job["text"], Path(job["path"]), changes)
    missing = [range(start, stop) for start, stop in job["missing"]]
    try:
        for part in stream(experiment, job["address"], job["spec_hash"], missing):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
    except Error as error:
        print(f"anysched: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
