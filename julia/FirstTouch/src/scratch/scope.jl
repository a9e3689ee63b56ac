# The scope: `@no_escape`, and the markers that stand inside it.

"""
    @no_escape [buffer] begin ... end

Evaluates a block, and then frees what it allocated with [`@alloc`](@ref) and [`@alloc_ptr`](@ref). The buffer is the
task's [`default_buffer`](@ref) unless one is given.

No array of the block may be used after it, nor by a task that outlives it; `@alloc` belongs to the task of its scope.
`return`, `@goto`, `@label`, and `break` or `continue` of a loop around it are errors. Variables that the block assigns
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
    error("@alloc is only valid inside of @no_escape")
end

"""
    @alloc_ptr(n)

A `Ptr{Nothing}` to `n` bytes of scratch memory, valid until the end of the [`@no_escape`](@ref) around it.
"""
macro alloc_ptr(arguments...)
    error("@alloc_ptr is only valid inside of @no_escape")
end

"Whether an array may be the value of a scope; define it as `true` to allow it."
allow_ptr_array_to_escape() = false

module Internals

using ..FirstTouch: CheckedArray, ScratchArray, address, alloc!, alloc_ptr!, allocated_since,
    allow_ptr_array_to_escape, checked_in_scope, checkpoint_restore!, checkpoint_save

macro_name(name::Symbol) = name
macro_name(name::GlobalRef) = name.name
macro_name(name::Expr) = name.head == :. ? macro_name(name.args[end]) : nothing
macro_name(name::QuoteNode) = macro_name(name.value)
macro_name(other) = nothing

# Replaces the markers, and looks for what would jump over the end of the scope, also in what other macros become.
rewrite(other, buffer, task, where, loop = false) = other
function rewrite(ex::Expr, buffer, task, where, loop = false)
    inner = loop || ex.head == :for || ex.head == :while
    again(x) = rewrite(x, buffer, task, where, inner)
    if ex.head == :macrocall
        name = macro_name(ex.args[1])
        marker = name == Symbol("@alloc") ? alloc! : name == Symbol("@alloc_ptr") ? alloc_ptr! : nothing
        if marker !== nothing
            return quote
                $task === $current_task() || $wrong_task()
                $marker($buffer, $(map(again, ex.args[3:end])...))
            end
        end
        # An inner scope rewrites its own block.
        name == Symbol("@no_escape") && return ex
        return again(macroexpand(where, ex; recursive = false))
    end
    ex.head == :return && error("`return` is not allowed inside of @no_escape: it would jump over the end of the scope")
    ex.head == :symbolicgoto && error("`@goto` is not allowed inside of @no_escape: it could jump out of the scope")
    ex.head == :symboliclabel &&
        error("`@label` is not allowed inside of @no_escape: a jump to it could enter the scope")
    (ex.head == :break || ex.head == :continue) && !loop && error("`$(ex.head)` is not allowed inside of @no_escape, " *
        "except in a loop that is inside too: it would jump over the end of the scope")
    return Expr(ex.head, map(again, ex.args)...)
end

function _no_escape_macro(buffer_expression, block, where)
    @gensym buffer task checkpoint result escape
    body = rewrite(block, buffer, task, where)
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

@noinline wrong_task() =
    error("@alloc is used in another task than the @no_escape around it: buffers belong to one task")
@noinline escaped() = error("an array of scratch memory is the value of @no_escape, which frees it; " *
                              "define FirstTouch.allow_ptr_array_to_escape() = true to allow that")

end
