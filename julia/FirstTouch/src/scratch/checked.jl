# Checked mode: every access asks whether the scope of the array is still open.

"""
    CheckedBuffer(buffer = SlabBuffer())

A buffer whose arrays report their use after the end of their scope. It is slow, and meant for tests:
`FirstTouch.checking() = true` makes every [`@no_escape`](@ref) of a program use one on its buffer.

# Examples

```jldoctest
julia> kept = Ref{Any}();

julia> @no_escape CheckedBuffer() begin
           kept[] = @alloc(Int, 3)
           nothing
       end

julia> kept[][1]
ERROR: an array of scratch memory is used after the end of its @no_escape
[...]
```
"""
mutable struct CheckedBuffer{B}
    buffer::B
    open::Vector{Base.RefValue{Bool}} # of the scopes from outer to inner
end
CheckedBuffer(buffer = SlabBuffer()) = CheckedBuffer(buffer, [Ref(true)])

"Whether every scope is checked. Define it as `true` to have that."
checking() = false
checked_in_scope(buffer) = checking() ? CheckedBuffer(buffer) : buffer
checked_in_scope(buffer::CheckedBuffer) = buffer

struct CheckedArray{T,N} <: DenseArray{T,N}
    array::ScratchArray{T,N}
    open::Base.RefValue{Bool}
end
valid(checked::CheckedArray) = checked.open[] ? checked.array : used_late()
@noinline used_late() = error("an array of scratch memory is used after the end of its @no_escape")

# Where an array lies, or lay.
address(scratch::ScratchArray) = scratch.pointer
address(checked::CheckedArray) = checked.array.pointer

Base.size(checked::CheckedArray) = size(checked.array)
Base.IndexStyle(::Type{<:CheckedArray}) = IndexLinear()
Base.elsize(::Type{<:CheckedArray{T}}) where {T} = Base.elsize(Vector{T})
Base.strides(checked::CheckedArray) = strides(checked.array)
Base.pointer(checked::CheckedArray) = pointer(valid(checked))
Base.reshape(checked::CheckedArray{T}, size::Dims{N}) where {T,N} =
    CheckedArray{T,N}(reshape(checked.array, size), checked.open)
Base.sizeof(checked::CheckedArray) = sizeof(checked.array)
Base.unsafe_convert(::Type{Ptr{T}}, checked::CheckedArray{T}) where {T} = pointer(checked)
Base.dataids(checked::CheckedArray) = Base.dataids(checked.array)
Base.@propagate_inbounds Base.getindex(checked::CheckedArray, i::Int) = valid(checked)[i]
Base.@propagate_inbounds Base.setindex!(checked::CheckedArray, value, i::Int) = (valid(checked)[i] = value; checked)

alloc_ptr!(checked::CheckedBuffer, n::Int) = alloc_ptr!(checked.buffer, n)
alloc!(checked::CheckedBuffer, ::Type{T}, dims::Vararg{Integer,N}) where {T,N} =
    CheckedArray{T,N}(alloc!(checked.buffer, T, dims...), checked.open[end])

struct CheckedCheckpoint{B,C}
    checked::CheckedBuffer{B}
    inner::C
    depth::Int
end
function checkpoint_save(checked::CheckedBuffer)
    checkpoint = CheckedCheckpoint(checked, checkpoint_save(checked.buffer), length(checked.open))
    push!(checked.open, Ref(true))
    return checkpoint
end
# Also closes the scopes inside this one that an exception has left.
close_scopes!(checked::CheckedBuffer, depth::Int) =
    foreach(_ -> pop!(checked.open)[] = false, depth+1:length(checked.open))
function checkpoint_restore!(checkpoint::CheckedCheckpoint)
    close_scopes!(checkpoint.checked, checkpoint.depth)
    return checkpoint_restore!(checkpoint.inner)
end
allocated_since(checkpoint::CheckedCheckpoint, address::Ptr) = allocated_since(checkpoint.inner, address)
function reset_buffer!(checked::CheckedBuffer)
    depth = length(checked.open)
    close_scopes!(checked, 0)
    # The scopes around the reset have yet to end.
    foreach(_ -> push!(checked.open, Ref(true)), 1:depth)
    return reset_buffer!(checked.buffer)
end
