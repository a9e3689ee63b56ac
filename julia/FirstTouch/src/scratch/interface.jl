# What a buffer is: three functions, of which two are about scopes and one about memory.

"""
    FirstTouch.alloc_ptr!(buffer, n::Int) -> Ptr{Nothing}

Returns a pointer to `n` bytes of a buffer. A buffer type of your own needs a method of this function, of
[`FirstTouch.checkpoint_save`](@ref) and of [`FirstTouch.checkpoint_restore!`](@ref).
"""
function alloc_ptr! end

# Buffers that can align have a method of this; others give what they give.
aligned_ptr!(buffer, n::Int, alignment::Int) = alloc_ptr!(buffer, n)

"""
    FirstTouch.alloc!(buffer, T, dims::Integer...)

Returns an uninitialized array of a buffer's memory, aligned for `T`, a bits type. [`@alloc`](@ref) is the same inside a
scope; outside of one, it is for you to know when the buffer is rewound.
"""
@inline function alloc!(buffer, ::Type{T}, dims::Vararg{Integer,N}) where {T,N}
    isbitstype(T) || not_bits(T)
    size = map(ByteCalculators.extent, dims)
    return ScratchArray{T,N}(aligned_ptr!(buffer, scratch_bytes(T, size), Base.datatype_alignment(T)), size)
end

@inline function scratch_bytes(::Type{T}, size::Dims) where {T}
    bytes = Base.elsize(Vector{T})
    for n in size
        n < 0 && throw_negative(size)
        bytes, overflows = Base.mul_with_overflow(bytes, n)
        overflows && throw_overflow(T, size)
    end
    return bytes
end

@noinline not_bits(T) =
    throw(ArgumentError("$T is not a bits type: scratch memory cannot hold references for the garbage collector"))
@noinline throw_negative(size) = throw(ArgumentError("invalid dimensions $size: one is negative"))
@noinline throw_overflow(T, size) =
    throw(OverflowError("the bytes of an array of $T with dimensions $size overflow Int64"))

"""
    FirstTouch.checkpoint_save(buffer = default_buffer())

Returns a checkpoint: what `FirstTouch.checkpoint_restore!` needs to free all that is allocated from now on.
"""
function checkpoint_save end
checkpoint_save() = checkpoint_save(default_buffer())

"""
    FirstTouch.checkpoint_restore!(checkpoint)

Brings a buffer back to its state at a checkpoint.
"""
function checkpoint_restore! end

# Whether an address was allocated after a checkpoint, where the buffer can tell. An inner scope may return an array of
# an outer one.
allocated_since(checkpoint, address::Ptr) = true

"""
    FirstTouch.reset_buffer!(buffer = default_buffer())

Frees all that was allocated in a buffer, as after an exception has left its scopes.
"""
function reset_buffer! end
reset_buffer!() = reset_buffer!(default_buffer())

"""
    default_buffer([type = SlabBuffer])

The buffer of this task, a `SlabBuffer{1_048_576}` or an `AllocBuffer{Vector{UInt8}}`, created at the first call.

# Examples

```jldoctest
julia> default_buffer() === default_buffer()
true

julia> default_buffer() === fetch(@async default_buffer())
false
```
"""
function default_buffer end

"""
    with_buffer(f, buffer)

Calls `f()` with another buffer as this task's [`default_buffer`](@ref).

# Examples

```jldoctest
julia> buffer = SlabBuffer();

julia> with_buffer(() -> default_buffer() === buffer, buffer)
true
```
"""
function with_buffer end
