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
    handle::Ptr{Cvoid}
    function Allocator{B}(handle::Ptr{Cvoid}) where {B}
        allocator = finalizer(retire, new{B}(handle))
        remember(allocator)
        return allocator
    end
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

hold_handle(handle::Ptr{Cvoid}) = ccall((:firsttouch_retain, libfirsttouch), Ptr{Cvoid}, (Ptr{Cvoid},), handle)
drop_handle(handle::Ptr{Cvoid}) = ccall((:firsttouch_release, libfirsttouch), Cvoid, (Ptr{Cvoid},), handle)

function retire(allocator::Allocator)
    handle = allocator.handle
    allocator.handle = C_NULL
    drop_handle(handle)
end

# Every allocator that may still serve, for receipts. A weak reference may lead to one whose finalizer has run.
const known = WeakRef[]
const known_lock = ReentrantLock()
remember(allocator) = lock(known_lock) do
    filter!(reference -> reference.value !== nothing, known)
    push!(known, WeakRef(allocator))
end
function known_allocators()
    values = lock(() -> Any[reference.value for reference in known], known_lock)
    return filter(value -> value isa Allocator && value.handle != C_NULL, values)
end

# Memory of a handle; C_NULL is the pool that the whole process shares.
function take(handle::Ptr{Cvoid}, bytes::Int, zeroed::Bool = false)
    count_allocation(bytes)
    block = ask(handle, bytes, zeroed)
    if block == C_NULL
        # What nobody uses any more may be what the limit counts.
        GC.gc(true)
        block = ask(handle, bytes, zeroed)
    end
    if block == C_NULL
        message = last_error()
        count_release(bytes)
        throw(AllocationError(message))
    end
    return block
end
ask(handle, bytes, zeroed) =
    zeroed ? ccall((:firsttouch_calloc, libfirsttouch), Ptr{Cvoid}, (Ptr{Cvoid}, Csize_t, Csize_t), handle, bytes, 1) :
    ccall((:firsttouch_malloc, libfirsttouch), Ptr{Cvoid}, (Ptr{Cvoid}, Csize_t), handle, bytes)

function give(handle::Ptr{Cvoid}, block::Ptr{Cvoid}, bytes::Int)
    ccall((:firsttouch_free, libfirsttouch), Cvoid, (Ptr{Cvoid}, Ptr{Cvoid}), handle, block)
    count_release(bytes)
end

allocate(allocator::Allocator, bytes) = GC.@preserve allocator take(allocator.handle, Int(bytes))

# An array holds a reference to the allocator's handle, not to this object: in one collection, finalizers run in any
# order, and the handle has to outlive the last block.
function Base.unsafe_wrap(allocator::Allocator, ::Type{A}, pointer::Ptr{T}, dims) where {T,A<:Array{T}}
    array = unsafe_wrap(A, pointer, dims; own = false)
    handle = GC.@preserve allocator hold_handle(allocator.handle)
    block = Ptr{Cvoid}(pointer)
    bytes = length(array) * Base.elsize(A)
    return on_release(array) do
        give(handle, block, bytes)
        drop_handle(handle)
    end
end

function Base.show(io::IO, allocator::Allocator)
    describe(buffer, n) = GC.@preserve allocator ccall((:firsttouch_describe, libfirsttouch), Csize_t,
                                                       (Ptr{Cvoid}, Ptr{UInt8}, Csize_t), allocator.handle, buffer, n)
    buffer = Vector{UInt8}(undef, describe(C_NULL, 0) + 1)
    describe(buffer, length(buffer))
    print(io, "ft\"", replace(String(buffer[1:end-1]), '"' => '\''), '"')
end

include("factories.jl")
