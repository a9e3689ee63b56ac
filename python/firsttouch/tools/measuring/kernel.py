"""Settings of the kernel that move figures of memory, each in a few words; "not readable" where nobody tells."""

from __future__ import annotations

import gzip
import os
import platform
import re
from pathlib import Path

from firsttouch.tools.measuring.files import MISSING, chosen, read

_CPU = Path("/sys/devices/system/cpu")
_THP = Path("/sys/kernel/mm/transparent_hugepage")


def mitigations(folder: Path = _CPU / "vulnerabilities") -> str:
    """Which of the processor's weaknesses the kernel works around; entering it costs more then."""
    found: dict[str, list[str]] = {"mitigated": [], "vulnerable": [], "unknown": []}
    unaffected = 0
    for file in sorted(folder.glob("*")):
        text = read(file).lower()
        if text.startswith("not affected"):
            unaffected += 1
        elif "mitigation" in text and "vulnerable" not in text.partition(":")[0]:
            found["mitigated"].append(file.name)
        else:
            found["vulnerable" if text.startswith("vulnerable") else "unknown"].append(file.name)
    words = [f"{kind}: {', '.join(names)}" for kind, names in found.items() if names]
    if not words and not unaffected:
        return MISSING
    return "; ".join(
        [
            *words,
            f"not affected by {unaffected} other{'s' * (unaffected != 1)}" if words else "not affected by any known",
        ]
    )


def sizes_of_thp(folder: Path = _THP) -> str:
    """The sizes of multi-size huge pages (mTHP) that are on, with how."""
    found: list[tuple[int, str]] = []
    for file in folder.glob("hugepages-*kB/enabled"):
        kib = int(re.sub(r"\D", "", file.parent.name))
        if (how := chosen(read(file))) != "never":
            found.append((kib, f"{kib} KiB {how}"))
    if not list(folder.glob("hugepages-*kB")):
        return "not in this kernel"
    return ", ".join(words for _, words in sorted(found)) or "all off"


def init_on_alloc(root: Path = Path("/")) -> str:
    """Whether the kernel zeroes pages when it takes them, besides when it hands them out."""
    told = re.findall(r"\binit_on_alloc=(\w+)", read(root / "proc/cmdline"))
    if told:
        return f"{told[-1]} (command line)"
    for config in (root / "proc/config.gz", root / "boot" / f"config-{platform.release()}"):
        try:
            text = gzip.decompress(config.read_bytes()).decode() if config.suffix == ".gz" else config.read_text()
        except (OSError, EOFError, UnicodeDecodeError):
            continue
        return "1 (built in)" if "\nCONFIG_INIT_ON_ALLOC_DEFAULT_ON=y" in text else "0 (built in)"
    return MISSING


def autonuma(root: Path = Path("/")) -> str:
    """Whether the kernel moves pages to the node that uses them."""
    text = read(root / "proc/sys/kernel/numa_balancing", "not in this kernel")
    return {"0": "off", "1": "on"}.get(text, text)


def governors(folder: Path = _CPU) -> list[str]:
    """Who chooses the frequency, each once; none where that is not for this kernel to say."""
    return sorted({read(file) for file in folder.glob("cpu[0-9]*/cpufreq/scaling_governor")})


def frequency(folder: Path = _CPU) -> str:
    """The governor, and whether the processor may go beyond its nominal frequency."""
    turbo = MISSING
    for file, on in ((folder / "intel_pstate/no_turbo", "0"), (folder / "cpufreq/boost", "1")):
        if (text := read(file)) != MISSING:
            turbo = "on" if text == on else "off"
    return f"governor {', '.join(governors(folder)) or MISSING}, turbo {turbo}"


def malloc_settings() -> str:
    """Variables of this process's environment that change a malloc's ways, or preload one."""
    known = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD", "MIMALLOC_", "TCMALLOC_", "TBB_MALLOC", "PYTHONMALLOC")
    found = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(known)]
    return " ".join(found) or "none"
