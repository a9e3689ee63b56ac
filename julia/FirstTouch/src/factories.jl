# The constructors of allocators. Options are structures of the C interface, which begin with their size.

handle_of(::Nothing) = C_NULL
handle_of(allocator::Allocator) = allocator.handle
handle_of(other) =
    throw(ArgumentError("$(repr(other)) is no allocator of the library, such as pool() or ft\"pages()\""))

const Upstream = Union{Allocator,Nothing}
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
function pool(upstream::Upstream = nothing; max_idle = nothing, decay = nothing)
    idle = max_idle === nothing ? typemax(Csize_t) : parse_bytes(max_idle)
    GC.@preserve upstream begin
        options = Ref(PoolOptions(sizeof(PoolOptions), handle_of(upstream), idle, something(decay, -1.0)))
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
    texts = map(value -> value === nothing ? nothing : string(value), (huge, numa))
    threads = populate isa Bool ? -Int(populate) : populate
    GC.@preserve texts begin
        c_string(text) = text === nothing ? Cstring(C_NULL) : Base.unsafe_convert(Cstring, text)
        huge_text, numa_text = map(c_string, texts)
        options = Ref(PagesOptions(sizeof(PagesOptions), huge_text, numa_text, threads, lock, strict))
        make(h -> ccall((:firsttouch_pages, libfirsttouch), Cint, (Ref{PagesOptions}, Ptr{Ptr{Cvoid}}), options, h))
    end
end

"    limited(upstream, budget)\n\nFails requests beyond a budget: `limited(pool(), \"4 GiB\")`."
limited(upstream::Upstream, budget) = GC.@preserve upstream make(h -> ccall((:firsttouch_limited, libfirsttouch), Cint,
    (Ptr{Cvoid}, Csize_t, Ptr{Ptr{Cvoid}}), handle_of(upstream), parse_bytes(budget), h))

"    tracked([upstream])\n\nCounts blocks and bytes, for [`stats`](@ref)."
tracked(upstream::Upstream = nothing) = GC.@preserve upstream make(h -> ccall((:firsttouch_tracked, libfirsttouch),
    Cint, (Ptr{Cvoid}, Ptr{Ptr{Cvoid}}), handle_of(upstream), h))

"""
    guarded(upstream = pages(); side = :after, keep = 0)

Places an inaccessible page behind each array, or before it: an overrun ends the program where it happens. Of the arrays
freed last, `keep` bytes stay inaccessible.
"""
function guarded(upstream::Upstream = pages(); side = :after, keep = 0)
    Symbol(side) in (:after, :before) || throw(ArgumentError("side is :after or :before, not $(repr(side))"))
    before = Symbol(side) == :before
    GC.@preserve upstream make(h -> ccall((:firsttouch_guarded, libfirsttouch), Cint,
        (Ptr{Cvoid}, Bool, Csize_t, Ptr{Ptr{Cvoid}}), handle_of(upstream), before, parse_bytes(keep), h))
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
filled(upstream::Upstream = nothing; on_allocate = 0xff, on_free = nothing) =
    GC.@preserve upstream make(h -> ccall((:firsttouch_filled, libfirsttouch), Cint,
        (Ptr{Cvoid}, Cint, Cint, Ptr{Ptr{Cvoid}}), handle_of(upstream), something(on_allocate, -1),
        something(on_free, -1), h))
