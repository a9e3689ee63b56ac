"""
    FirstTouch

Decides where the memory of arrays comes from: allocators that compose, scratch memory with scopes, and what is behind
each page.

# Examples

```jldoctest
julia> using FirstTouch

julia> A = Array{Float64}(calloc, 1024, 1024);

julia> sum(A)
0.0

julia> @no_escape begin
           x = @alloc(Int, 3)
           x .= 1:3
           sum(x)
       end
6
```
"""
module FirstTouch

using Libdl

export AbstractArrayAllocator, UndefAllocator, MallocAllocator, CallocAllocator, MemAlign, malloc, calloc
export NumaAllocator, numa, current_numa_node, highest_numa_node
export SafeByteCalculator
export Allocator, AllocationError, @ft_str, pool, pages, limited, tracked, guarded, filled
export SlabBuffer, AllocBuffer, CheckedBuffer, @no_escape, @alloc, @alloc_ptr, default_buffer, with_buffer
export inspect, receipt, touch!, migrate!, collapse!, stats, trim

include("library.jl")
include("bytes.jl")
include("arguments.jl")
include("errors.jl")
include("bytecalculators.jl")
include("lifetime.jl")
include("pressure.jl")
include("arrays.jl")
include("libc.jl")
include("aligned.jl")
include("handles.jl")
include("allocators.jl")
include("calloc.jl")
include("numa.jl")
include("libnuma.jl")
include("windows.jl")
include("zeros.jl")
include("forgotten.jl")

include("scratch/array.jl")
include("scratch/interface.jl")
include("scratch/slab.jl")
include("scratch/slab_scopes.jl")
include("scratch/fixed.jl")
include("scratch/checked.jl")
include("scratch/alias.jl")
include("scratch/scope.jl")
include("scratch/show.jl")

include("display.jl")
include("memory.jl")
include("inspection.jl")
include("receipt.jl")
include("placement.jl")
include("stats.jl")

function __init__()
    load_library()
    notice_end()
    create_lazy_pool()
end

end
