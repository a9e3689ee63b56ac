# Options of allocators. A value that an option does not take is an error that names the option, what was given, and
# what would do; nothing stands for a default but `nothing`.

@noinline function refuse(name, value, why, give)
    shown = sprint(io -> show(IOContext(io, :limit => true, :displaysize => (24, 40)), value))
    throw(ArgumentError("$name=$shown is $why: give $give"))
end

is_number(value) = value isa Real && !(value isa Bool) && !isnan(value)

function flag(name, value)
    value isa Bool || refuse(name, value, "not a Bool", "true or false")
    return value
end

# A number of seconds as the library takes it: `Inf` for ever, negative for what the allocator decides.
function seconds(name, value)
    value === nothing && return -1.0
    give = "seconds, 0 or more, Inf to keep memory for ever, or nothing to let the allocator decide"
    is_number(value) && value >= 0 || refuse(name, value, "not a time", give)
    value == Inf || value < 1e9 || refuse(name, value, "more than 31 years", give)
    return Float64(value)
end

# A byte's value as the library takes it: -1 for none.
function byte(name, value)
    value === nothing && return Cint(-1)
    is_number(value) && isinteger(value) && 0 <= value <= 255 ||
        refuse(name, value, "not a byte", "0 to 255, or nothing to leave memory as it is")
    return Cint(value)
end

function thread_count(name, value, give)
    is_number(value) && isinteger(value) && 0 <= value <= 1024 || refuse(name, value, "not a number of threads", give)
    return Cint(value)
end
populating(value::Bool) = value ? Cint(-1) : Cint(0)
populating(value) = thread_count("populate", value, "true, false, or a number of threads up to 1024")

# A number of bytes.
function bytes_option(name, value, or = "")
    give = "bytes, such as 65536, \"64 KiB\" or \"1.5 GiB\"$or"
    number = value isa AbstractString ? tryparse_bytes(value) : value
    is_number(number) && isinteger(number) || refuse(name, value, "not a size", give)
    number < 0 && refuse(name, value, "negative", give)
    number < 2.0^63 || refuse(name, value, "8 EiB or more", give)
    return Csize_t(number)
end

# Page sizes as the library takes them, or `nothing`.
function page_sizes(value)
    (value === nothing || value === false) && return nothing
    value isa Union{Tuple,AbstractVector} && !isempty(value) && return join(map(page_sizes_word, value), ',')
    return page_sizes_word(value)
end
function page_sizes_word(value)
    value isa Union{Symbol,AbstractString} && return string(value)
    value isa Integer && !(value isa Bool) && value > 0 && return string(value)
    refuse("huge", value, "not a page size", "\"thp\", sizes such as \"2M\" or (\"1G\", \"2M\"), or nothing")
end

# A NUMA policy as the library takes it.
function numa_policy(name, value)
    value isa Union{Symbol,AbstractString} && return string(value)
    value isa Integer && !(value isa Bool) && value >= 0 && return string(value)
    refuse(name, value, "not a NUMA policy", "a node such as 0, or \"interleave:all\", \"preferred:1\" or \"local\"")
end
