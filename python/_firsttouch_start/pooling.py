"""Put the process on the pool as soon as NumPy is there, and never import NumPy for it.

Two imports have to be complete: NumPy's, and ours, which imports NumPy. The program may start
with either, in any thread; whichever ends last installs.
"""

import os
import sys

from _firsttouch_start import measures, rank, speak, state
from _firsttouch_start.listen import listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_complete: set[str] = set()
_done = False


def watch() -> None:
    """Listen for both imports; where one lies behind us already, take it as heard."""
    listener.add("firsttouch", _heard)
    listener.add("numpy", _heard)
    for name in ("firsttouch", "numpy"):
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if module is not None and not getattr(spec, "_initializing", False):
            _heard(name)


def _heard(name: str) -> None:
    """Go on from a completed import; nothing that fails here may reach the program."""
    global _done
    if _done:
        return
    try:
        if name == "firsttouch" and not _is_ours(sys.modules["firsttouch"].__spec__):
            return
        _complete.add(name)
        if "numpy" not in _complete:
            return
        ours = sys.modules.get("firsttouch")
        if ours is None:
            _bring()  # hears its own end and installs there
        elif not _is_ours(ours.__spec__):
            _shadowed(ours.__spec__)
        elif "firsttouch" in _complete:
            _done = True
            _install()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native module is no Exception
        _refused(f"{type(error).__name__}: {error}")
    if _done:
        _stop()


def _shadowed(spec: "Any") -> None:
    where = getattr(spec, "origin", None) or "nowhere"
    _refused(f"Python finds another module named firsttouch here ({where})")


def _bring() -> None:
    """Import our package, and no other of the same name that stands before it."""
    spec = listener.find_spec("firsttouch")
    if _is_ours(spec):
        __import__("firsttouch")
    else:
        _shadowed(spec)


def _is_ours(spec: "Any") -> bool:
    origin = getattr(spec, "origin", None)
    if not origin:
        return False
    try:
        return os.path.samefile(os.path.dirname(os.path.dirname(origin)), _site())
    except OSError:
        return False


def _site() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _install() -> None:
    from _firsttouch_start import settings

    firsttouch: Any = sys.modules["firsttouch"]
    options = settings.load()
    chosen = {name: options[name] for name in ("max_idle", "decay") if name in options}
    try:
        if "allocator" in options:
            __import__("firsttouch._internal.resolve")
            state.allocator = firsttouch._internal.resolve.parse(options["allocator"])
        elif chosen:
            state.allocator = firsttouch.pool(**chosen)
        if "trace" not in options or state.allocator is not None:  # a trace is of NumPy's own, unless told otherwise
            firsttouch.install("process" if state.allocator is None else state.allocator)
            state.installed = True
        if "p" in rank.fields(options.get("json") or ""):
            measures.follow_forks()
        if "trace" in options:
            from _firsttouch_start import tracing

            tracing.begin(options)
    except firsttouch.UnsupportedError as error:
        _refused(str(error))


def _refused(why: str) -> None:
    """Say once per program, not once per worker, that it goes on without the pool."""
    state.reason = " ".join(why.split())
    _stop()
    if str(os.getpid()) in os.environ.get("FIRSTTOUCH_RUN", ""):
        speak.line(f"not pooled: {state.reason}")


def _stop() -> None:
    global _done
    _done = True
    listener.remove("numpy")
    listener.remove("firsttouch")
