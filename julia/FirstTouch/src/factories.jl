# The constructors of allocators. Options are structures of the C interface, which begin with their size.

pointer_of(other) =
    refuse("allocator", other, "not an allocator of the library", "one such as pool() or ft\"malloc()\"")

make(create) = Allocator{DefaultByteCalculator}(created(create))

struct PoolOptions
    struct_size::Csize_t
    upstream::Ptr{Cvoid}
    max_idle::Csize_t
    decay::Cdouble
end

"""
    pool([upstream]; max_idle = nothing, decay = nothing)

A pool keeps freed blocks for later requests, and returns them to the operating system once they have stayed idle for
`decay` seconds. At most `max_idle` bytes are kept; without either, the pool decides.

# Examples

```jldoctest
julia> p = pool(max_idle = "1 GiB");

julia> sum(fill!(Array{Float64}(p, 100, 100), 1.0))
10000.0
```
"""
function pool(upstream = nothing; max_idle = nothing, decay = nothing)
    idle = max_idle === nothing ? typemax(Csize_t) :
           bytes_option("max_idle", max_idle, ", or nothing for no fixed bound")
    keep = seconds("decay", decay)
    GC.@preserve upstream begin
        options = Ref(PoolOptions(sizeof(PoolOptions), pointer_of(upstream), idle, keep))
        make(h -> ccall((:firsttouch_pool, libfirsttouch), Cint, (Ref{PoolOptions}, Ptr{Ptr{Cvoid}}), options, h))
    end
end

struct PagesOptions
    struct_size::Csize_t
    huge::Cstring
    numa::Cstring
    populate::Cint
    lock::Bool
    strict::Bool
end

"""
    pages(; huge = nothing, numa = nothing, populate = false, lock = false, strict = false)

Pages of the operating system, a mapping for each array. `huge` is `"thp"` or sizes such as `"1G,2M"`; `numa` a node or
a policy such as `"interleave:all"`; `populate` makes the pages real at once, `true` or a number of threads. What was
not granted is on the [`receipt`](@ref), or an error where `strict`.

# Examples

```jldoctest
julia> A = Vector{Float64}(pages(populate = true), 10^6);

julia> inspect(A).absent
0
```
"""
function pages(; huge = nothing, numa = nothing, populate = false, lock = false, strict = false)
    texts = (page_sizes(huge), numa === nothing ? nothing : numa_policy("numa", numa))
    threads = populating(populate)
    flags = (flag("lock", lock), flag("strict", strict))
    GC.@preserve texts begin
        c_string(text) = text === nothing ? Cstring(C_NULL) : Base.unsafe_convert(Cstring, text)
        huge_text, numa_text = map(c_string, texts)
        options = Ref(PagesOptions(sizeof(PagesOptions), huge_text, numa_text, threads, flags...))
        make(h -> ccall((:firsttouch_pages, libfirsttouch), Cint, (Ref{PagesOptions}, Ptr{Ptr{Cvoid}}), options, h))
    end
end

"    limited(upstream, budget)\n\nFails requests beyond a budget: `limited(pool(), \"4 GiB\")`."
function limited(upstream, budget)
    bytes = bytes_option("budget", budget)
    GC.@preserve upstream make(h -> ccall((:firsttouch_limited, libfirsttouch), Cint,
        (Ptr{Cvoid}, Csize_t, Ptr{Ptr{Cvoid}}), pointer_of(upstream), bytes, h))
end

"    tracked([upstream])\n\nCounts blocks and bytes, for [`stats`](@ref)."
tracked(upstream = nothing) = GC.@preserve upstream make(h -> ccall((:firsttouch_tracked, libfirsttouch),
    Cint, (Ptr{Cvoid}, Ptr{Ptr{Cvoid}}), pointer_of(upstream), h))

"""
    guarded(upstream = pages(); side = :after, keep = 0)

Places an inaccessible page behind each array, or before it: an overrun ends the program where it happens. Of the arrays
freed last, `keep` bytes stay inaccessible.
"""
function guarded(upstream = pages(); side = :after, keep = 0)
    side in (:after, :before, "after", "before") || refuse("side", side, "not a side", ":after or :before")
    before = Symbol(side) == :before
    kept = bytes_option("keep", keep)
    GC.@preserve upstream make(h -> ccall((:firsttouch_guarded, libfirsttouch), Cint,
        (Ptr{Cvoid}, Bool, Csize_t, Ptr{Ptr{Cvoid}}), pointer_of(upstream), before, kept, h))
end

"""
    filled([upstream]; on_allocate = 0xff, on_free = nothing)

Fills new and freed memory with a byte; `nothing` leaves it as it is.

# Examples

```jldoctest
julia> Vector{UInt8}(filled(pool(); on_allocate = 0x11), 100) == fill(0x11, 100)
true
```
"""
function filled(upstream = nothing; on_allocate = 0xff, on_free = nothing)
    new_byte, freed_byte = byte("on_allocate", on_allocate), byte("on_free", on_free)
    GC.@preserve upstream make(h -> ccall((:firsttouch_filled, libfirsttouch), Cint,
        (Ptr{Cvoid}, Cint, Cint, Ptr{Ptr{Cvoid}}), pointer_of(upstream), new_byte, freed_byte, h))
end
