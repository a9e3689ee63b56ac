# Memory on a NUMA node.

"    FirstTouch.AbstractNumaAllocator{B} <: AbstractArrayAllocator{B}\n\nSupertype of allocators on NUMA nodes."
abstract type AbstractNumaAllocator{B} <: AbstractArrayAllocator{B} end

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
struct NumaAllocator{B} <: AbstractNumaAllocator{B}
    node::Int
    NumaAllocator{B}(node) where {B} = new{B}(node_number(node))
end

"See [`NumaAllocator`](@ref)."
numa(node) = NumaAllocator(node)

function node_number(node)
    highest = highest_numa_node()
    node isa Integer && !(node isa Bool) && 0 <= node <= highest && return Int(node)
    refuse("node", node, "not a node of this machine", highest == 0 ? "0, the only one" : "a number from 0 to $highest")
end
node_policy(node) = "bind:$(node_number(node))"

# One allocator for each policy, kept for ever.
const policies = Dict{String,Allocator}()
const policies_lock = ReentrantLock()
pages_on(policy::String) = lock(() -> get!(() -> pages(numa = policy), policies, policy), policies_lock)
pages_of(allocator::NumaAllocator) = pages_on("bind:$(allocator.node)")

allocate(allocator::NumaAllocator, bytes) = allocate(pages_of(allocator), bytes)
Base.unsafe_wrap(allocator::NumaAllocator, ::Type{A}, pointer::Ptr, dims) where {A<:Array} =
    unsafe_wrap(pages_of(allocator), A, pointer, dims)
pointer_of(allocator::NumaAllocator) = pointer_of(pages_of(allocator))

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
