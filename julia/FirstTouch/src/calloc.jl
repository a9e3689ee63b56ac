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
