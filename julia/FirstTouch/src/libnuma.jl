"""
    FirstTouch.LibNUMA

The functions of libnuma that NumaAllocators.jl calls, on the pages of this package: libnuma itself is not needed.

# Examples

```jldoctest
julia> using FirstTouch: LibNUMA

julia> address = LibNUMA.numa_alloc_onnode(1024, 0);

julia> LibNUMA.numa_free(address, 1024)

julia> size(LibNUMA.wrap_numa(Array{Int}, Ptr{Int}(LibNUMA.numa_alloc_local(80)), 10))
(10,)
```
"""
module LibNUMA

using ..FirstTouch: NumaAllocator, give, highest_numa_node, libfirsttouch, lineage_finalizer, node_policy, pages_on,
    pointer_of, take, until_end

"See [`NumaAllocator`](@ref)."
const LibNumaAllocator = NumaAllocator

# Which allocator a block came from, and its size, stand on a page before it: the caller's size is not trusted, and a
# finalizer may take no lock to look them up.
struct Origin
    allocator::Ptr{Cvoid}
    bytes::Int
end
page_size() = Int(ccall((:firsttouch_page_size, libfirsttouch), Csize_t, ()))

function numa_alloc(policy, size)
    size >= 0 || throw(ArgumentError("cannot allocate $size bytes: the number is negative"))
    allocator = pointer_of(pages_on(policy))
    bytes = Base.checked_add(Int(size), page_size())
    block = take(allocator, bytes)
    unsafe_store!(Ptr{Origin}(block), Origin(allocator, bytes))
    return block + page_size()
end

"    numa_alloc_onnode(size, node)\n\nA pointer to memory on a node, for `numa_free` or `wrap_numa`."
numa_alloc_onnode(size, node) = numa_alloc(node_policy(node), size)

"    numa_alloc_local(size)\n\nA pointer to memory on the node of the processor that touches it first."
numa_alloc_local(size) = numa_alloc("local", size)

"    numa_free(pointer, size)\n    numa_free(array)\n\nFrees what `numa_alloc_onnode` or `numa_alloc_local` returned."
function numa_free(address::Ptr, size)
    address == C_NULL && return
    block = Ptr{Cvoid}(address) - page_size()
    origin = unsafe_load(Ptr{Origin}(block))
    give(origin.allocator, block, origin.bytes)
end
numa_free(array, size) = numa_free(pointer(array), size)
numa_free(array::AbstractArray) = numa_free(array, sizeof(array))

"""
    wrap_numa(ArrayType, pointer, dims)

The array at a pointer from `numa_alloc_onnode` or `numa_alloc_local`, which is freed after its last use.
"""
function wrap_numa(::Type{A}, pointer::Ptr{T}, dims) where {T,A<:AbstractArray{T}}
    pointer == C_NULL && throw(OutOfMemoryError())
    array = unsafe_wrap(A, pointer, dims; own = false)
    # By its address: an empty array of Julia 1.11 may lie elsewhere.
    lineage_finalizer(until_end(_ -> numa_free(pointer, 0)), array)
    return array
end

"    numa_num_task_nodes()\n\nHow many nodes this process may allocate on."
function numa_num_task_nodes()
    for line in eachline("/proc/self/status")
        startswith(line, "Mems_allowed:") || continue
        return sum(word -> count_ones(parse(UInt32, word; base = 16)), split(split(line)[2], ','))
    end
    return highest_numa_node() + 1
end

"    numa_max_node()\n\nSee [`highest_numa_node`](@ref)."
numa_max_node() = highest_numa_node()

"    numa_node_of_cpu(processor = sched_getcpu())\n\nThe node of a processor; -1 where there is none of that number."
function numa_node_of_cpu(processor = sched_getcpu())
    folder = "/sys/devices/system/cpu/cpu$processor"
    isdir(folder) || return -1
    nodes = filter(name -> occursin(r"^node[0-9]+$", name), readdir(folder))
    return isempty(nodes) ? 0 : parse(Int, nodes[1][5:end])
end

"    sched_getcpu()\n\nThe processor that this thread runs on."
sched_getcpu() = Int(ccall(:sched_getcpu, Cint, ()))

end
