# Assignments between scratch arrays that overlap, such as `y .= y'`, whose result would be wrong.
#
# Base does not look for overlap where both sides are immutable, and elsewhere copies the source into an array of the
# same type. A scratch array is immutable, and its copy is an `Array`: to return either would make every assignment
# allocate.

const ScratchMemory{T} = Union{ScratchArray{T},CheckedArray{T}}
const ScratchTarget = Union{ScratchMemory,SubArray{<:Any,<:Any,<:ScratchMemory}}

function Base.unalias(target::ScratchTarget, source::AbstractArray)
    # An empty array lies where the next one does.
    !isempty(target) && !isempty(source) && overlap(target, source) && overlapping()
    return source
end
Base.unalias(::ScratchTarget, range::AbstractRange) = range

overlap(target, source) = !Base._isdisjoint(Base.dataids(target), Base.dataids(source))
# Of two views, Base compares the indices.
overlap(target::SubArray, source::SubArray) = Base.mightalias(target, source)

# `copyto!` with positions copies what overlaps as if it were copied elsewhere first, as between Arrays.
Base.copyto!(to::ScratchMemory{T}, i::Integer, from::ScratchMemory{T}, j::Integer, n::Integer) where {T} =
    move(to, i, from, j, n)
Base.copyto!(to::ScratchMemory{T}, i::Integer, from::Array{T}, j::Integer, n::Integer) where {T} =
    move(to, i, from, j, n)
Base.copyto!(to::Array{T}, i::Integer, from::ScratchMemory{T}, j::Integer, n::Integer) where {T} =
    move(to, i, from, j, n)

function move(to, i, from, j, n)
    n < 0 && throw(ArgumentError("cannot copy $n elements: the number is negative"))
    n == 0 && return to
    checkbounds(to, i)
    checkbounds(to, i + n - 1)
    checkbounds(from, j)
    checkbounds(from, j + n - 1)
    GC.@preserve to from unsafe_copyto!(pointer(to, i), pointer(from, j), n)
    return to
end

@noinline overlapping() = throw(ArgumentError(
    "the right side shares scratch memory with the left side, which would be overwritten while it is read: " *
    "assign a copy, as in `y .= copy(y')`"))
