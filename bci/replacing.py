"""Files that a reader never sees half written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path of the same name to write to; at the end of the block that file takes the place of `path` in one step.

    If the block fails, `path` stays as it is.

    Raises:
        OSError: the folder of `path` cannot be written to.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as folder:
        complete = Path(folder) / path.name
        yield complete
        os.replace(complete, path)
