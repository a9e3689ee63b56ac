# What an allocator was asked for, and what the operating system granted.

struct RawReceipt
    struct_size::Csize_t
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

The receipt of an array on `numa(node)`, or on `pages` with sizes of huge pages, `numa`, `populate`, `lock` or `strict`;
or of the one that a wrapper such as a view stands on. An `ArgumentError` where there is none, as on plain `pages()`.

# Examples

```jldoctest
julia> receipt(Vector{UInt8}(pages(populate = true), 4096)).populate
:granted
```
"""
function receipt(array::AbstractArray)
    owner, = memory(array)
    raw = Ref(RawReceipt(sizeof(RawReceipt), 0, 0, 0, 0, 0, 0, 0))
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
    throw(ArgumentError("this array has no receipt: arrays on numa(node) have one, and those of pages() only with " *
                        "huge page sizes, numa, populate, lock or strict"))
end

function title(r::Receipt)
    asked, mapped, page = map(format_bytes, (r.asked, r.mapped, r.page_size))
    return "$asked asked, $mapped mapped, pages of $page"
end
rows(r::Receipt) = [(words(field), words(getfield(r, field))) for field in (:numa, :populate, :lock)
                    if getfield(r, field) != :not_asked]
