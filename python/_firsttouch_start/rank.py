"""The MPI or Slurm rank of this process, and file names that contain it."""

import os

_VARIABLES = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
)


def current() -> int | None:
    """Return the rank, or None if there is none."""
    for name in _VARIABLES:
        text = os.environ.get(name, "")
        if text.isdecimal():
            return int(text)
    return None


def is_first() -> bool:
    """Return whether this process reports for all: it has rank 0 or no rank."""
    return not current()


def fields(pattern: str) -> set[str]:
    """Return which of the fields %r and %p a file name contains, as a set of letters."""
    return {piece[1] for piece in _pieces(pattern) if piece in ("%r", "%p")}


def fill(pattern: str) -> str:
    """Substitute the rank for %r, the process number for %p and a percent sign for %%."""
    values = {"%r": str(current() or 0), "%p": str(os.getpid()), "%%": "%"}
    return "".join(values.get(piece, piece) for piece in _pieces(pattern))


def fill_rank(pattern: str) -> str:
    """Substitute the rank alone; who gets the result substitutes the rest."""
    return "".join(str(current() or 0) if piece == "%r" else piece for piece in _pieces(pattern))


def escape(name: str) -> str:
    """Return the pattern of this very name: without fields."""
    return name.replace("%", "%%")


def _pieces(pattern: str) -> list[str]:
    """Split a file name so that each percent sign and the following letter form one piece."""
    pieces = []
    while pattern:
        length = 2 if pattern[0] == "%" else 1
        pieces.append(pattern[:length])
        pattern = pattern[length:]
    return pieces
