# How long memory lives: when an array's memory ends, when garbage is collected for it, and whose allocators it needs.

# Where the lifetime of an array's memory ends, which Julia 1.11 has changed.
#
# Up to 1.10 an `Array` is one object. An array that shares its data (`reshape`, `vec`) holds a reference to the array
# that owns them, so that a finalizer of the first array runs after the last of them.
#
# Since 1.11 an `Array` refers to a `Memory`, which others may refer to without the array: `reshape` copies `arr.ref`,
# and `push!` gives the array another memory. The finalizer belongs to `arr.ref.mem`, because the array may be garbage
# while its memory is in use, or the other way round.
#
# Both wrap a pointer with `unsafe_wrap`, which neither frees the memory nor resizes it in place.

"""
    FirstTouch.lifetime(array::Array)

What the finalizer of an array's memory belongs to: the array, and since Julia 1.11 its `Memory`. On every version,
`finalize(FirstTouch.lifetime(A))` frees the memory at once.

# Examples

```jldoctest
julia> p = pool();

julia> A = Vector{Int}(p, 1000);

julia> finalize(FirstTouch.lifetime(A)); stats(p).blocks
0
```
"""
function lifetime end

@static if VERSION < v"1.11-"
    lifetime(array::Array) = array
else
    lifetime(array::Array) = array.ref.mem
end

# As it ends, Julia runs all finalizers while tasks in other threads may still use what they would free. Then nothing
# is freed: the memory goes with the process.
const ending = Threads.Atomic{Bool}(false)
notice_end() = atexit(() -> ending[] = true)
until_end(release) = object -> (ending[] || release(object); nothing)

"""
    FirstTouch.lineage_finalizer(f, array)

Calls `f` after the last use of the memory of an array, or of the array that a wrapper such as a view has as its
ancestor. `f` is given the array, or the `Memory` since Julia 1.11. It runs in whichever task collects garbage, between any two
instructions: it must not take a lock, yield or throw.
"""
lineage_finalizer(f, array::Array) = finalizer(f, lifetime(array))
lineage_finalizer(f, wrapper::AbstractArray) =
    parent(wrapper) === wrapper ? finalizer(f, wrapper) : lineage_finalizer(f, parent(wrapper))
lineage_finalizer(f, other) = finalizer(f, other)

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

# References to the library's allocators.
#
# The allocator object and each array on it share one `Handle`, whose last user gives it up: an array may outlive the
# object, and in one collection their finalizers run in any order. A finalizer takes no lock, so users are counted by
# atomic instructions, and whoever makes an array has to become a user first.

mutable struct Handle
    pointer::Ptr{Cvoid}
    users::Threads.Atomic{Int}
    Handle(pointer::Ptr{Cvoid}) = new(pointer, Threads.Atomic{Int}(1))
end

# Returns whether the handle had users still.
function acquire!(handle::Handle)
    users = handle.users[]
    while users > 0
        found = Threads.atomic_cas!(handle.users, users, users + 1)
        found == users && return true
        users = found
    end
    return false
end

function release!(handle::Handle)
    Threads.atomic_sub!(handle.users, 1) == 1 || return
    ccall((:firsttouch_release, libfirsttouch), Cvoid, (Ptr{Cvoid},), handle.pointer)
end
