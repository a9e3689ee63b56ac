# Aligned memory of the C library.

"""
    FirstTouch.AbstractMemAlign{B} <: AbstractArrayAllocator{B}

Supertype of allocators of aligned memory. A subtype has a field `alignment`, or a method of `FirstTouch.alignment`.
"""
abstract type AbstractMemAlign{B} <: AbstractArrayAllocator{B} end

"    FirstTouch.alignment(allocator)\n\nThe alignment that a [`MemAlign`](@ref) was created with."
alignment(allocator::AbstractMemAlign) = allocator.alignment

"    FirstTouch.min_alignment(MemAlign)\n\nThe smallest alignment that an allocator type takes."
function min_alignment end

"""
    MemAlign([alignment])
    FirstTouch.POSIX.PosixMemAlign([alignment])

Uninitialized memory at a multiple of `alignment`, a power of two that is at least the size of a pointer, the default.
Memory comes from `posix_memalign`.

# Examples

```jldoctest
julia> A = Array{UInt8}(MemAlign(2^16), 1024);

julia> UInt(pointer(A)) % 2^16 == 0
true

julia> FirstTouch.alignment(MemAlign(64))
64
```
"""
struct PosixMemAlign{B} <: AbstractMemAlign{B}
    alignment::Int
    PosixMemAlign{B}(alignment::Integer = min_alignment(PosixMemAlign)) where {B} =
        new{B}(check_alignment(PosixMemAlign, alignment))
end

@doc (@doc PosixMemAlign)
const MemAlign = PosixMemAlign

min_alignment(::Type{<:PosixMemAlign}) = sizeof(Ptr)

function check_alignment(kind, alignment::Integer)
    ispow2(alignment) || throw(ArgumentError("an alignment of $alignment is not a power of two"))
    alignment >= min_alignment(kind) ||
        throw(ArgumentError("an alignment of $alignment is below $(min_alignment(kind)), the smallest"))
    alignment <= typemax(Int) || throw(ArgumentError("an alignment of $alignment is larger than all memory"))
    return Int(alignment)
end

function allocate(allocator::PosixMemAlign, bytes)
    pointer = Ref(C_NULL)
    status = ccall(:posix_memalign, Cint, (Ref{Ptr{Cvoid}}, Csize_t, Csize_t), pointer, allocator.alignment, bytes)
    return status == 0 ? pointer[] : C_NULL
end
Base.unsafe_wrap(::PosixMemAlign, ::Type{A}, pointer::Ptr, dims) where {A<:AbstractArray} =
    wrap_libc_pointer(A, pointer, dims)

"    FirstTouch.POSIX\n\nWhat POSIX systems have: `PosixMemAlign`, which is [`MemAlign`](@ref)."
module POSIX
using ..FirstTouch: PosixMemAlign
export PosixMemAlign
end
