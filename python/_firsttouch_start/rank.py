"""Which of the processes that MPI or Slurm started together this is, and its name for files."""

import os

_VARIABLES = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
)


def current() -> int | None:
    """The rank, or None where nobody gave one."""
    for name in _VARIABLES:
        text = os.environ.get(name, "")
        if text.isdecimal():
            return int(text)
    return None


def is_first() -> bool:
    """Whether this process speaks for all: rank 0, or no rank at all."""
    return not current()


def fields(pattern: str) -> set[str]:
    """Which of the letters r and p a file name leaves to be filled."""
    return {piece[1] for piece in _pieces(pattern) if piece in ("%r", "%p")}


def fill(pattern: str) -> str:
    """Put the rank for %r, the process for %p and a percent sign for %%."""
    values = {"%r": str(current() or 0), "%p": str(os.getpid()), "%%": "%"}
    return "".join(values.get(piece, piece) for piece in _pieces(pattern))


def _pieces(pattern: str) -> list[str]:
    """Cut a file name so that each percent sign and the letter behind it are one piece."""
    pieces = []
    while pattern:
        length = 2 if pattern[0] == "%" else 1
        pieces.append(pattern[:length])
        pattern = pattern[length:]
    return pieces
