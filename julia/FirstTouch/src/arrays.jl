# Arrays on allocators: `Array{T}(allocator, dims...)`.

"""
    AbstractArrayAllocator{B}

Supertype of what can stand where `undef` does: `Array{T}(allocator, dims...)`. `B` is the byte calculator.

A subtype of your own needs two methods: `FirstTouch.allocate(allocator, bytes)`, which returns a pointer, and
`Base.unsafe_wrap(allocator, ArrayType, pointer, dims)`, which makes it an array that frees it.

# Examples

```jldoctest
julia> struct Libc{B} <: AbstractArrayAllocator{B} end

julia> FirstTouch.allocate(::Libc, bytes) = Base.Libc.malloc(bytes)

julia> Base.unsafe_wrap(::Libc, A::Type, pointer::Ptr, dims) = unsafe_wrap(A, pointer, dims; own = true)

julia> sum(fill!(Vector{Int}(Libc(), 3), 7))
21
```
"""
abstract type AbstractArrayAllocator{B} end

(::Type{A})(arguments...) where {A<:AbstractArrayAllocator} =
    A isa UnionAll ? A{DefaultByteCalculator}(arguments...) : throw(MethodError(A, arguments))

# As the call that makes it, where the calculator is the one that needs no name.
Base.show(io::IO, allocator::AbstractArrayAllocator{DefaultByteCalculator}) =
    (print(io, nameof(typeof(allocator)), '('); join(io, map(repr, fields(allocator)), ", "); print(io, ')'))
fields(value) = ntuple(i -> getfield(value, i), fieldcount(typeof(value)))

"    FirstTouch.allocate(allocator, [T,] bytes)\n\nReturns a pointer to `bytes` bytes."
allocate(allocator::AbstractArrayAllocator, ::Type{T}, bytes) where {T} = Ptr{T}(allocate(allocator, bytes))

"    FirstTouch.iszeroinit(AllocatorType)\n\nWhether new arrays read as zero."
iszeroinit(::Type{<:AbstractArrayAllocator}) = false

# Whether elements that are not bits types may live in Julia's own memory instead.
allows_references(::Type{A}) where {A<:AbstractArrayAllocator} = iszeroinit(A)

const Dimension = Union{Integer,AbstractUnitRange}

(::Type{A})(allocator::AbstractArrayAllocator, dims::Dimension...) where {T,A<:AbstractArray{T}} = A(allocator, dims)

function (::Type{A})(allocator::AbstractArrayAllocator, dims::Tuple{Vararg{Dimension}}) where {T,A<:AbstractArray{T}}
    return dress(A, new_array(A, allocator, map(ByteCalculators.extent, dims)), dims)
end

function new_array(::Type{A}, allocator::AbstractArrayAllocator{B}, dims::Dims{N}) where {T,N,B,A<:AbstractArray{T}}
    # Before anything is allocated, because a failure afterwards would leak.
    A <: Array && !(Array{T,N} <: A) && throw(MethodError(A, (allocator, dims)))
    any(n -> n < 0, dims) && throw(ArgumentError("invalid dimensions $dims: one is negative"))
    bytes = nbytes(B{T}(dims))
    if !isbitstype(T)
        allows_references(typeof(allocator)) || throw(ArgumentError(
            "$T is not a bits type: the garbage collector looks after its values, so only undef, calloc and " *
            "FirstTouch.zeros take it"))
        return Array{T,N}(undef, dims)
    end
    # Empty arrays share one `Memory` since Julia 1.11, which cannot have finalizers of its own.
    bytes == 0 && return Array{T,N}(undef, dims)
    return unsafe_wrap(allocator, Array{T,N}, allocate(allocator, T, bytes), dims)
end

# Other array types are made of an array and its axes, as `OffsetArray(array, axes...)` is.
function dress(::Type{A}, array::Array, dims::Tuple) where {A<:AbstractArray}
    if !(A <: Array)
        array isa A && return array
        make, axes = Base.typename(A).wrapper, map(axis, dims)
        applicable(make, array, axes...) ||
            throw(ArgumentError("a $make cannot be made of an Array and its axes, as is needed on an allocator"))
        return make(array, axes...)
    end
    all(n -> first(axis(n)) == 1, dims) || throw(ArgumentError("the indices of an Array begin at 1, not as in $dims"))
    return array
end
axis(n::Integer) = Base.OneTo(Int(n))
axis(range::AbstractUnitRange) = range
