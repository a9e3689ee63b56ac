# Memory on a NUMA node.

"""
    NumaAllocator(node)
    numa(node)

Memory on one NUMA node: `Array{T}(numa(0), dims...)`, which is `pages(numa = node)`. [`receipt`](@ref) tells whether
the operating system granted it.

# Examples

```jldoctest
julia> size(Array{UInt8}(numa(0), 32, 32))
(32, 32)
```
"""
struct NumaAllocator{B} <: AbstractArrayAllocator{B}
    node::Int
end

"See [`NumaAllocator`](@ref)."
numa(node) = NumaAllocator(node)

const nodes = Dict{Int,Allocator}()
const nodes_lock = ReentrantLock()
pages_of(allocator::NumaAllocator) =
    lock(() -> get!(() -> pages(numa = "bind:$(allocator.node)"), nodes, allocator.node), nodes_lock)

allocate(allocator::NumaAllocator, bytes) = allocate(pages_of(allocator), bytes)
Base.unsafe_wrap(allocator::NumaAllocator, ::Type{A}, pointer::Ptr, dims) where {A<:Array} =
    unsafe_wrap(pages_of(allocator), A, pointer, dims)

"""
    current_numa_node()::Int

The node of the processor that this thread runs on.
"""
current_numa_node() = Int(ccall((:firsttouch_current_node, libfirsttouch), Cint, ()))

"""
    highest_numa_node()::Int

The highest node that is online: 0 on a machine with one node.
"""
highest_numa_node() = Int(ccall((:firsttouch_highest_node, libfirsttouch), Cint, ()))
