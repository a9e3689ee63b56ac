"""What runs in the measured processes: one file an experiment, asked by name."""
