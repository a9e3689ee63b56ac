"""What a virtual machine's host does with its free memory."""

from pathlib import Path

_BALLOON = "0x0005"  # the number of memory balloons among virtio devices
_REPORTING = 5  # the number of the feature


def takes_free_memory(root: Path = Path("/")) -> bool:
    """Return whether free memory is reported to the host, which takes it back (free page reporting)."""
    for device in (root / "sys/bus/virtio/devices").glob("*"):
        try:
            kind, features = ((device / name).read_text().strip() for name in ("device", "features"))
        except (OSError, UnicodeDecodeError):
            continue
        if kind == _BALLOON and features[_REPORTING : _REPORTING + 1] == "1":
            return True
    return False
