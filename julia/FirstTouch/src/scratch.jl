# Scratch memory: the arrays, what a buffer is, and the three kinds of buffers. The scope is in scope.jl.

# The arrays of scratch memory: a pointer and a size, which allocate nothing and own nothing.

"""
    FirstTouch.ScratchArray{T,N}

An array of scratch memory, valid until the end of its [`@no_escape`](@ref). Elements are bits types.
"""
struct ScratchArray{T,N} <: DenseArray{T,N}
    address::Ptr{T}
    size::NTuple{N,Int}
    buffer::Any # kept alive; and Base looks for overlap only where an array has a reference
end

Base.pointer(array::ScratchArray) = array.address
Base.size(array::ScratchArray) = array.size
Base.IndexStyle(::Type{<:ScratchArray}) = IndexLinear()
Base.elsize(::Type{<:ScratchArray{T}}) where {T} = Base.elsize(Vector{T})
Base.strides(array::ScratchArray) = Base.size_to_strides(1, array.size...)
Base.unsafe_convert(::Type{Ptr{T}}, array::ScratchArray{T}) where {T} = pointer(array)
Base.sizeof(array::ScratchArray) = length(array) * Base.elsize(array)
function Base.reshape(array::ScratchArray{T}, size::Dims{N}) where {T,N}
    scratch_bytes(T, size) == sizeof(array) && prod(size) == length(array) ||
        throw(DimensionMismatch("$size does not hold the $(length(array)) elements of the array"))
    return ScratchArray{T,N}(array.address, size, array.buffer)
end
# By address, so that broadcasting sees what overlaps.
Base.dataids(array::ScratchArray) = (UInt(array.address),)

Base.@propagate_inbounds function Base.getindex(array::ScratchArray, i::Int)
    @boundscheck checkbounds(array, i)
    return unsafe_load(pointer(array), i)
end
Base.@propagate_inbounds function Base.setindex!(array::ScratchArray{T}, value, i::Int) where {T}
    @boundscheck checkbounds(array, i)
    unsafe_store!(pointer(array), convert(T, value)::T, i)
    return array
end

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
    bytes = scratch_bytes(T, size)
    # An empty array has no memory, and shares none.
    start = bytes == 0 ? Ptr{Cvoid}(BLOCK_ALIGNMENT) : aligned_ptr!(buffer, bytes, Base.datatype_alignment(T))
    return ScratchArray{T,N}(start, size, buffer)
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
    custom_slabs::Vector{Tuple{Ptr{Cvoid},Int}}

    function SlabBuffer{SlabSize}(; finalize::Bool = true) where {SlabSize}
        size = slab_size(SlabSize)
        slab = take_slab(size)
        buffer = new{size}(slab, slab + size, [slab], [])
        return finalize ? finalizer(until_end(free), buffer) : buffer
    end
end
SlabBuffer(; finalize::Bool = true) = SlabBuffer{DEFAULT_SLAB}(; finalize = finalize)

function slab_size(size)
    size isa Integer && 0 < size < 2^47 && return Int(size)
    refuse("SlabSize", size, "not the size of a slab", "a number of bytes, as in SlabBuffer{65536}()")
end

# A copy, such as one in a copied structure, has slabs of its own, and nothing on them.
Base.deepcopy_internal(::SlabBuffer{SlabSize}, ::IdDict) where {SlabSize} = SlabBuffer{SlabSize}()

take_slab(size) = take(C_NULL, Int(size))

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
        push!(buffer.custom_slabs, (take(C_NULL, n), n))
        return buffer.custom_slabs[end][1]
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

# How scopes and resets free the slabs of a buffer.

# Whether its slabs are null: it was freed, or is a constant of a precompiled package, whose pointers become null.
is_void(buffer) = buffer.slab_end == C_NULL

struct SlabCheckpoint{SlabSize}
    buffer::SlabBuffer{SlabSize}
    current::Ptr{Cvoid}
    slab_end::Ptr{Cvoid}
    slabs::Int
    custom_slabs::Int
end

checkpoint_save(buffer::SlabBuffer) =
    SlabCheckpoint(buffer, buffer.current, buffer.slab_end, length(buffer.slabs), length(buffer.custom_slabs))

@inline function checkpoint_restore!(checkpoint::SlabCheckpoint{SlabSize}) where {SlabSize}
    buffer = checkpoint.buffer
    slabs = checkpoint.slabs
    here = length(buffer.slabs) >= slabs && buffer.slabs[slabs] + SlabSize == checkpoint.slab_end
    here || return rewind_lost!(checkpoint)
    grown = length(buffer.slabs) > checkpoint.slabs || length(buffer.custom_slabs) > checkpoint.custom_slabs
    grown && shrink!(buffer, checkpoint.slabs, checkpoint.custom_slabs)
    buffer.current = checkpoint.current
    buffer.slab_end = checkpoint.slab_end
    return nothing
end

