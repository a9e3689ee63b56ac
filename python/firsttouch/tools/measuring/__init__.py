"""What every experiment stands on: contenders, workers, interleaved rounds, statistics, tables."""
