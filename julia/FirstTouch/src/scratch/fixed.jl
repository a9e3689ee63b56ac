# A buffer of a fixed size, on any storage.

"""
    AllocBuffer(bytes = 1 MiB)
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
AllocBuffer(bytes::Union{Integer,AbstractString} = "1 MiB") =
    AllocBuffer(Vector{UInt8}(undef, Int(bytes_option("bytes", bytes))))
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

# What stands on another array may have gaps, or the `sizeof` of a wrapper.
is_whole(storage) = true
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
    error("cannot allocate ", format_bytes(n), " in an AllocBuffer of ", format_bytes(sizeof(buffer.buf)),
          ", of which ", format_bytes(buffer.offset), " are in use. If they should not be, FirstTouch.reset_buffer! ",
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
    return checkpoint.offset <= UInt(address) - UInt(pointer(buffer.buf)) <= buffer.offset
end
reset_buffer!(buffer::AllocBuffer) = (buffer.offset = UInt(0); nothing)

const fixed_key = gensym(:alloc_buffer)
default_buffer(::Type{AllocBuffer}) =
    get!(() -> AllocBuffer(), task_local_storage(), fixed_key)::AllocBuffer{Vector{UInt8}}
with_buffer(f, buffer::AllocBuffer{Vector{UInt8}}) = task_local_storage(f, fixed_key, buffer)
