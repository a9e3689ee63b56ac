"""Values with named fields that do not change: a frozen dataclass without the milliseconds that making one takes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, dataclass_transform
else:

    def dataclass_transform(**_):
        """Only type checkers want to know."""
        return lambda kind: kind


@dataclass_transform(frozen_default=True)
class Record:
    """Its fields are those that the class annotates, in that order."""

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = dict(zip(type(self).__annotations__, values)) | named  # noqa: B905 (checked on the next line)
        if len(values) > len(type(self).__annotations__) or fields.keys() != type(self).__annotations__.keys():
            raise TypeError(f"{type(self).__name__} takes {', '.join(type(self).__annotations__)}")
        vars(self).update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} can't be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} can't be deleted")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
