"""Writes the stub of the allocators' functions from their declaration: ``python -m tests.expressions.stub``."""

import re
from pathlib import Path

from firsttouch import _firsttouch

STUB = Path(__file__).parents[2] / "python" / "firsttouch" / "_allocators.pyi"

HEAD = '''"""The functions that make allocators. Written from `SPECS` by ``python -m tests.expressions.stub``."""

from typing import Literal

from firsttouch._firsttouch import Allocator
from firsttouch._internal.arguments import Huge, Policy, Size
from firsttouch.custom import AllocatorLike
'''


def text() -> str:
    """Return the stub, as ruff formats it."""
    functions = []
    for name, _, summary, _, annotated in _firsttouch.declared():
        annotated = annotated.replace("'", '"')
        head = f"def {name}{annotated} -> Allocator:"
        if len(head) > 120:
            parameters = "".join(f"    {each},\n" for each in re.split(r", (?=\w+: |\*)", annotated[1:-1]))
            head = f"def {name}(\n{parameters}) -> Allocator:"
        functions.append(f'\n{head}\n    """Return {summary}"""\n')
    return HEAD + "".join(functions)


if __name__ == "__main__":
    STUB.write_text(text(), "utf-8")
