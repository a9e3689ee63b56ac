# A buffer that grows by slabs.

const DEFAULT_SLAB = 1_048_576

"""
    SlabBuffer(; finalize = true)
    SlabBuffer{SlabSize}(; finalize = true)

Scratch memory that grows by slabs of `SlabSize` bytes, 1 MiB by default. What is too large for a slab gets a block of
its own. Slabs come from the pool that the process shares, so that a slab freed at the end of a scope is there for the
next. With `finalize = false`, call `FirstTouch.free(buffer)` yourself.

# Examples

```jldoctest
julia> buffer = SlabBuffer{16_384}();

julia> @no_escape buffer begin
           sum(@alloc(Int, 100) .= 2)
       end
200
```
"""
mutable struct SlabBuffer{SlabSize}
    current::Ptr{Cvoid}
    slab_end::Ptr{Cvoid}
    slabs::Vector{Ptr{Cvoid}}
    custom_slabs::Vector{Ptr{Cvoid}}
    custom_sizes::Vector{Int}

    function SlabBuffer{SlabSize}(; finalize = true) where {SlabSize}
        flag("finalize", finalize)
        size = slab_size(SlabSize)
        slab = take_slab(size)
        buffer = new{size}(slab, slab + size, [slab], Ptr{Cvoid}[], Int[])
        return finalize ? finalizer(until_end(free), buffer) : buffer
    end
end
SlabBuffer(; finalize = true) = SlabBuffer{DEFAULT_SLAB}(; finalize = finalize)

function slab_size(size)
    size isa Integer && 0 < size < 2^47 && return Int(size)
    refuse("SlabSize", size, "not the size of a slab", "a number of bytes, as in SlabBuffer{65536}()")
end

# A copy, such as one in a copied structure, has slabs of its own, and nothing on them.
Base.deepcopy_internal(::SlabBuffer{SlabSize}, ::IdDict) where {SlabSize} = SlabBuffer{SlabSize}()

# Behind each slab, so that its end is not the beginning of another block: an empty array may lie there.
const GAP = 64
take_slab(size) = take(C_NULL, Int(size) + GAP)

@inline function alloc_ptr!(buffer::SlabBuffer, n::Int)::Ptr{Cvoid}
    start = buffer.current
    n % UInt > UInt(buffer.slab_end - start) && return add_slab!(buffer, n)
    buffer.current = start + n
    return start
end

@inline function aligned_ptr!(buffer::SlabBuffer, n::Int, alignment::Int)::Ptr{Cvoid}
    start = align_up(buffer.current, alignment)
    (start > buffer.slab_end || n % UInt > UInt(buffer.slab_end - start)) &&
        return align_up(add_slab!(buffer, n + max(alignment - BLOCK_ALIGNMENT, 0)), alignment)
    buffer.current = start + n
    return start
end

align_up(pointer::Ptr, alignment::Int) = (pointer + (alignment - 1)) - UInt(pointer + (alignment - 1)) % alignment

# Of the library's blocks. Only long SIMD vectors need more, such as 16 times a `VecElement{Float64}`.
const BLOCK_ALIGNMENT = 64

@noinline function add_slab!(buffer::SlabBuffer{SlabSize}, n::Int)::Ptr{Cvoid} where {SlabSize}
    n < 0 && throw(ArgumentError("cannot allocate $n bytes: the number is negative"))
    is_void(buffer) && return alloc_ptr!(reset_buffer!(buffer), n)
    if n >= SlabSize
        block = take(C_NULL, n)
        push!(buffer.custom_slabs, block)
        push!(buffer.custom_sizes, n)
        return block
    end
    slab = take_slab(SlabSize)
    push!(buffer.slabs, slab)
    buffer.current = slab + n
    buffer.slab_end = slab + SlabSize
    return slab
end

const slab_key = gensym(:slab_buffer)
default_buffer(::Type{SlabBuffer}) =
    get!(() -> SlabBuffer(), task_local_storage(), slab_key)::SlabBuffer{DEFAULT_SLAB}
default_buffer() = default_buffer(SlabBuffer)
with_buffer(f, buffer::SlabBuffer{DEFAULT_SLAB}) = task_local_storage(f, slab_key, buffer)
