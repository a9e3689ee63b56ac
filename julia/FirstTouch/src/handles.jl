# References to the library's allocators.
#
# The allocator object and each array on it share one `Handle`, whose last user gives it up: an array may outlive the
# object, and in one collection their finalizers run in any order. A finalizer takes no lock, so users are counted by
# atomic instructions, and whoever finds a handle in the list below has to become a user of it first.

mutable struct Handle
    pointer::Ptr{Cvoid}
    users::Threads.Atomic{Int}
    function Handle(pointer::Ptr{Cvoid})
        handle = new(pointer, Threads.Atomic{Int}(1))
        lock(handles_lock) do
            filter!(other -> other.users[] > 0, handles)
            push!(handles, handle)
        end
        return handle
    end
end

# All that may have users, for receipts.
const handles = Handle[]
const handles_lock = ReentrantLock()
all_handles() = lock(() -> copy(handles), handles_lock)

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
