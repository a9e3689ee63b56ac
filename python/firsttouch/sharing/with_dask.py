"""Shared arrays in `distributed`, whose own serialization of arrays would copy them."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np

from firsttouch.sharing import handles


def register(kind: type[np.ndarray]) -> None:
    """Register handles with `distributed` if it is loaded; it is never loaded for this."""
    protocol = sys.modules.get("distributed.protocol.serialize")
    if protocol is None or _known:
        return
    _known.append(kind)
    protocol.dask_serialize.register(kind)(_serialize)
    protocol.dask_deserialize.register(kind)(_deserialize)


_known: list[type[np.ndarray]] = []


def _serialize(array: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return a handle or, if there is none, the frames of an ordinary array; nothing is copied."""
    make, given = array.__reduce_ex__(pickle.HIGHEST_PROTOCOL)[:2]
    if make is handles.arrive:
        return {}, [pickle.dumps(given, pickle.HIGHEST_PROTOCOL)]
    from distributed.protocol.serialize import dask_serialize

    plain = np.asarray(array)
    header, frames = dask_serialize.dispatch(np.ndarray)(plain)
    return {"plain": header}, frames


def _deserialize(header: dict[str, Any], frames: list[Any]) -> Any:
    if "plain" not in header:
        return handles.arrive(*pickle.loads(frames[0]))
    from distributed.protocol.serialize import dask_deserialize

    return dask_deserialize.dispatch(np.ndarray)(header["plain"], frames)
