"""Installs the pool as soon as NumPy is imported, without importing NumPy for it."""

import os
import sys

from _firsttouch_start import measures, native, rank, speak, state
from _firsttouch_start.listen import listener

_done = False


def watch() -> None:
    """Wait for the import of NumPy, or install at once if it is imported already."""
    listener.add("numpy", _heard)
    module = sys.modules.get("numpy")
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        _heard("numpy")


def _heard(_: str) -> None:
    """Install once the import of NumPy is complete. No failure here may reach the program."""
    global _done
    if _done:
        return
    _done = True
    listener.remove("numpy")
    try:
        _install()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native module is not an Exception
        unsupported = type(error).__name__ == "UnsupportedError"
        _refused(str(error) if unsupported else f"{type(error).__name__}: {error}")


def _install() -> None:
    from _firsttouch_start import settings

    module = state.native = native.load()
    if not module.BACKEND:
        _refused("firsttouch has no backend for this platform")
        return
    module.register()
    options = settings.load()
    state.shared = module.shares_preloaded_pool()  # its settings came by another way
    chosen = {name: options[name] for name in ("max_idle", "decay") if name in options and not state.shared}
    if "allocator" in options:
        from firsttouch._internal import resolve

        state.shared = False
        state.allocator = resolve.parse(options["allocator"])
    elif chosen:
        state.allocator = module.make("pool", **chosen)
    if "limit" in options:
        from _firsttouch_start import memory_errors

        upstream = module.default_pool() if state.allocator is None else state.allocator
        state.allocator = module.make("limited", upstream, options["limit"])
        memory_errors.add_reasons()
    if "trace" not in options or state.allocator is not None:  # a trace is of NumPy's own memory by default
        module.install(state.allocator)
        state.installed = True
    if "p" in rank.fields(options.get("json") or ""):
        measures.follow_forks()
    if "trace" in options:
        from _firsttouch_start import tracing

        tracing.begin(options)


def _refused(why: str) -> None:
    """Report, once per program and not once per worker, that it runs without the pool."""
    state.reason = " ".join(why.split())
    if str(os.getpid()) in os.environ.get("FIRSTTOUCH_RUN", ""):
        speak.line(f"not pooled: {state.reason}")
