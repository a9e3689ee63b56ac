# Assignments between scratch arrays that overlap, such as `y .= y'`, whose result would be wrong.
#
# Base does not look for overlap where both sides are immutable, and elsewhere copies the source into an array of the
# same type. A scratch array is immutable, and its copy is an `Array`: to return either would make every assignment
# allocate.

const ScratchMemory = Union{ScratchArray,CheckedArray}
const ScratchTarget = Union{ScratchMemory,SubArray{<:Any,<:Any,<:ScratchMemory}}

function Base.unalias(target::ScratchTarget, source::AbstractArray)
    overlap(target, source) && overlapping()
    return source
end
Base.unalias(::ScratchTarget, range::AbstractRange) = range

overlap(target, source) = !Base._isdisjoint(Base.dataids(target), Base.dataids(source))
# Of two views, Base compares the indices.
overlap(target::SubArray, source::SubArray) = Base.mightalias(target, source)

@noinline overlapping() = throw(ArgumentError(
    "the right side shares scratch memory with the left side, which would be overwritten while it is read: " *
    "assign a copy, as in `y .= copy(y')`"))
