"""The core on 64-bit ARM, with pages of 4 and of 16 KiB, in machines that this package boots."""
