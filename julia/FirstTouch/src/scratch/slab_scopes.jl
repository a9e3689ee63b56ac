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
    within(start, bytes) = start <= address <= start + bytes
    return checkpoint.current <= address <= checkpoint.slab_end ||
           any(i -> within(buffer.slabs[i], SlabSize), checkpoint.slabs+1:length(buffer.slabs)) ||
           any(i -> within(buffer.custom_slabs[i], buffer.custom_sizes[i]),
               checkpoint.custom_slabs+1:length(buffer.custom_slabs))
end

@noinline function shrink!(buffer::SlabBuffer{SlabSize}, slabs::Int, custom_slabs::Int) where {SlabSize}
    while length(buffer.slabs) > slabs
        give(C_NULL, pop!(buffer.slabs), Int(SlabSize) + GAP)
    end
    while length(buffer.custom_slabs) > custom_slabs
        give(C_NULL, pop!(buffer.custom_slabs), pop!(buffer.custom_sizes))
    end
    return
end

function reset_buffer!(buffer::SlabBuffer{SlabSize}) where {SlabSize}
    if is_void(buffer)
        foreach(empty!, (buffer.slabs, buffer.custom_slabs, buffer.custom_sizes))
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
