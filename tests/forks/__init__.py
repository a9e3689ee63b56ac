"""fork, and the processes that multiprocessing starts."""
