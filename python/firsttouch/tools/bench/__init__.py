"""Classic experiments on the memory behind arrays, one per file, named as on the command line."""

#: Each experiment with the question that it answers.
NAMES: dict[str, str] = {
    "zeros": "Creating zeros looks a hundred times faster than writing them: what remains when they are used?",
    "touch": "How many bytes a second become real, by page size, way and threads?",
    "triad": "How wrong is a bandwidth test on arrays that were never written?",
    "refill": "What does the first fill of an array pay, and does reading it first help?",
    "temporaries": "What do expressions with temporaries cost beyond the same with out= on warm memory?",
    "scaling": "How do temporaries get on in more and more threads, by allocator?",
    "scratch": "What does a temporary array cost from the heap, and from scratch memory?",
    "numa": "How fast are copies between NUMA nodes, and how much of that is first touch?",
    "align": "Does it matter where arrays begin: in a cache line, in a page?",
}
