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

using firsttouch_jll

export AbstractArrayAllocator, UndefAllocator, MallocAllocator, CallocAllocator, MemAlign, malloc, calloc
export NumaAllocator, numa, current_numa_node, highest_numa_node
export SafeByteCalculator
export Allocator, AllocationError, @ft_str, pool, pages, limited, guarded, filled
export SlabBuffer, AllocBuffer, CheckedBuffer, @no_escape, @alloc, @alloc_ptr, default_buffer, with_buffer
export inspect, receipt, touch!, migrate!, stats, trim

include("arguments.jl")
include("bytecalculators.jl")
include("lifetime.jl")
include("arrays.jl")
include("allocators.jl")
include("numa.jl")
include("scratch.jl")
include("scope.jl")
include("inspection.jl")

function __init__()
    notice_end()
    create_lazy_pool()
end

end
