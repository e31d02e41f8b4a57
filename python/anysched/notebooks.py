"""Runs all notebooks, each in a kernel of its own, and says which cell of which fails.

python notebooks.py [FOLDER]    FOLDER gets them with their outputs
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def main() -> int:
    failed = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        started = time.monotonic()
        client = NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": FOLDER}}
        )
        try:
            client.execute()
        except CellExecutionError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            failed += 1
        if len(sys.argv) > 1:
            nbformat.write(notebook, Path(sys.argv[1]) / path.name)
        print(f"{path.name}: {time.monotonic() - started:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
