"""One program under several allocators: whole runs, interleaved, and what their times allow to say."""
