# The C library's memory. Julia frees and counts it by itself (`own = true`), on every version.

abstract type LibcAllocator{B} <: AbstractArrayAllocator{B} end
Base.unsafe_wrap(::LibcAllocator, ::Type{A}, pointer::Ptr, dims) where {A<:Array} = owned(A, pointer, dims)

function owned(::Type{A}, pointer::Ptr, dims) where {A<:Array}
    pointer == C_NULL && throw(OutOfMemoryError())
    return unsafe_wrap(A, pointer, dims; own = true)
end

"    MallocAllocator()\n\nUninitialized memory of the C library. See [`malloc`](@ref)."
struct MallocAllocator{B} <: LibcAllocator{B} end
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

"""
    MemAlign([alignment])

Uninitialized memory at a multiple of `alignment`, a power of two that is at least the size of a pointer, the default.

# Examples

```jldoctest
julia> A = Array{UInt8}(MemAlign(2^16), 1024);

julia> UInt(pointer(A)) % 2^16 == 0
true

julia> FirstTouch.alignment(MemAlign(64))
64
```
"""
struct MemAlign{B} <: LibcAllocator{B}
    alignment::Int
    function MemAlign{B}(alignment::Integer = min_alignment(MemAlign)) where {B}
        ispow2(alignment) || throw(ArgumentError("an alignment of $alignment is not a power of two"))
        alignment >= min_alignment(MemAlign) ||
            throw(ArgumentError("an alignment of $alignment is below $(min_alignment(MemAlign)), the smallest"))
        return new{B}(alignment)
    end
end

"    FirstTouch.alignment(allocator)\n\nThe alignment that a `MemAlign` was created with."
alignment(allocator::MemAlign) = allocator.alignment

"    FirstTouch.min_alignment(MemAlign)\n\nThe smallest alignment that `MemAlign` takes."
min_alignment(::Type{<:MemAlign}) = sizeof(Ptr)

function allocate(allocator::MemAlign, bytes)
    pointer = Ref(C_NULL)
    status = ccall(:posix_memalign, Cint, (Ref{Ptr{Cvoid}}, Csize_t, Csize_t), pointer, allocator.alignment, bytes)
    return status == 0 ? pointer[] : C_NULL
end
