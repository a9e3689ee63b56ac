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
    return on_release(array) do
        give(handle.pointer, block, bytes)
        release!(handle)
    end
end

function Base.show(io::IO, allocator::Allocator)
    is_usable(allocator) || return print(io, "Allocator(finalized)")
    describe(buffer, n) = GC.@preserve allocator ccall((:firsttouch_describe, libfirsttouch), Csize_t,
        (Ptr{Cvoid}, Ptr{UInt8}, Csize_t), allocator.handle.pointer, buffer, n)
    buffer = Vector{UInt8}(undef, describe(C_NULL, 0) + 1)
    describe(buffer, length(buffer))
    print(io, "ft\"", replace(String(buffer[1:end-1]), '"' => '\''), '"')
end
Base.show(io::IO, ::MIME"text/plain", allocator::Allocator) = print_wrapped(io, sprint(show, allocator))

include("factories.jl")
