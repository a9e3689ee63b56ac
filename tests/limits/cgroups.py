"""A memory cgroup for one program; a test is skipped where none can be made."""

import contextlib
from collections.abc import Iterator

import pytest

from benchmarks import cgroups
from benchmarks.cgroups import Group as Group


@contextlib.contextmanager
def group(limit: int | None = None) -> Iterator[Group]:
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(cgroups.group(limit))
        except cgroups.NoGroupError as error:
            pytest.skip(str(error))
        yield made
