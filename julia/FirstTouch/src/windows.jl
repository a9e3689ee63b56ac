"""
    FirstTouch.Windows

The allocators that only Windows has, so that programs which name them load and dispatch here as well. Their arrays are
an error that says what to use instead.

# Examples

```jldoctest
julia> using FirstTouch.Windows

julia> Vector{UInt8}(WinMemAlign(2^16), 1024)
ERROR: WinMemAlign allocates with VirtualAlloc2, which only Windows has: use MemAlign(65536)
[...]
```
"""
module Windows

using ..FirstTouch: AbstractArrayAllocator, AbstractMemAlign, AbstractNumaAllocator, check_alignment
import ..FirstTouch: allocate, iszeroinit, min_alignment
export WinMemAlign

@noinline only_windows(allocator, call, instead) =
    error("$(nameof(typeof(allocator))) allocates with $call, which only Windows has: use $instead")

"""
    WinMemAlign([alignment, lowest_address, highest_address])

Zeroed memory of `VirtualAlloc2` at a multiple of `alignment`, a power of two from 2^16, the default. Without Windows,
the addresses mean nothing.
"""
struct WinMemAlign{B} <: AbstractMemAlign{B}
    alignment::Int
    WinMemAlign{B}(alignment::Integer = min_alignment(WinMemAlign), addresses...) where {B} =
        new{B}(check_alignment(WinMemAlign, alignment))
end
min_alignment(::Type{<:WinMemAlign}) = 2^16
iszeroinit(::Type{<:WinMemAlign}) = true
allocate(allocator::WinMemAlign, bytes) = only_windows(allocator, "VirtualAlloc2", "MemAlign($(allocator.alignment))")

"Supertype of allocators on `VirtualAllocEx`."
abstract type AbstractWinVirtualAllocator{B} <: AbstractArrayAllocator{B} end
iszeroinit(::Type{<:AbstractWinVirtualAllocator}) = true
allocate(allocator::AbstractWinVirtualAllocator, bytes) = only_windows(allocator, "VirtualAllocEx", "calloc or pages()")

"    WinVirtualAllocator()\n\nZeroed memory of `VirtualAllocEx`."
struct WinVirtualAllocator{B} <: AbstractWinVirtualAllocator{B} end
"Zeroed memory of `VirtualAllocEx`: a [`WinVirtualAllocator`](@ref)."
const virtual = WinVirtualAllocator()

"Supertype of allocators on `VirtualAllocExNuma`."
abstract type AbstractWinNumaAllocator{B} <: AbstractNumaAllocator{B} end
iszeroinit(::Type{<:AbstractWinNumaAllocator}) = true

"    WinNumaAllocator(node)\n\nZeroed memory of `VirtualAllocExNuma` on a node."
struct WinNumaAllocator{B} <: AbstractWinNumaAllocator{B}
    node::Int
end
allocate(allocator::WinNumaAllocator, bytes) = only_windows(allocator, "VirtualAllocExNuma", "numa($(allocator.node))")

end
