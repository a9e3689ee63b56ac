"""What firsttouch costs and gains, measured: `python -m benchmarks [NAMES...]` from the repository root."""
