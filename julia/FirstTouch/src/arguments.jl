# What comes in and what goes wrong: arguments, and the library's failures as exceptions.

# How the library's failures become exceptions.

"""
    AllocationError(message)

Thrown where an allocator of the library cannot serve a request. The message names the limit that was exceeded.
"""
struct AllocationError <: Exception
    message::String
end
Base.showerror(io::IO, error::AllocationError) = print(io, "AllocationError: ", error.message)

last_error() = unsafe_string(ccall((:firsttouch_last_error, libfirsttouch), Cstring, ()))

# The values of `firsttouch_status`.
const NO_MEMORY = 1
const INVALID = 2
const EXPRESSION = 3

check(status::Cint) = status == 0 ? nothing : fail(status)
@noinline function fail(status::Cint)
    message = last_error()
    status == NO_MEMORY && throw(AllocationError(message))
    status in (INVALID, EXPRESSION) && throw(ArgumentError(message))
    error(message)
end

# Arguments. The library checks the options of its allocators, and policies; other values that are not taken are named here.

@noinline function refuse(name, value, why, give)
    shown = sprint(io -> show(IOContext(io, :limit => true, :displaysize => (24, 40)), value))
    throw(ArgumentError("$name=$shown is $why: give $give"))
end
