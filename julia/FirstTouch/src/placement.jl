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

struct RawMigration
    struct_size::Csize_t
    moved::UInt64
    stayed::UInt64
    absent::UInt64
    failed::UInt64
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
    raw = Ref(RawMigration(sizeof(RawMigration), 0, 0, 0, 0))
    GC.@preserve owner check(ccall((:firsttouch_migrate, libfirsttouch), Cint,
        (Ptr{Cvoid}, Csize_t, Cstring, Ref{RawMigration}), address, bytes, policy, raw))
    return Migration((Int(getfield(raw[], i)) for i in 2:5)...)
end

title(m::Migration) = string("migration of ", format_bytes(m.moved + m.stayed + m.absent + m.failed))
rows(m::Migration) = [(words(field), format_bytes(getfield(m, field))) for field in fieldnames(Migration)
                      if getfield(m, field) != 0]
