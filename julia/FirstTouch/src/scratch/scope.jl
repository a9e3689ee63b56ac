# The scope: `@no_escape`, and the markers that stand inside it.

"""
    @no_escape [buffer] begin ... end

Evaluates a block, and then frees what it allocated with [`@alloc`](@ref) and [`@alloc_ptr`](@ref). The buffer is the
task's [`default_buffer`](@ref) unless one is given.

No array of the block may be used after it, nor by a task that outlives it; `@alloc` belongs to the task of its scope.
`return`, `@goto`, `@label`, and `break` or `continue` of a loop around it are errors; functions inside may have them.
Variables that the block assigns
are those of the function, as in `begin ... end`. An exception leaves what was allocated until an outer scope ends, or
`FirstTouch.reset_buffer!`.

# Examples

```jldoctest
julia> function total(x)
           @no_escape begin
               y = @alloc(eltype(x), length(x))
               y .= x .+ 1
               sum(y)
           end
       end;

julia> total([1, 2, 3])
9
```
"""
macro no_escape(buffer, block)
    return Internals._no_escape_macro(buffer, block, __module__)
end
macro no_escape(block)
    return Internals._no_escape_macro(:($default_buffer()), block, __module__)
end

"""
    @alloc(T, dims...)

An uninitialized array of scratch memory, valid until the end of the [`@no_escape`](@ref) around it.
"""
macro alloc(arguments...)
    return Internals.marked(Symbol("@alloc"), map(esc, arguments))
end

"""
    @alloc_ptr(n)

A `Ptr{Nothing}` to `n` bytes of scratch memory, valid until the end of the [`@no_escape`](@ref) around it.
"""
macro alloc_ptr(arguments...)
    return Internals.marked(Symbol("@alloc_ptr"), map(esc, arguments))
end

"Whether an array may be the value of a scope; define it as `true` to allow it."
allow_ptr_array_to_escape() = false

module Internals

using ..FirstTouch: ByteCalculators, CheckedArray, ScratchArray, address, alloc!, alloc_ptr!, allocated_since,
    allow_ptr_array_to_escape, checked_in_scope, checkpoint_restore!, checkpoint_save

include("jumps.jl")
include("markers.jl")

function _no_escape_macro(buffer_expression, block, where)
    @gensym buffer task checkpoint result escape
    body = expand(block, where)
    refuse_jumps(body)
    body = allocate_from(body, buffer, task)
    return esc(quote
        local $buffer = $checked_in_scope($buffer_expression)
        local $task = $current_task()
        $GC.@preserve $buffer begin
            local $checkpoint = $checkpoint_save($buffer)
            local $result = $body
            local $escape = $escapes($checkpoint, $result)
            $checkpoint_restore!($checkpoint)
            $escape && $escaped()
            $result
        end
    end)
end

# Also what stands on such an array, or holds one in a tuple.
escapes(checkpoint, result) = false
escapes(checkpoint, result::AbstractArray) = parent(result) !== result && escapes(checkpoint, parent(result))
escapes(checkpoint, results::Tuple) = escapes(checkpoint, results[1]) || escapes(checkpoint, Base.tail(results))
escapes(checkpoint, results::NamedTuple) = escapes(checkpoint, Tuple(results))
escapes(checkpoint, ::Tuple{}) = false
escapes(checkpoint, result::Union{ScratchArray,CheckedArray}) =
    !allow_ptr_array_to_escape() && allocated_since(checkpoint, address(result))

@noinline escaped() = error("an array of scratch memory is the value of @no_escape, which frees it; " *
                              "define FirstTouch.allow_ptr_array_to_escape() = true to allow that")

end
