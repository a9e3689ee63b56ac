# The library's allocators: expressions, and constructors for the allocators that stand on others.

"""
    Allocator(expression)

An allocator of the library. The expression is the one of firsttouch's command line; `ft"..."` is the same.

# Examples

```jldoctest
julia> Allocator("limited(pool(), '4 GiB')") isa AbstractArrayAllocator
true

julia> Vector{Int}(ft"limited(pool(), '1 MiB')", 10^6)
ERROR: AllocationError: [...]
```
"""
mutable struct Allocator{B} <: AbstractArrayAllocator{B}
    handle::Handle
    usable::Bool
    Allocator{B}(pointer::Ptr{Cvoid}) where {B} =
        finalizer(until_end(retire), new{B}(Handle(pointer), true))
end
Allocator{B}(expression::AbstractString) where {B} =
    Allocator{B}(created(handle -> ccall((:firsttouch_parse, libfirsttouch), Cint, (Cstring, Ptr{Ptr{Cvoid}}),
                                         expression, handle)))

"    ft\"expression\"\n\nThe allocator that an expression describes: `ft\"pages(huge='thp')\"`."
macro ft_str(expression)
    return :(Allocator($expression))
end

function created(create)
    handle = Ref(C_NULL)
    check(create(handle))
    return handle[]
end

# One allocator for each of these expressions, kept for ever.
const kept_allocators = Dict{String,Allocator}()
const kept_lock = ReentrantLock()
kept(expression::String) =
    lock(() -> get!(() -> Allocator(expression), kept_allocators, expression), kept_lock)

# Copies of a structure share the allocators in it.
Base.deepcopy_internal(allocator::Allocator, ::IdDict) = allocator

function retire(allocator::Allocator)
    allocator.usable || return
    allocator.usable = false
    release!(allocator.handle)
end

# The pointer that the library is called with; null is the pool that the whole process shares.
pointer_of(::Nothing) = C_NULL
pointer_of(allocator::Allocator) = is_usable(allocator) ? allocator.handle.pointer : unusable()
is_usable(allocator::Allocator) = allocator.usable && allocator.handle.pointer != C_NULL
@noinline unusable() = throw(ArgumentError("this allocator cannot be used: it was finalized, came from another " *
    "process, or is a constant of a precompiled package, which has to create its allocators in __init__"))

# Memory of the allocator that a pointer leads to.
function take(handle::Ptr{Cvoid}, bytes::Int, zeroed::Bool = false)
    make_room(bytes)
    block = ask(handle, bytes, zeroed)
    if block == C_NULL
        # What nobody uses any more may be what the limit counts.
        GC.gc(true)
        block = ask(handle, bytes, zeroed)
        block == C_NULL && throw(AllocationError(last_error()))
    end
    count_allocation(bytes)
    return block
end
ask(handle, bytes, zeroed) =
    zeroed ? ccall((:firsttouch_calloc, libfirsttouch), Ptr{Cvoid}, (Ptr{Cvoid}, Csize_t, Csize_t), handle, bytes, 1) :
    ccall((:firsttouch_malloc, libfirsttouch), Ptr{Cvoid}, (Ptr{Cvoid}, Csize_t), handle, bytes)

function give(handle::Ptr{Cvoid}, block::Ptr{Cvoid}, bytes::Int)
    ccall((:firsttouch_free, libfirsttouch), Cvoid, (Ptr{Cvoid}, Ptr{Cvoid}), handle, block)
    count_release(bytes)
end

allocate(allocator::Allocator, bytes) = GC.@preserve allocator take(pointer_of(allocator), Int(bytes))

function Base.unsafe_wrap(allocator::Allocator, ::Type{A}, pointer::Ptr{T}, dims) where {T,A<:Array{T}}
    array = unsafe_wrap(A, pointer, dims; own = false)
    handle = allocator.handle
    GC.@preserve allocator acquire!(handle) || unusable()
    block = Ptr{Cvoid}(pointer)
    bytes = length(array) * Base.elsize(A)
    lineage_finalizer(until_end(_ -> (give(handle.pointer, block, bytes); release!(handle))), array)
    return array
end

function Base.show(io::IO, allocator::Allocator)
    is_usable(allocator) || return print(io, "Allocator(finalized)")
    describe(buffer, n) = GC.@preserve allocator ccall((:firsttouch_describe, libfirsttouch), Csize_t,
        (Ptr{Cvoid}, Ptr{UInt8}, Csize_t), allocator.handle.pointer, buffer, n)
    buffer = Vector{UInt8}(undef, describe(C_NULL, 0) + 1)
    describe(buffer, length(buffer))
    print(io, "ft\"", replace(String(buffer[1:end-1]), '"' => '\''), '"')
end

