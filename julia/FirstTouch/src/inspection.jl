# What is behind an array's pages, what was granted, and how both are displayed.

# How results and allocators are displayed.

# Results have a `title`, and `rows`: the name and the value of each field that says something.
abstract type Figures end

Base.show(io::IO, figures::Figures) = print(io, nameof(typeof(figures)), '(', title(figures), ')')
function Base.show(io::IO, ::MIME"text/plain", figures::Figures)
    print(io, title(figures))
    width = mapreduce(row -> length(row[1]), max, rows(figures); init = 0)
    for (name, value) in rows(figures)
        print(io, "\n  ", rpad(name, width), "  ", value)
    end
end

words(field::Symbol) = replace(string(field), '_' => ' ')
counted(n, word) = string(n, ' ', word, n == 1 ? "" : "s")

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

# What is behind an array's pages.

struct Residency
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
    found = Ref(Residency(ntuple(_ -> 0, 9)...))
    owner, address, bytes = memory(array)
    GC.@preserve owner check(ccall((:firsttouch_inspect, libfirsttouch), Cint, (Ptr{Cvoid}, Csize_t, Ref{Residency},
                                   Ptr{UInt8}, Csize_t), address, bytes, found, C_NULL, 0))
    return Inspection((known_bytes(getfield(found[], i)) for i in 1:fieldcount(Residency))...)
end

title(found::Inspection) = counted(found.pages, "page")
rows(found::Inspection) = [(words(field), format_bytes(getfield(found, field)))
                           for field in fieldnames(Inspection)[2:end] if !(getfield(found, field) in (0, nothing))]

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
    FirstTouch.Receipt

What was granted to an array on [`pages`](@ref) with options or [`numa`](@ref): bytes asked and mapped, the size of its
explicit huge or base pages, and for `numa`, `populate` and `lock` one of `:not_asked`, `:granted`, `:partly` and
`:refused`.
"""
struct Receipt <: Figures
    asked::Int
    mapped::Int
    page_size::Int
    numa::Symbol
    populate::Symbol
    lock::Symbol
    threads::Int
end

"""
    receipt(array)

The receipt of an array on `pages` or `numa(node)`, or of the one that a wrapper such as a view stands on. An `ArgumentError`
where there is none.

# Examples

```jldoctest
julia> receipt(Vector{UInt8}(pages(populate = true), 4096)).populate
:granted
```
"""
function receipt(array::AbstractArray)
    owner, = memory(array)
    raw = Ref(RawReceipt(0, 0, 0, 0, 0, 0, 0))
    for handle in all_handles()
        acquire!(handle) || continue
        status = GC.@preserve owner ccall((:firsttouch_get_receipt, libfirsttouch), Cint,
            (Ptr{Cvoid}, Ptr{Cvoid}, Ref{RawReceipt}), handle.pointer, pointer(owner), raw)
        release!(handle)
        status == 0 || continue
        r = raw[]
        return Receipt(r.asked, r.mapped, r.page_size, OUTCOMES[r.numa+1], OUTCOMES[r.populate+1], OUTCOMES[r.lock+1],
                       r.threads)
    end
    throw(ArgumentError("this array has no receipt: only those on pages() and numa(node) have one"))
end

function title(r::Receipt)
    asked, mapped, page = map(format_bytes, (r.asked, r.mapped, r.page_size))
    return "$asked asked, $mapped mapped, pages of $page"
end
rows(r::Receipt) = [(words(field), words(getfield(r, field))) for field in (:numa, :populate, :lock)
                    if getfield(r, field) != :not_asked]

# Making pages real, huge, or those of another node.

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
function touch!(array::AbstractArray; write = true, threads = 0)
    owner, address, bytes = memory(array)
    flag("write", write)
    count = thread_count("threads", threads, "a number of threads up to 1024, or 0 for as many as suit")
    GC.@preserve owner check(ccall((:firsttouch_touch, libfirsttouch), Cint, (Ptr{Cvoid}, Csize_t, Bool, Cint),
                                   address, bytes, write, count))
    return array
end

"    collapse!(array)\n\nMoves an array onto huge pages now; returns the bytes that are on them."
function collapse!(array::AbstractArray)
    owner, address, bytes = memory(array)
    huge = Ref{Csize_t}(0)
    GC.@preserve owner check(ccall((:firsttouch_collapse, libfirsttouch), Cint, (Ptr{Cvoid}, Csize_t, Ref{Csize_t}),
                                   address, bytes, huge))
    return Int(huge[])
end

"    FirstTouch.Migration\n\nBytes that moved, stayed where they were, are not real yet, or could not be moved."
struct Migration <: Figures
    moved::Int
    stayed::Int
    absent::Int
    failed::Int
end

"""
    migrate!(array, node)

Moves an array's pages to a NUMA node, or to where a policy such as `"interleave:all"` says.
"""
function migrate!(array::AbstractArray, node)
    owner, address, bytes = memory(array)
    policy = numa_policy("node", node)
    moved = Ref(Migration(0, 0, 0, 0))
    GC.@preserve owner check(ccall((:firsttouch_migrate, libfirsttouch), Cint,
        (Ptr{Cvoid}, Csize_t, Cstring, Ref{Migration}), address, bytes, policy, moved))
    return moved[]
end

title(m::Migration) = string("migration of ", format_bytes(m.moved + m.stayed + m.absent + m.failed))
rows(m::Migration) = [(words(field), format_bytes(getfield(m, field))) for field in fieldnames(Migration)
                      if getfield(m, field) != 0]

# The counters of an allocator.

const COUNTERS = (:in_use, :active, :idle, :mapped, :retained, :peak_in_use, :peak_active, :peak_held, :blocks,
                  :allocations, :recycled, :allocated_bytes, :recycled_bytes, :first_touched_small_bytes,
                  :first_touched_huge_bytes, :purged_bytes, :refaulted_bytes, :failures)
const NUMBERS = (:blocks, :allocations, :recycled, :failures)

@eval begin
    """
        FirstTouch.Stats

    The counters of an allocator. `blocks`, `allocations`, `recycled` and `failures` are numbers, the others bytes: see
    `firsttouch_stats` in `firsttouch.h`.
    """
    struct Stats <: Figures
        $((:($name::Int) for name in COUNTERS)...)
    end
end

"""
    stats([allocator])

The counters of an allocator, or of the pool that the whole process shares. Zeros where an allocator keeps no count.

# Examples

```jldoctest
julia> p = pool();

julia> A = Vector{Float64}(p, 1000);

julia> stats(p).blocks
1
```
"""
function stats(allocator = nothing)
    counters = Ref(Stats(ntuple(_ -> 0, length(COUNTERS))...))
    GC.@preserve allocator check(ccall((:firsttouch_get_stats, libfirsttouch), Cint, (Ptr{Cvoid}, Ref{Stats}),
                                       pointer_of(allocator), counters))
    return counters[]
end

title(s::Stats) = string(counted(s.blocks, "block"), ", ", format_bytes(s.in_use), " in use")
rows(s::Stats) = [(words(name), name in NUMBERS ? getfield(s, name) : format_bytes(getfield(s, name)))
                  for name in COUNTERS if getfield(s, name) != 0]

"""
    trim([allocator])

Returns idle memory to the operating system now, and says how many bytes that were.
"""
trim(allocator = nothing) = GC.@preserve allocator Int(
    ccall((:firsttouch_trim, libfirsttouch), Csize_t, (Ptr{Cvoid},), pointer_of(allocator)))
