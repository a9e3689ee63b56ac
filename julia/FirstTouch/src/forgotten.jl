# `Array{T}(pool, n)` where `Array{T}(pool(), n)` is meant.

const Maker = Union{typeof(pool),typeof(pages),typeof(limited),typeof(tracked),typeof(guarded),typeof(filled),
                    typeof(numa),Type{<:AbstractArrayAllocator}}
(::Type{A})(maker::Maker, dims::Dimension...) where {T,A<:AbstractArray{T}} = forgotten_call(maker)
(::Type{A})(maker::Maker, dims::Tuple{Vararg{Dimension}}) where {T,A<:AbstractArray{T}} = forgotten_call(maker)

@noinline function forgotten_call(maker)
    name = maker === MemAlign ? "MemAlign" : nameof(maker)
    throw(ArgumentError("$name makes allocators, and is none itself: write $name(...)"))
end
