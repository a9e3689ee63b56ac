"""The harness of all experiments: contenders, workers, interleaved rounds, statistics, reports."""
