# What is behind an array's pages, and what was granted. Results are named tuples.

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

# What is behind an array's pages.

const RESIDENCY = (:pages, :absent, :zero_page, :small, :huge, :real, :swapped)
known_bytes(bytes::UInt64) = bytes == typemax(UInt64) ? nothing : Int(bytes)

"""
    inspect(array)

What is behind each page of an array's memory, from whichever allocator: of the memory that a reshape, a transpose or
another wrapper stands on, and of a strided view from its first address to its last. No page is touched to find out.

`pages` is a number, the other figures are bytes, or `nothing` where the kernel does not tell. `absent` bytes are faulted
in by their first touch; `zero_page` bytes were read, but never written.

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
    found = Ref(ntuple(_ -> UInt64(0), 7))
    owner, address, bytes = memory(array)
    GC.@preserve owner check(ccall((:firsttouch_inspect, libfirsttouch), Cint, (Ptr{Cvoid}, Csize_t,
                                   Ref{NTuple{7,UInt64}}, Ptr{UInt8}, Csize_t), address, bytes, found, C_NULL, 0))
    return NamedTuple{RESIDENCY}(map(known_bytes, found[]))
end

# What an allocator was asked for, and what the operating system granted.

struct RawReceipt
    asked::UInt64
    mapped::UInt64
    page_size::UInt64
    numa::Cint
    populate::Cint
    lock::Cint
    threads::Cint
end

const OUTCOMES = (:not_asked, :granted, :partly, :refused)

"""
    receipt(array)

What was granted to an array on [`pages`](@ref) or [`numa`](@ref), or to the one that a wrapper such as a view stands on:
bytes asked and mapped, the size of its explicit huge or base pages, and for `numa`, `populate` and `lock` one of
`:not_asked`, `:granted`, `:partly` and `:refused`. An `ArgumentError` where there is none.

# Examples

```jldoctest
julia> receipt(Vector{UInt8}(pages(populate = true), 4096)).populate
:granted
```
"""
function receipt(array::AbstractArray)
    owner, = memory(array)
    raw = Ref(RawReceipt(0, 0, 0, 0, 0, 0, 0))
    status = GC.@preserve owner ccall((:firsttouch_get_receipt, libfirsttouch), Cint, (Ptr{Cvoid}, Ref{RawReceipt}),
                                      pointer(owner), raw)
    status == 0 ||
        throw(ArgumentError("this array has no receipt: only those on pages() and numa(node) have one"))
    r = raw[]
    return (asked = Int(r.asked), mapped = Int(r.mapped), page_size = Int(r.page_size), numa = OUTCOMES[r.numa+1],
            populate = OUTCOMES[r.populate+1], lock = OUTCOMES[r.lock+1], threads = Int(r.threads))
end

# Making pages real, or those of another node.

"""
    touch!(array; write = true, threads = 0)

Makes the pages of an array real, with several threads (0: as many as suit). Its content does not change. With
`write = false`, as by a read.

# Examples

```jldoctest
julia> inspect(touch!(Vector{Int}(pages(), 10^6))).absent
0
```
"""
function touch!(array::AbstractArray; write::Bool = true, threads::Integer = 0)
    owner, address, bytes = memory(array)
    GC.@preserve owner check(ccall((:firsttouch_touch, libfirsttouch), Cint, (Ptr{Cvoid}, Csize_t, Bool, Cint),
                                   address, bytes, write, threads))
    return array
end

"""
    migrate!(array, node)

Moves an array's pages to a NUMA node, or to where a policy such as `"interleave:all"` says. Returns the bytes that
`moved`, `stayed` where they were, are `absent` as yet, or `failed` to move.
"""
function migrate!(array::AbstractArray, node::Union{Integer,Symbol,AbstractString})
    owner, address, bytes = memory(array)
    moved = Ref(ntuple(_ -> UInt64(0), 4))
    GC.@preserve owner check(ccall((:firsttouch_migrate, libfirsttouch), Cint,
        (Ptr{Cvoid}, Csize_t, Cstring, Ref{NTuple{4,UInt64}}), address, bytes, string(node), moved))
    return NamedTuple{(:moved, :stayed, :absent, :failed)}(map(Int, moved[]))
end

# The counters of an allocator.

const COUNTERS = (:in_use, :active, :idle, :mapped, :retained, :peak_in_use, :peak_active, :peak_held, :blocks,
                  :allocations, :recycled, :allocated_bytes, :recycled_bytes, :first_touched_small_bytes,
                  :first_touched_huge_bytes, :purged_bytes, :refaulted_bytes, :failures)

"""
    stats([allocator])

The counters of an allocator, or of the pool that the whole process shares. Zeros where an allocator keeps no count.
`blocks`, `allocations`, `recycled` and `failures` are numbers, the others bytes: see `firsttouch_stats` in `firsttouch.h`.

# Examples

```jldoctest
julia> p = pool();

julia> A = Vector{Float64}(p, 1000);

julia> stats(p).blocks
1
```
"""
function stats(allocator = nothing)
    counters = Ref(ntuple(_ -> UInt64(0), length(COUNTERS)))
    GC.@preserve allocator check(ccall((:firsttouch_get_stats, libfirsttouch), Cint, (Ptr{Cvoid},
                                       Ref{NTuple{18,UInt64}}), pointer_of(allocator), counters))
    return NamedTuple{COUNTERS}(map(Int, counters[]))
end

"""
    trim([allocator])

Returns idle memory to the operating system now, and says how many bytes that were.
"""
trim(allocator = nothing) = GC.@preserve allocator Int(
    ccall((:firsttouch_trim, libfirsttouch), Csize_t, (Ptr{Cvoid},), pointer_of(allocator)))
