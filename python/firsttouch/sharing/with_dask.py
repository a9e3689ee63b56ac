"""Shared arrays through `distributed`, which has ways of its own for arrays and would copy them."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np


def register(kind: type[np.ndarray]) -> None:
    """Lets handles travel, where `distributed` is loaded; it is never loaded for this."""
    protocol = sys.modules.get("distributed.protocol.serialize")
    if protocol is None or _known:
        return
    _known.append(kind)
    protocol.dask_serialize.register(kind)(_serialize)
    protocol.dask_deserialize.register(kind)(_deserialize)


_known: list[type[np.ndarray]] = []


def _serialize(array: Any) -> tuple[dict[str, Any], list[bytes]]:
    return {}, [pickle.dumps(array, pickle.HIGHEST_PROTOCOL)]


def _deserialize(_header: dict[str, Any], frames: list[Any]) -> Any:
    return pickle.loads(frames[0])
