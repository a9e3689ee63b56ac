"""Faster NumPy programs, on memory that is faulted in once.

The quickest way is the command line: ``firsttouch run script.py``. In a program, use :func:`install` for the whole
process or :func:`use` for a block of code. Libraries do not call :func:`install`; :func:`is_installed` tells them
whether somebody did.

The names here are those that most programs need. Classes of results, and what few programs need, are in the public
modules ``allocators``, ``arrays``, ``buffers``, ``custom``, ``inspection``, ``placement``, ``process``, ``profiling``
and ``sharing``. A star import leaves out ``array``, ``copy`` and ``inspect``, which name modules of the standard
library.

``None`` stands for *not given*: the argument's documented default. For `allocator`, that is the current allocator where
arrays are made, and the process's elsewhere: its own pool or, for :func:`stats` and :func:`trim`, the installed
allocator if there is one. The few arguments that ``None`` switches off say ``or None`` in their type.

PYTEST_DONT_REWRITE: pytest rewrites the packages of a plugin, and warns where they are loaded already.
"""

from _firsttouch_start import command_line as _command_line

TYPE_CHECKING = False  # typing would be imported for it
if TYPE_CHECKING:
    from typing import Any

if TYPE_CHECKING or not _command_line.is_this_process():
    from firsttouch._internal import interpreter as _interpreter

    _interpreter.check()  # before anything native is loaded
    from firsttouch._firsttouch import __version__ as __version__  # where it is missing, this says so
    from firsttouch._public import *  # noqa: F403
    from firsttouch._public import __all__ as __all__
    from firsttouch._public import array as array  # these three are not in __all__, see _public.UNSTARRED
    from firsttouch._public import copy as copy
    from firsttouch._public import inspect as inspect

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that names the module a name is in.

        In the process of `firsttouch run`, which only starts a program and may end without NumPy, it first loads the
        public names: no other thread and no fork is there to meet it.
        """
        if name.startswith("_") and name not in ("__all__", "__version__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from firsttouch import _public

        if "use" not in globals():
            names = ("__all__", *_public.UNSTARRED, *_public.__all__)
            globals().update({each: getattr(_public, each) for each in names})
            if name in globals():
                return globals()[name]
        raise _public.missing(name)


def load_ipython_extension(shell: "Any") -> None:
    """Add the magics ``%firsttouch`` and ``%%firsttouch``, on ``%load_ext firsttouch``."""
    from firsttouch import ipython

    ipython.load(shell)


def unload_ipython_extension(shell: "Any") -> None:
    """Remove the magics, on ``%unload_ext firsttouch``; an installed allocator stays."""
    from firsttouch import ipython

    ipython.unload(shell)
