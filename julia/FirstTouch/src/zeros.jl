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
