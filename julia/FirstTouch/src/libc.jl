# The C library's memory. Julia frees and counts it by itself (`own = true`), on every version.

"""
    FirstTouch.LibcArrayAllocator{B} <: AbstractArrayAllocator{B}

Supertype of allocators whose memory `Libc.free` frees. A subtype of your own needs a method of `FirstTouch.allocate`.
"""
abstract type LibcArrayAllocator{B} <: AbstractArrayAllocator{B} end
Base.unsafe_wrap(::LibcArrayAllocator, ::Type{A}, pointer::Ptr, dims) where {A<:AbstractArray} =
    wrap_libc_pointer(A, pointer, dims)

"""
    FirstTouch.wrap_libc_pointer([ArrayType,] pointer, dims)

The array at a pointer from `Libc.malloc` or `Libc.calloc`, which Julia frees; an `OutOfMemoryError` for a null pointer.

# Examples

```jldoctest
julia> A = FirstTouch.wrap_libc_pointer(Ptr{Int}(Libc.calloc(6, 8)), (2, 3));

julia> sum(A)
0
```
"""
function wrap_libc_pointer(::Type{A}, pointer::Ptr{T}, dims) where {T,A<:AbstractArray{T}}
    pointer == C_NULL && throw(OutOfMemoryError())
    return unsafe_wrap(A, pointer, dims; own = true)
end
wrap_libc_pointer(pointer::Ptr{T}, dims) where {T} = wrap_libc_pointer(Array{T}, pointer, dims)

"    MallocAllocator()\n\nUninitialized memory of the C library. See [`malloc`](@ref)."
struct MallocAllocator{B} <: LibcArrayAllocator{B} end
allocate(::MallocAllocator, bytes) = Libc.malloc(bytes)

"    UndefAllocator()\n\nJulia's own memory, as `undef` gives it, with dimensions checked as for other allocators."
struct UndefAllocator{B} <: AbstractArrayAllocator{B} end
allocate(::UndefAllocator, bytes) = C_NULL
allows_references(::Type{<:UndefAllocator}) = true
Base.unsafe_wrap(::UndefAllocator, ::Type{A}, ::Ptr, dims) where {A<:Array} = A(undef, dims)

"""
    malloc

Uninitialized memory of the C library: `Array{T}(malloc, dims...)`.

# Examples

```jldoctest
julia> size(Array{UInt8}(malloc, 16, 16))
(16, 16)
```
"""
const malloc = MallocAllocator()
