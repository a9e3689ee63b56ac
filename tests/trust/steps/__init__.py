"""The steps of a random program. Each takes the world it acts on and random numbers of its own."""

from tests.trust.steps import agreement, arrays, looking, owners, processes, raw, scopes, sharing, shortage
from tests.trust.steps.first import FirstUses
from tests.trust.world import Step, World

ALONE: tuple[Step, ...] = (
    *(arrays.make,) * 60,
    *(arrays.shaped,) * 4,
    *(arrays.constructed,) * 8,
    *(arrays.drop,) * 48,
    arrays.drop_most,
    *(arrays.objects,) * 2,
    *(arrays.refill,) * 12,
    *(arrays.resize,) * 24,
    *(arrays.view,) * 3,
    *(arrays.handed_over,) * 6,
    *(arrays.temporaries,) * 5,
    *(arrays.read,) * 2,
    *(arrays.many_small,) * 3,
    *(raw.buffer,) * 12,
    *(owners.swapped,) * 3,
    owners.lent_twice,
    *(scopes.use,) * 4,
    scopes.tasks,
    *(scopes.install,) * 3,
    scopes.many_pools,
    *(scopes.scratch,) * 6,
    *(scopes.scratch_function,) * 4,
    *(scopes.scratch_error,) * 2,
    *(scopes.suspended,) * 6,
    *(sharing.copied,) * 7,
    *(sharing.shared,) * 2,
    sharing.altered,
    looking.look,
    *(looking.place,) * 2,
    *(looking.figures,) * 4,
    *(looking.told,) * 2,
    *(looking.trim,) * 2,
    *(looking.measured,) * 2,
    looking.collect,
)
"""Steps that may run in several threads at once; the more often one is listed, the more often it is drawn."""

#: Without the GIL CPython 3.14 loses tasks of one thread while another collects garbage, in programs of Python alone.
World.alone = tuple(step for step in ALONE if processes.GIL or step is not scopes.tasks)

STEPS: tuple[Step, ...] = (
    *ALONE * 84,
    *(looking.pause,) * 8,
    *(processes.threads,) * 16,
    *(processes.fork,) * 20,
    *(processes.signals,) * 10,
    *(raw.hooked,) * 20,
    *(raw.interpreters,) * 2,
    *(shortage.short_of_memory,) * 10,
    *(shortage.failing_calls,) * 80,
    *(shortage.failing_allocation,) * 60,
    *(agreement.agree,) * 8,
    shortage.few_mappings,
    *(shortage.few_files,) * 20,
)
"""All steps, a third of those that a program has. Those that take milliseconds share its time with the others."""

THREADS: tuple[Step, ...] = (processes.threads,)

DOOR: tuple[Step, ...] = (
    *(raw.hooked,) * 8,
    *(raw.buffer,) * 16,
    raw.interpreters,
    *(arrays.objects,) * 4,
    *(arrays.make,) * 12,
    *(arrays.resize,) * 12,
    *(arrays.drop,) * 24,
    arrays.drop_most,
    *(scopes.install,) * 8,
    *(processes.fork,) * 4,
    *(processes.threads,) * 2,
)
"""Of what comes from CPython's raw domain, of who serves there, and of who stands before."""

_NOT_FIRST = (scopes.tasks, owners.swapped)
"""Steps that a signal handler cannot run: tasks within tasks, and what depends on the use() around it."""

FIRST: Step = FirstUses([step for step in ALONE if step not in _NOT_FIRST]).first_uses
"""The first step of each program."""
