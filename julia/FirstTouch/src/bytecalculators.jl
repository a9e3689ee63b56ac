"""
    FirstTouch.ByteCalculators

Calculators of the bytes that an array takes. They differ in how they find that the number overflows.

# Examples

```jldoctest
julia> using FirstTouch.ByteCalculators

julia> nbytes(CheckedMulByteCalculator{UInt16}(1024, 2048))
4194304

julia> nbytes(CheckedMulByteCalculator{UInt16}(typemax(Int)))
ERROR: OverflowError: the bytes of a 9223372036854775807-element array of UInt16 overflow Int64
[...]
```
"""
module ByteCalculators

export nbytes, elsize
export UnsafeByteCalculator, CheckedMulByteCalculator, WideningByteCalculator

"""
    AbstractByteCalculator{T}

Supertype of byte calculators for elements of type `T`. They are made of dimensions: integers, or ranges for their
lengths, separately or as a tuple.
"""
abstract type AbstractByteCalculator{T} end

for (name, how) in ((:UnsafeByteCalculator, "without looking for overflow: the product wraps"),
                    (:CheckedMulByteCalculator, "with `Base.checked_mul`"),
                    (:WideningByteCalculator, "in an integer type of twice the width"))
    @eval begin
        struct $name{T} <: AbstractByteCalculator{T}
            dims::Dims
            $name{T}(dims::Dims) where {T} = new{T}(dims)
        end
        @doc $("    $name{T}(dims...)\n\nCalculates the bytes of an array $how.") $name
    end
end

const Dimension = Union{Integer,AbstractUnitRange}
extent(n::Integer) = typemin(Int) <= n <= typemax(Int) ? Int(n) : throw(OverflowError("dimension $n overflows Int64"))
extent(range::AbstractUnitRange) = length(range)

(::Type{C})(dims::Dimension...) where {T,C<:AbstractByteCalculator{T}} = C(map(extent, dims))
(::Type{C})(dims::Tuple{Vararg{Dimension}}) where {T,C<:AbstractByteCalculator{T}} = C(map(extent, dims))

"    elsize(calculator)\n\nThe bytes of one element in an array: those of a reference where it is not a bits type."
elsize(::AbstractByteCalculator{T}) where {T} = isbitstype(T) ? Base.elsize(Vector{T}) : sizeof(Ptr)

"    nbytes(calculator)\n\nThe bytes of the array; an `OverflowError` where they do not fit into an `Int`."
nbytes(calculator::AbstractByteCalculator) = product(calculator, elsize(calculator), length(calculator))

Base.length(calculator::AbstractByteCalculator) =
    foldl((a, b) -> product(calculator, a, b), calculator.dims; init = 1)

product(::UnsafeByteCalculator, a::Int, b::Int) = a * b
function product(calculator::CheckedMulByteCalculator, a::Int, b::Int)
    result, overflows = Base.mul_with_overflow(a, b)
    return overflows ? overflow(calculator) : result
end
function product(calculator::WideningByteCalculator, a::Int, b::Int)
    result = widemul(a, b)
    return typemin(Int) <= result <= typemax(Int) ? Int(result) : overflow(calculator)
end
product(calculator::AbstractByteCalculator, a, b) = a * b

@noinline function overflow(calculator::AbstractByteCalculator{T}) where {T}
    dims = calculator.dims
    shape = length(dims) == 1 ? string(dims[1], "-element") : join(dims, '×')
    throw(OverflowError("the bytes of a $shape array of $T overflow Int64"))
end

end
using .ByteCalculators

"The calculator of allocators that name none."
const DefaultByteCalculator = CheckedMulByteCalculator

"What SafeByteCalculators.jl gives, for which checked multiplication serves here."
const SafeByteCalculator = CheckedMulByteCalculator
