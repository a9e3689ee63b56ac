# Garbage collection in time for memory that Julia did not allocate.
#
# Julia collects once it has allocated some tens of MiB. It does not count memory that `unsafe_wrap` borrows, and no
# function of its interface counts without allocating. So bytes are counted here, and a collection is requested where
# Julia would start one: a quick one first, a full one where that did not bring the bytes down.

"Bytes of live arrays and slabs."
const live = Threads.Atomic{Int}(0)
"Bytes allocated since the last collection that was requested here."
const recent = Threads.Atomic{Int}(0)
"Live bytes after that collection."
const survived = Threads.Atomic{Int}(0)

const COLLECT_AFTER = 64 << 20

# Before an allocation, which is counted only once it has succeeded.
make_room(bytes::Int) = bytes > max(COLLECT_AFTER, survived[] >> 1) - recent[] && relieve()

function count_allocation(bytes::Int)
    Threads.atomic_add!(live, bytes)
    Threads.atomic_add!(recent, bytes)
    return
end

# Called from finalizers: nothing but one atomic instruction.
count_release(bytes::Int) = (Threads.atomic_sub!(live, bytes); nothing)

@noinline function relieve()
    fresh = Threads.atomic_xchg!(recent, 0)
    before = live[]
    GC.gc(false)
    live[] > before - fresh >> 1 && live[] > 4 * COLLECT_AFTER && GC.gc(true)
    survived[] = live[]
    return
end
