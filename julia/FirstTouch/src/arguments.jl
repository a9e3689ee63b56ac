# What comes in and what goes wrong: sizes as text, options, and the library's failures as exceptions.

# Byte counts as text, in both directions.

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

const FACTORS = Dict("" => 1, "B" => 1, "KIB" => 2^10, "MIB" => 2^20, "GIB" => 2^30, "TIB" => 2^40, "K" => 2^10,
                     "M" => 2^20, "G" => 2^30, "T" => 2^40, "KB" => 10^3, "MB" => 10^6, "GB" => 10^9, "TB" => 10^12)

# A number of bytes, or `nothing` where the text is none. It may be too large for an `Int`.
function tryparse_bytes(text::AbstractString)
    parts = match(r"^\s*([0-9_]*\.?[0-9]+)\s*([A-Za-z]*)\s*$", text)
    factor = parts === nothing ? nothing : get(FACTORS, uppercase(parts[2]), nothing)
    return factor === nothing ? nothing : round(parse(BigFloat, replace(parts[1], "_" => "")) * factor)
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

# A number of bytes.
function bytes_option(name, value, or = "")
    give = "bytes, such as 65536, \"64 KiB\" or \"1.5 GiB\"$or"
    number = value isa AbstractString ? tryparse_bytes(value) : value
    is_number(number) && isinteger(number) || refuse(name, value, "not a size", give)
    number < 0 && refuse(name, value, "negative", give)
    number < 2.0^63 || refuse(name, value, "8 EiB or more", give)
    return Csize_t(number)
end

# A NUMA policy as the library takes it.
function numa_policy(name, value)
    value isa Union{Symbol,AbstractString} && return string(value)
    value isa Integer && !(value isa Bool) && value >= 0 && return string(value)
    refuse(name, value, "not a NUMA policy", "a node such as 0, or \"interleave:all\", \"preferred:1\" or \"local\"")
end
