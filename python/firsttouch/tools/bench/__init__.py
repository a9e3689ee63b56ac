"""Classic experiments on the memory behind arrays, one per file, named as on the command line."""

#: The experiments, each with the question that it answers.
NAMES: dict[str, str] = {
    "zeros": "Creating zeros looks a hundred times faster than writing them: what remains when they are used?",
    "touch": "How many bytes per second can be faulted in, by page size, method and number of threads?",
    "triad": "How wrong is a bandwidth test on arrays that were never written?",
    "temporaries": "What do expressions with temporaries cost, compared with out= on warm memory?",
    "scratch": "What does a temporary array cost on the heap, and in scratch memory?",
    "numa": "How fast are copies between NUMA nodes, and how much of that is first touch?",
}
