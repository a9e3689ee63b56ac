"""The harness under all experiments: contenders, workers, interleaved rounds, statistics, reports."""
