# Which memory an array lies in, for inspection and placement.

# The array that owns the memory, the address of the first element in it, and the bytes up to the last.
memory(array::DenseArray) = (array, Ptr{Cvoid}(pointer(array)), sizeof(array))
memory(bits::BitArray) = memory(bits.chunks)

# What stands on another array, such as a reshape or a transpose, shares all its memory.
function memory(wrapper::AbstractArray)
    inner = parent(wrapper)
    inner === wrapper && throw(ArgumentError(
        "a $(nameof(typeof(wrapper))) is not in memory of its own: give an Array, or the arrays that it is made of"))
    return memory(inner)
end

# A view is the part from its lowest address to its highest, with the gaps that its strides leave.
function memory(view::SubArray)
    owner, = memory(parent(view))
    first, steps = try
        Ptr{Cvoid}(pointer(view)), strides(view)
    catch error
        error isa Union{ArgumentError,ErrorException,MethodError} || rethrow()
        throw(ArgumentError(
            "this view of a $(nameof(typeof(parent(view)))) has no strides in memory: give its parent instead"))
    end
    isempty(view) && return (owner, first, 0)
    item = Base.elsize(Vector{eltype(view)})
    reach = map((n, step) -> (n - 1) * step * item, size(view), steps)
    low, high = mapreduce(n -> min(n, 0), +, reach; init = 0), mapreduce(n -> max(n, 0), +, reach; init = 0)
    return (owner, first + low, high - low + item)
end
