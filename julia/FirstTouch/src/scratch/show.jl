# How buffers are displayed.

function Base.show(io::IO, buffer::SlabBuffer{SlabSize}) where {SlabSize}
    print(io, "SlabBuffer{", SlabSize, "}(")
    is_void(buffer) && return print(io, "no slab)")
    used = (length(buffer.slabs) - 1) * SlabSize + Int(buffer.current - buffer.slabs[end]) + sum(buffer.custom_sizes)
    slabs, own = length(buffer.slabs), length(buffer.custom_sizes)
    print(io, format_bytes(used), " in use, ", counted(slabs, "slab"))
    print(io, own == 0 ? ")" : ", " * counted(own, "block") * ")")
end

Base.show(io::IO, buffer::AllocBuffer) = print(io, "AllocBuffer{", nameof(typeof(buffer.buf)), "}(",
    format_bytes(buffer.offset), " of ", format_bytes(sizeof(buffer.buf)), " in use)")

Base.show(io::IO, checked::CheckedBuffer) =
    print(io, "CheckedBuffer(", checked.buffer, ')')

const Checkpoint = Union{SlabCheckpoint,AllocCheckpoint,CheckedCheckpoint}
Base.show(io::IO, checkpoint::Checkpoint) = print(io, nameof(typeof(checkpoint)), "(…)")

# An array that can still be read is shown as any other.
ended(checked::CheckedArray) = string(Base.dims2string(size(checked)), ' ', nameof(typeof(checked)), '{',
                                      eltype(checked), "} after the end of its @no_escape")
Base.show(io::IO, checked::CheckedArray) = checked.open[] ? show(io, checked.array) : print(io, ended(checked))
Base.show(io::IO, mime::MIME"text/plain", checked::CheckedArray) =
    checked.open[] ? show(io, mime, checked.array) : print(io, ended(checked))