# The library's allocators by name. Options become the text of an expression, which the library checks: its reference of
# allocators has them all.

pointer_of(other) =
    refuse("allocator", other, "not an allocator of the library", "one such as pool() or ft\"malloc()\"")

# A value as it stands in an expression.
literal(name, ::Nothing) = "None"
literal(name, value::Bool) = value ? "True" : "False"
literal(name, value::Integer) = string(value)
literal(name, value::Union{Symbol,AbstractString}) =
    string('\'', replace(replace(string(value), "\\" => "\\\\"), "'" => "\\'"), '\'')
function literal(name, value::Real)
    isfinite(value) || refuse(name, value, "not finite", "a number, or nothing for no bound")
    isinteger(value) && abs(value) < 2.0^63 && return string(Int64(value))
    return string(Float64(value))
end
literal(name, value) = refuse(name, value, "not a value of an option", "a number, true, false or text")

function made(name, upstream; options...)
    given = ("$key=$(literal(key, value))" for (key, value) in options)
    text = string(name, '(', join(given, ", "), ')')
    upstream === nothing && return Allocator(text)
    GC.@preserve upstream Allocator{DefaultByteCalculator}(created(handle -> ccall((:firsttouch_parse_over,
        libfirsttouch), Cint, (Cstring, Ptr{Cvoid}, Ptr{Ptr{Cvoid}}), text, pointer_of(upstream), handle)))
end

"""
    pool([upstream]; max_idle, decay)

A pool keeps freed blocks for later requests, and returns them to the operating system once they have stayed idle for
`decay` seconds (`nothing`: never). At most `max_idle` bytes are kept; without either, the pool decides.

# Examples

```jldoctest
julia> p = pool(max_idle = "1 GiB");

julia> sum(fill!(Array{Float64}(p, 100, 100), 1.0))
10000.0
```
"""
pool(upstream = nothing; options...) = made("pool", upstream; options...)

"""
    pages(; huge, numa, populate, lock, strict)

Pages of the operating system, a mapping for each array. `huge` is `"thp"` or a size such as `"2M"`; `numa` a node
or a policy such as `"interleave:all"`; `populate` makes the pages real at once, `true` or a number of threads. What was
not granted is on the [`receipt`](@ref), or an error where `strict`.

# Examples

```jldoctest
julia> A = Vector{Float64}(pages(populate = true), 10^6);

julia> inspect(A).absent
0
```
"""
pages(; options...) = made("pages", nothing; options...)

"    limited(upstream, budget)\n\nFails requests beyond a budget: `limited(pool(), \"4 GiB\")`."
limited(upstream, budget; options...) = made("limited", upstream; budget = budget, options...)

"""
    guarded(; side = :after, keep = 0)

Places an inaccessible page behind each array, or before it: an overrun ends the program where it happens. Of the arrays
freed last, `keep` bytes stay inaccessible.
"""
guarded(; options...) = made("guarded", nothing; options...)

"""
    filled([upstream]; on_allocate = 0xff, on_free = nothing)

Fills new and freed memory with a byte; `nothing` leaves it as it is.

# Examples

```jldoctest
julia> Vector{UInt8}(filled(pool(); on_allocate = 0x11), 100) == fill(0x11, 100)
true
```
"""
filled(upstream = nothing; options...) = made("filled", upstream; options...)

# Zeroed memory.

"    CallocAllocator()\n\nZeroed memory. See [`calloc`](@ref)."
struct CallocAllocator{B} <: AbstractArrayAllocator{B} end
iszeroinit(::Type{<:CallocAllocator}) = true

"""
    calloc

Zeroed memory: `Array{T}(calloc, dims...)`. Arrays of 1 MiB and more are created at once: the operating system zeroes a
page at its first use. Smaller ones are the C library's.

# Examples

```jldoctest
julia> sum(Array{UInt8}(calloc, 16, 16))
0x0000000000000000
```
"""
const calloc = CallocAllocator()

# The C library's own `calloc` is lazy only until the first large block is freed: the threshold up to which it recycles
# memory, and clears it with `memset`, then moves up to 32 MiB. A pool that keeps nothing always has fresh pages.
const LAZY = 1 << 20
const lazy = Ref{Allocator}()
create_lazy_pool() = (lazy[] = pool(max_idle = 0); nothing)

allocate(::CallocAllocator, bytes) =
    bytes < LAZY ? Libc.calloc(bytes, 1) : take(pointer_of(lazy[]), Int(bytes), true)

function Base.unsafe_wrap(::CallocAllocator, ::Type{A}, pointer::Ptr, dims::Dims) where {A<:Array}
    prod(dims) * Base.elsize(A) < LAZY && return wrap_libc_pointer(A, pointer, dims)
    return unsafe_wrap(lazy[], A, pointer, dims)
end