# The slab of the checkpoint is gone after a reset inside the scope; or there was none.
@noinline function rewind_lost!(checkpoint::SlabCheckpoint)
    checkpoint.slab_end == C_NULL && reset_buffer!(checkpoint.buffer)
    return nothing
end

function allocated_since(checkpoint::SlabCheckpoint{SlabSize}, address::Ptr) where {SlabSize}
    buffer = checkpoint.buffer
    return checkpoint.current <= address < checkpoint.slab_end ||
           any(slab -> slab <= address < slab + SlabSize, @view buffer.slabs[checkpoint.slabs+1:end]) ||
           any_holds(buffer.custom_slabs, checkpoint.custom_slabs, address)
end

# Blocks with their sizes: whether one behind the first few holds an address, and giving all but the first few back.
any_holds(blocks, first, address) = any(((start, n),) -> start <= address < start + n, @view blocks[first+1:end])
function give_all!(blocks, first, allocator)
    while length(blocks) > first
        give(allocator, pop!(blocks)...)
    end
end

@noinline function shrink!(buffer::SlabBuffer{SlabSize}, slabs::Int, custom_slabs::Int) where {SlabSize}
    while length(buffer.slabs) > slabs
        give(C_NULL, pop!(buffer.slabs), Int(SlabSize))
    end
    give_all!(buffer.custom_slabs, custom_slabs, C_NULL)
end

function reset_buffer!(buffer::SlabBuffer{SlabSize}) where {SlabSize}
    if is_void(buffer)
        foreach(empty!, (buffer.slabs, buffer.custom_slabs))
        push!(buffer.slabs, take_slab(SlabSize))
    else
        shrink!(buffer, 1, 0)
    end
    buffer.current = buffer.slabs[1]
    buffer.slab_end = buffer.current + SlabSize
    return buffer
end

"    FirstTouch.free(buffer::SlabBuffer)\n\nFrees a buffer that has no finalizer, and what was allocated in it."
function free(buffer::SlabBuffer)
    is_void(buffer) && return
    shrink!(buffer, 0, 0)
    push!(buffer.slabs, C_NULL)
    buffer.current = buffer.slab_end = C_NULL
    return
end

# A buffer of a fixed size, on any storage.

"""
    AllocBuffer(bytes = 1_048_576)
    AllocBuffer(storage)

Scratch memory of a fixed size, on any storage that has `pointer` and `sizeof`. A request that does not fit is an error.

# Examples

```jldoctest
julia> buffer = AllocBuffer(Vector{UInt8}(pages(huge = "thp"), 4096));

julia> @no_escape buffer begin
           length(@alloc(Float64, 8, 8))
       end
64
```
"""
mutable struct AllocBuffer{Storage}
    buf::Storage
    offset::UInt
end
AllocBuffer(bytes::Integer = 2^20) = AllocBuffer(Vector{UInt8}(undef, bytes))
function AllocBuffer(storage)
    storage isa AbstractArray && !isbitstype(eltype(storage)) && not_bits(eltype(storage))
    memory_of_its_own = try
        is_whole(storage) && pointer(storage) isa Ptr && sizeof(storage) isa Integer
    catch
        false
    end
    memory_of_its_own || refuse("storage", storage, "not memory", "a number of bytes, or an Array or what else has " *
                                "`pointer` and `sizeof`")
    return AllocBuffer(storage, UInt(0))
end

# What stands on another array may have gaps, or the `sizeof` of a wrapper. A string is never written.
is_whole(storage) = true
is_whole(::AbstractString) = false
is_whole(array::AbstractArray) = parent(array) === array
is_whole(view::Base.FastContiguousSubArray) = is_whole(parent(view))

alloc_ptr!(buffer::AllocBuffer, n::Int)::Ptr{Cvoid} = aligned_ptr!(buffer, n, 1)

@inline function aligned_ptr!(buffer::AllocBuffer, n::Int, alignment::Int)::Ptr{Cvoid}
    first = Ptr{Cvoid}(pointer(buffer.buf))
    start = align_up(first + buffer.offset, alignment)
    offset = UInt(start - first)
    size = UInt(sizeof(buffer.buf))
    (offset > size || n % UInt > size - offset) && full(buffer, n)
    buffer.offset = offset + n % UInt
    return start
end

@noinline function full(buffer, n)
    n < 0 && throw(ArgumentError("cannot allocate $n bytes: the number is negative"))
    error("cannot allocate ", Base.format_bytes(n), " in an AllocBuffer of ", Base.format_bytes(sizeof(buffer.buf)),
          ", of which ", Base.format_bytes(buffer.offset), " are in use. If they should not be, FirstTouch.reset_buffer! ",
          "frees them")
end

struct AllocCheckpoint{Storage}
    buffer::AllocBuffer{Storage}
    offset::UInt
