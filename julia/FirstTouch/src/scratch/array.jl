# The arrays of scratch memory: a pointer and a size, which allocate nothing and own nothing.

"""
    FirstTouch.ScratchArray{T,N}

An array of scratch memory, valid until the end of its [`@no_escape`](@ref). Elements are bits types.
"""
struct ScratchArray{T,N} <: DenseArray{T,N}
    pointer::Ptr{T}
    size::NTuple{N,Int}
end

Base.size(array::ScratchArray) = array.size
Base.IndexStyle(::Type{<:ScratchArray}) = IndexLinear()
Base.elsize(::Type{<:ScratchArray{T}}) where {T} = Base.elsize(Vector{T})
Base.strides(array::ScratchArray) = Base.size_to_strides(1, array.size...)
Base.unsafe_convert(::Type{Ptr{T}}, array::ScratchArray{T}) where {T} = array.pointer
Base.pointer(array::ScratchArray) = array.pointer
Base.sizeof(array::ScratchArray) = length(array) * Base.elsize(array)
function Base.reshape(array::ScratchArray{T}, size::Dims{N}) where {T,N}
    scratch_bytes(T, size) == sizeof(array) && prod(size) == length(array) ||
        throw(DimensionMismatch("$size does not hold the $(length(array)) elements of the array"))
    return ScratchArray{T,N}(array.pointer, size)
end
# By address, so that broadcasting sees what overlaps.
Base.dataids(array::ScratchArray) = (UInt(array.pointer),)

Base.@propagate_inbounds function Base.getindex(array::ScratchArray, i::Int)
    @boundscheck checkbounds(array, i)
    return unsafe_load(array.pointer, i)
end
Base.@propagate_inbounds function Base.setindex!(array::ScratchArray{T}, value, i::Int) where {T}
    @boundscheck checkbounds(array, i)
    unsafe_store!(array.pointer, convert(T, value)::T, i)
    return array
end
