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
    struct Stats
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
function stats(allocator::Upstream = nothing)
    raw = Ref(RawStats(sizeof(RawStats), ntuple(_ -> 0, length(COUNTERS))...))
    GC.@preserve allocator check(ccall((:firsttouch_get_stats, libfirsttouch), Cint, (Ptr{Cvoid}, Ref{RawStats}),
                                       handle_of(allocator), raw))
    return Stats((Int(getfield(raw[], name)) for name in COUNTERS)...)
end

function Base.show(io::IO, ::MIME"text/plain", s::Stats)
    text(name, value) = name in NUMBERS ? string(value) : format_bytes(value)
    rows = [(rpad(replace(string(name), '_' => ' '), 26), text(name, getfield(s, name)))
            for name in COUNTERS if getfield(s, name) != 0]
    print_fields(io, "$(s.blocks) blocks, $(format_bytes(s.in_use)) in use", rows)
end

"""
    trim([allocator])

Returns idle memory to the operating system now, and says how many bytes that were.
"""
trim(allocator::Upstream = nothing) = GC.@preserve allocator Int(
    ccall((:firsttouch_trim, libfirsttouch), Csize_t, (Ptr{Cvoid},), handle_of(allocator)))
