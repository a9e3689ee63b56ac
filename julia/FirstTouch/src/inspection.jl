# What is behind an array's pages.

# The structures of the C interface begin with their size.
struct Residency
    struct_size::Csize_t
    pages::UInt64
    absent::UInt64
    zero_page::UInt64
    small::UInt64
    huge::UInt64
    real::UInt64
    swapped::UInt64
    cached::UInt64
    locked::UInt64
end

"""
    FirstTouch.Inspection

What [`inspect`](@ref) found: `pages` is a number, the other fields are bytes, or `nothing` where the kernel does not
tell. `absent` bytes are faulted in by their first touch; `zero_page` bytes were read, but never written.
"""
struct Inspection <: Figures
    pages::Int
    absent::Union{Int,Nothing}
    zero_page::Union{Int,Nothing}
    small::Union{Int,Nothing}
    huge::Union{Int,Nothing}
    real::Union{Int,Nothing}
    swapped::Union{Int,Nothing}
    cached::Union{Int,Nothing}
    locked::Union{Int,Nothing}
end

known_bytes(bytes::UInt64) = bytes == typemax(UInt64) ? nothing : Int(bytes)

"""
    inspect(array)

What is behind each page of an array's memory, from whichever allocator: of the memory that a reshape, a transpose or
another wrapper stands on, and of a strided view from its first address to its last. No page is touched to find out.

# Examples

```jldoctest
julia> A = Vector{UInt8}(pages(), 64 * 4096);

julia> inspect(A).real
0

julia> inspect(fill!(A, 1)).absent
0
```
"""
function inspect(array::AbstractArray)
    found = Ref(Residency(sizeof(Residency), ntuple(_ -> 0, 9)...))
    owner, address, bytes = memory(array)
    GC.@preserve owner check(ccall((:firsttouch_inspect, libfirsttouch), Cint, (Ptr{Cvoid}, Csize_t, Ref{Residency}),
                                   address, bytes, found))
    return Inspection((known_bytes(getfield(found[], i)) for i in 2:fieldcount(Residency))...)
end

title(found::Inspection) = counted(found.pages, "page")
rows(found::Inspection) = [(words(field), format_bytes(getfield(found, field)))
                           for field in fieldnames(Inspection)[2:end] if !(getfield(found, field) in (0, nothing))]
