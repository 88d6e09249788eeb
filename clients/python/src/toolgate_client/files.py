"""Files to upload."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

#: A file: its path, its bytes, or an open binary file.
FileContent = str | os.PathLike[str] | bytes | BinaryIO


class Form(TypedDict):
    """The parts of a form."""

    files: dict[str, tuple[str, bytes]]
    data: dict[str, str]


def form(file: FileContent, name: str | None, fields: Mapping[str, Any]) -> Form:
    """The form that uploads a file, under its own name unless another one is given."""
    if isinstance(file, (str, os.PathLike)):
        own, content = Path(file).name, Path(file).read_bytes()
    elif isinstance(file, bytes):
        own, content = "file", file
    else:
        own, content = os.path.basename(str(getattr(file, "name", "file"))), file.read()
    data = {field: str(value) for field, value in fields.items() if value is not None}
    return {"files": {"file": (name or own, content)}, "data": data}
