# The counters of an allocator.

const COUNTERS = (:in_use, :active, :idle, :mapped, :retained, :peak_in_use, :peak_active, :peak_held, :blocks,
                  :allocations, :recycled, :allocated_bytes, :recycled_bytes, :first_touched_small_bytes,
                  :first_touched_huge_bytes, :purged_bytes, :failures, :refaulted_bytes)
const NUMBERS = (:blocks, :allocations, :recycled, :failures)

@eval struct RawStats
    struct_size::Csize_t
    $((:($name::UInt64) for name in COUNTERS)...)
end

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
    raw = Ref(RawStats(sizeof(RawStats), ntuple(_ -> 0, length(COUNTERS))...))
    GC.@preserve allocator check(ccall((:firsttouch_get_stats, libfirsttouch), Cint, (Ptr{Cvoid}, Ref{RawStats}),
                                       pointer_of(allocator), raw))
    return Stats((Int(getfield(raw[], name)) for name in COUNTERS)...)
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