end
checkpoint_save(buffer::AllocBuffer) = AllocCheckpoint(buffer, buffer.offset)
checkpoint_restore!(checkpoint::AllocCheckpoint) = (checkpoint.buffer.offset = checkpoint.offset; nothing)
function allocated_since(checkpoint::AllocCheckpoint, address::Ptr)
    buffer = checkpoint.buffer
    return checkpoint.offset <= UInt(address) - UInt(pointer(buffer.buf)) < buffer.offset
end
reset_buffer!(buffer::AllocBuffer) = (buffer.offset = UInt(0); nothing)

const fixed_key = gensym(:alloc_buffer)
default_buffer(::Type{AllocBuffer}) =
    get!(() -> AllocBuffer(), task_local_storage(), fixed_key)::AllocBuffer{Vector{UInt8}}
with_buffer(f, buffer::AllocBuffer{Vector{UInt8}}) = task_local_storage(f, fixed_key, buffer)

# Checked mode: each block is an allocator's own, and goes back with its scope.

"""
    CheckedBuffer()

A buffer for tests, whose blocks are those of `guarded(keep = "16 MiB")`: where an array is used after its scope, or beyond
its end, the program ends, or Julia throws a `ReadOnlyMemoryError` if it was written. Where [`FirstTouch.checking`](@ref) is
true, every [`@no_escape`](@ref) uses one instead of its buffer.

# Examples

```jldoctest
julia> @no_escape CheckedBuffer() begin
           sum(@alloc(Int, 3) .= 2)
       end
6
```
"""
mutable struct CheckedBuffer
    allocator::Allocator
    blocks::Vector{Tuple{Ptr{Cvoid},Int}}
    CheckedBuffer() = finalizer(until_end(reset_buffer!), new(kept("guarded(keep='16 MiB')"), []))
end

"""
    FirstTouch.checking()

Whether every scope is checked. A script of tests may evaluate `@eval FirstTouch checking() = true` at its beginning.
"""
checking() = false
checked_in_scope(buffer) = checking() && !(buffer isa CheckedBuffer) ? CheckedBuffer() : buffer

function alloc_ptr!(buffer::CheckedBuffer, n::Int)
    n < 0 && throw(ArgumentError("cannot allocate $n bytes: the number is negative"))
    push!(buffer.blocks, (allocate(buffer.allocator, n), n))
    return buffer.blocks[end][1]
end
aligned_ptr!(buffer::CheckedBuffer, n::Int, alignment::Int) =
    align_up(alloc_ptr!(buffer, n + max(alignment - BLOCK_ALIGNMENT, 0)), alignment)
checkpoint_save(buffer::CheckedBuffer) = (buffer, length(buffer.blocks))
checkpoint_restore!((buffer, depth)::Tuple{CheckedBuffer,Int}) =
    give_all!(buffer.blocks, depth, buffer.allocator.handle.pointer)
allocated_since((buffer, depth)::Tuple{CheckedBuffer,Int}, address::Ptr) = any_holds(buffer.blocks, depth, address)
reset_buffer!(buffer::CheckedBuffer) = checkpoint_restore!((buffer, 0))

# An assignment between scratch arrays that overlap, such as `y .= y'`, is an error, as Base would have to copy one into an
# array of the same type.

Base.unaliascopy(array::ScratchArray) = isempty(array) ? array : overlapping()
@noinline overlapping() = throw(ArgumentError(
    "the right side shares scratch memory with the left side, which would be overwritten while it is read: " *
    "assign a copy, as in `y .= copy(y')`"))

# `copyto!` with positions copies what overlaps as between Arrays, as if it were elsewhere first: Base does not look for it.
function Base.copyto!(to::ScratchArray{T}, i::Integer, from::ScratchArray{T}, j::Integer, n::Integer) where {T}
    n < 0 && throw(ArgumentError("cannot copy $n elements: the number is negative"))
    checkbounds(to, i:i+n-1)
    checkbounds(from, j:j+n-1)
    n > 0 && GC.@preserve to from unsafe_copyto!(pointer(to, i), pointer(from, j), n)
    return to
end

# How buffers are displayed.

function Base.show(io::IO, buffer::SlabBuffer{SlabSize}) where {SlabSize}
    print(io, "SlabBuffer{", SlabSize, "}(")
    is_void(buffer) && return print(io, "no slab)")
    custom = mapreduce(last, +, buffer.custom_slabs; init = 0)
    used = (length(buffer.slabs) - 1) * SlabSize + Int(buffer.current - buffer.slabs[end]) + custom
    print(io, Base.format_bytes(used), " in use, slabs: ", length(buffer.slabs), ", blocks: ",
          length(buffer.custom_slabs), ')')
end

Base.show(io::IO, buffer::AllocBuffer) = print(io, "AllocBuffer{", nameof(typeof(buffer.buf)), "}(",
    Base.format_bytes(buffer.offset), " of ", Base.format_bytes(sizeof(buffer.buf)), " in use)")

Base.show(io::IO, buffer::CheckedBuffer) = print(io, "CheckedBuffer(blocks: ", length(buffer.blocks), ')')
