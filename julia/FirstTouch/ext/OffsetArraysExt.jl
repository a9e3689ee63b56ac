# `OffsetArray{T}(allocator, -5:5, 1:3)`, from Julia 1.9 on.
module OffsetArraysExt

using FirstTouch: AbstractArrayAllocator, Dimension, make
using OffsetArrays: OffsetArray

(::Type{A})(allocator::AbstractArrayAllocator, dims::Dimension...) where {T,A<:OffsetArray{T}} = make(A, allocator, dims)
(::Type{A})(allocator::AbstractArrayAllocator, dims::Tuple{Vararg{Dimension}}) where {T,A<:OffsetArray{T}} =
    make(A, allocator, dims)

end
