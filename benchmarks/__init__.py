"""The costs and gains of firsttouch, measured: `python -m benchmarks [NAMES...]` from the repository root."""
