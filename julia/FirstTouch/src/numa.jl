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

pages_on(policy::String) = kept("pages(numa='$policy')")
pages_of(allocator::NumaAllocator) = pages_on("bind:$(allocator.node)")

allocate(allocator::NumaAllocator, bytes) = allocate(pages_of(allocator), bytes)
Base.unsafe_wrap(allocator::NumaAllocator, ::Type{A}, pointer::Ptr, dims) where {A<:Array} =
    unsafe_wrap(pages_of(allocator), A, pointer, dims)
pointer_of(allocator::NumaAllocator) = pointer_of(pages_of(allocator))

"""
    current_numa_node()::Int

The node of the processor that this thread runs on.
"""
current_numa_node() = Int(machine_node(-1).number)

"""
    highest_numa_node()::Int

The highest node that is online: 0 on a machine with one node.
"""
highest_numa_node() = Int(machine_node(-1).highest)

struct RawNode
    number::Cint
    highest::Cint
    processors::Cint
    total::UInt64
    free::UInt64
    available::UInt64
end

# A node as the library describes it; -1 is that of the processor that this thread runs on.
function machine_node(number)
    node = Ref(RawNode(0, 0, 0, 0, 0, 0))
    check(ccall((:firsttouch_get_node, libfirsttouch), Cint, (Cint, Ref{RawNode}), number, node))
    return node[]
end

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

using ..FirstTouch: give, highest_numa_node, lineage_finalizer, node_policy, pages_on, pointer_of, take, until_end

# Which allocator a block came from, and its size, stand on a page before it: the caller's size is not trusted, and a
# finalizer may take no lock to look them up.
struct Origin
    allocator::Ptr{Cvoid}
    bytes::Int
end
page_size() = Int(ccall(:jl_getpagesize, Clong, ()))

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
    for line in (Sys.islinux() ? eachline("/proc/self/status") : ())
        startswith(line, "Mems_allowed:") || continue
        return sum(word -> count_ones(parse(UInt32, word; base = 16)), split(split(line)[2], ','))
    end
    return highest_numa_node() + 1
end

end
