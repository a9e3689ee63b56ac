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

# Every array type, where packages cannot have extensions. A method for all of them is ambiguous with constructors that
# take anything, so that from Julia 1.9 on an extension (ext/) names the type.
const Constructed{T} = @static VERSION < v"1.9-" ? AbstractArray{T} : Array{T}

(::Type{A})(allocator::AbstractArrayAllocator, dims::Dimension...) where {T,A<:Constructed{T}} = make(A, allocator, dims)
(::Type{A})(allocator::AbstractArrayAllocator, dims::Tuple{Vararg{Dimension}}) where {T,A<:Constructed{T}} =
    make(A, allocator, dims)

make(::Type{A}, allocator::AbstractArrayAllocator, dims::Tuple) where {A<:AbstractArray} =
    dress(A, new_array(A, allocator, map(ByteCalculators.extent, dims)), dims)

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

# Since 1.11 the memory of an array can stand alone.
@static if VERSION >= v"1.11-"
    (::Type{Memory{T}})(allocator::AbstractArrayAllocator, n::Integer) where {T} = Vector{T}(allocator, n).ref.mem
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

"""
    MemAlign([alignment])

Uninitialized memory of the C library at a multiple of `alignment`, a power of two that is at least the size of a pointer,
the default: of `posix_memalign` or, on Windows, of the allocator `aligned` of the library.

# Examples

```jldoctest
julia> A = Array{UInt8}(MemAlign(2^16), 1024);

julia> UInt(pointer(A)) % 2^16 == 0
true

julia> FirstTouch.alignment(MemAlign(64))
64
```
"""
struct MemAlign{B} <: LibcArrayAllocator{B}
    alignment::Int
    MemAlign{B}(alignment::Integer = sizeof(Ptr)) where {B} = new{B}(checked_alignment(alignment))
end

"    FirstTouch.alignment(allocator)\n\nThe alignment that a [`MemAlign`](@ref) was created with."
alignment(allocator::MemAlign) = allocator.alignment

function checked_alignment(alignment::Integer)
    ispow2(alignment) || throw(ArgumentError("an alignment of $alignment is not a power of two"))
    alignment >= sizeof(Ptr) ||
        throw(ArgumentError("an alignment of $alignment is below $(sizeof(Ptr)), the smallest"))
    alignment <= typemax(Int) || throw(ArgumentError("an alignment of $alignment is larger than all memory"))
    return Int(alignment)
end

# Blocks of the library have at least this alignment, and `aligned` takes none below.
aligned_of(allocator::MemAlign) = kept("aligned($(max(allocator.alignment, 64)))")

@static if Sys.iswindows()
    # `Libc.free` frees no aligned memory there.
    allocate(allocator::MemAlign, bytes) = allocate(aligned_of(allocator), bytes)
    Base.unsafe_wrap(allocator::MemAlign, ::Type{A}, pointer::Ptr, dims) where {A<:AbstractArray} =
        unsafe_wrap(aligned_of(allocator), A, pointer, dims)
else
    function allocate(allocator::MemAlign, bytes)
        pointer = Ref(C_NULL)
        status = ccall(:posix_memalign, Cint, (Ref{Ptr{Cvoid}}, Csize_t, Csize_t), pointer, allocator.alignment, bytes)
        return status == 0 ? pointer[] : C_NULL
    end
end

# A drop-in for `Base.zeros` whose pages are zeroed at their first use.

"""
    FirstTouch.zeros([T = Float64,] dims...)
    FirstTouch.zeros([T = Float64,] dims::Tuple)

An array of zeros, as from `Base.zeros`, but lazily zeroed: a large array is created at once, and its pages become real
when they are written first. A type whose zero is not all zero bits gets Julia's own memory, and one without a `zero`
zero bits.

# Examples

```jldoctest
julia> FirstTouch.zeros(Int, 2, 2) == Base.zeros(Int, 2, 2)
true

julia> FirstTouch.zeros(Rational{Int}, 2) == [0//1, 0//1]
true
```
"""
zeros(::Type{T}, dims::Integer...) where {T} = zeros(T, dims)
zeros(dims::Integer...) = zeros(Float64, dims)
zeros(dims::Tuple{Vararg{Integer}}) = zeros(Float64, dims)
zeros(::Type{T}, dims::Tuple{Vararg{Integer}}) where {T} =
    is_zero_bits(T) ? Array{T}(calloc, map(Int, dims)) : Base.zeros(T, dims)
# Other dimensions, such as ranges, are for whoever gives them a meaning.
zeros(arguments...) = Base.zeros(arguments...)

# Whether memory full of zeros reads as the zero of a type.
function is_zero_bits(::Type{T}) where {T}
    isbitstype(T) || return false
    hasmethod(zero, Tuple{Type{T}}) || return true
    value = try
        zero(T)
    catch
        return true
    end
    value isa T || return true
    copy = Ref(value)
    return GC.@preserve copy all(i -> iszero(unsafe_load(Ptr{UInt8}(pointer_from_objref(copy)), i)), 1:sizeof(T))
end
