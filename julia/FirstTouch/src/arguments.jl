# What comes in and what goes wrong: arguments, sizes as text, and the library's failures as exceptions.

const UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

function format_bytes(bytes::Integer)
    value = Float64(bytes)
    unit = 1
    while value >= 1024 && unit < length(UNITS)
        value /= 1024
        unit += 1
    end
    text = isinteger(value) ? string(Int(value)) : string(round(value; digits = 1))
    return string(text, ' ', UNITS[unit])
end

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

# Arguments. A value that is not taken is an error that names the argument, what was given, and what would do. The library
# checks the options of its allocators itself.

@noinline function refuse(name, value, why, give)
    shown = sprint(io -> show(IOContext(io, :limit => true, :displaysize => (24, 40)), value))
    throw(ArgumentError("$name=$shown is $why: give $give"))
end

is_number(value) = value isa Real && !(value isa Bool) && !isnan(value)

function flag(name, value)
    value isa Bool || refuse(name, value, "not a Bool", "true or false")
    return value
end

function thread_count(name, value, give)
    is_number(value) && isinteger(value) && 0 <= value <= 1024 || refuse(name, value, "not a number of threads", give)
    return Cint(value)
end

# A NUMA policy as the library takes it.
function numa_policy(name, value)
    value isa Union{Symbol,AbstractString} && return string(value)
    value isa Integer && !(value isa Bool) && value >= 0 && return string(value)
    refuse(name, value, "not a NUMA policy", "a node such as 0, or \"interleave:all\", \"preferred:1\" or \"local\"")
end
