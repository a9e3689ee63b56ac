"""Arguments of `ArrayMemory`, validated in the client as far as that is possible without the worker."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal import validation as arguments
from firsttouch._internal.resolve import FACTORIES, checked

_CALLER = "ArrayMemory()"
_HUGE = (True, False, "thp", "2M", "1G")


@dataclass(frozen=True)
class Choices:
    """Arguments of ArrayMemory in a form that travels between processes."""

    allocator: str | None
    numa: str | tuple[int, ...] | None
    huge: str | bool | None
    limit: str | float | None

    @staticmethod
    def checked(allocator: object, numa: object, huge: object, limit: object) -> Choices:
        """Return the validated arguments; raise :exc:`TypeError` or :exc:`ValueError` for others."""
        chosen = Choices(_expression(allocator), _nodes(numa), _huge(huge), _limit(limit))
        if chosen.huge is not None and chosen.allocator is not None:
            raise ValueError(
                f"huge={huge!r} is for the pool that serves where no allocator is named: "
                f'write it into the expression, as in "{chosen.pool()}"'
            )
        return chosen

    def pool(self) -> str:
        """Return the expression of a pool with the requested huge pages."""
        huge = "thp" if self.huge is True else self.huge
        return f"pool(pages(huge={huge!r}))"

    def expression(self, budget: int | None) -> str | None:
        """Return the allocator's expression, or ``None`` for the process's own pool."""
        text = self.allocator if self.huge is None else self.pool()
        return text if budget is None else f"limited({text or 'pool()'}, {budget})"


def _expression(allocator: object) -> str | None:
    if allocator is None:
        return None
    found = allocator if isinstance(allocator, str) else checked(allocator, _CALLER)
    if isinstance(found, Allocator) and not _firsttouch.has_expression(found):
        raise TypeError(
            f"{_CALLER} cannot send {found!r} to other processes: allocators travel as their expression, "
            'as in "pool()" or "limited(pool(), \'4 GiB\')"'
        )
    text = str(found) if isinstance(found, str) else repr(found)
    # Which nodes and sizes there are is the worker's to say.
    others = _firsttouch.check_expression(text, list(FACTORIES))
    if "from_functions" in others:
        raise ValueError(f"{_CALLER} cannot send from_functions() to other processes: addresses are meaningless there")
    if "numpy_default" in others:
        raise ValueError(f"{_CALLER} got numpy_default(): without the plugin that is what workers have")
    return text


def _nodes(numa: object) -> str | tuple[int, ...] | None:
    if numa is None:
        return None
    if numa == "auto":
        return "auto"
    wanted = "'auto', a node's number or several, to deal out over the workers of a host"
    try:
        given: list[Any] = list(numa) if isinstance(numa, Iterable) and not isinstance(numa, str) else [numa]
        numbers = tuple(operator.index(number) for number in given if not isinstance(number, bool))
    except TypeError:
        raise TypeError(f"numa={numa!r:.40}: give {wanted}") from None
    if not numbers or len(numbers) < len(given) or min(numbers) < 0:
        raise ValueError(f"numa={numa!r:.40}: give {wanted}")
    return tuple(dict.fromkeys(numbers))


def _huge(huge: object) -> str | bool | None:
    if huge is None or (isinstance(huge, (bool, str)) and huge in _HUGE):
        return huge
    raise ValueError(f"huge={huge!r:.40}: give {', '.join(map(repr, _HUGE))}, or None for the pool's own choice")


def _limit(limit: object) -> str | float | None:
    if limit is None:
        return None
    if limit == "auto":
        return "auto"
    if isinstance(limit, float):
        if 0.0 < limit <= 1.0:
            return limit
        raise ValueError(f"limit={limit}: as a part of the worker's memory limit give more than 0 and at most 1.0")
    if arguments.size("limit", limit) == 0:
        raise ValueError(f"limit={limit!r} would serve no array: give 'auto', a part like 0.5, or a size")
    return arguments.size("limit", limit)
