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

# Runs `release()` once, after the last use of the memory. It runs in whichever task collects garbage, between any two
# instructions: it must not take a lock, yield or throw.
function on_release(release, array::Array)
    finalizer(until_end(_ -> release()), lifetime(array))
    return array
end

"""
    FirstTouch.lineage_finalizer(f, array)

Calls `f` after the last use of the memory of an array, or of the array that a wrapper such as a view has as its
ancestor. `f` is given the array, or the `Memory` since Julia 1.11; it must neither yield nor throw.
"""
lineage_finalizer(f, array::Array) = finalizer(f, lifetime(array))
lineage_finalizer(f, wrapper::AbstractArray) =
    parent(wrapper) === wrapper ? finalizer(f, wrapper) : lineage_finalizer(f, parent(wrapper))
lineage_finalizer(f, other) = finalizer(f, other)
