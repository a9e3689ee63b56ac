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

using ..FirstTouch: ByteCalculators, ScratchArray, alloc!, alloc_ptr!, allocated_since,
    allow_ptr_array_to_escape, checked_in_scope, checkpoint_restore!, checkpoint_save

# What would jump over the end of a scope, in code whose macros are expanded. A loop or a function inside the scope may
# be left: `inside` is `:loop` in the one, and the other is not looked into.

refuse_jumps(other, inside = nothing) = nothing
function refuse_jumps(ex::Expr, inside = nothing)
    (ex.head in (:quote, :inert) || is_function(ex)) && return
    ex.head == :return && error("`return` is not allowed inside of @no_escape, except in a function that is inside " *
                                "too: it would jump over the end of the scope")
    ex.head == :symbolicgoto && error("`@goto` is not allowed inside of @no_escape: it could jump out of the scope")
    ex.head == :symboliclabel &&
        error("`@label` is not allowed inside of @no_escape: a jump to it could enter the scope")
    ex.head in (:break, :continue) && inside != :loop && error("`$(ex.head)` is not allowed inside of @no_escape, " *
        "except in a loop that is inside too: it would jump over the end of the scope")
    foreach(x -> refuse_jumps(x, ex.head in (:for, :while) ? :loop : inside), ex.args)
end

is_function(ex::Expr) = ex.head in (:function, :->) || ex.head == :(=) && is_signature(ex.args[1])
is_signature(left) = left isa Expr && (left.head == :call || left.head in (:where, :(::)) && is_signature(left.args[1]))

# `@alloc` and `@alloc_ptr` stand for calls with the buffer of the scope around them. Until that is known, a `Marker` is
# in the place of the function. All other macros are expanded by Julia itself, which alone gets their hygiene right.

struct Marker
    allocate::Any
end

allocate_pointer(buffer, n) = alloc_ptr!(buffer, ByteCalculators.extent(n))
const markers = Dict(Symbol("@alloc") => Marker(alloc!), Symbol("@alloc_ptr") => Marker(allocate_pointer))

const in_scope = gensym(:in_scope)

# What the macros become, also where another macro has produced them.
function marked(name, arguments)
    get(task_local_storage(), in_scope, false) || error("$name is only valid inside of @no_escape")
    return Expr(:call, markers[name], arguments...)
end

expand(block, where) = task_local_storage(() -> macroexpand(where, named(block)), in_scope, true)

# The two macros need not be imported where `@no_escape` is called.
named(other) = other
function named(ex::Expr)
    ex.head in (:quote, :inert) && return ex
    arguments = Any[named(x) for x in ex.args]
    if ex.head == :macrocall && haskey(markers, arguments[1])
        arguments[1] = GlobalRef(parentmodule(@__MODULE__), arguments[1])
    end
    return Expr(ex.head, arguments...)
end

allocate_from(other, buffer, task) = other
function allocate_from(ex::Expr, buffer, task)
    ex.head in (:quote, :inert) && return ex
    arguments = map(x -> allocate_from(x, buffer, task), ex.args)
    ex.head == :call && ex.args[1] isa Marker || return Expr(ex.head, arguments...)
    return quote
        $task === $current_task() || $wrong_task()
        $(ex.args[1].allocate)($buffer, $(arguments[2:end]...))
    end
end

@noinline wrong_task() =
    error("@alloc is used in another task than the @no_escape around it: buffers belong to one task")

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
escapes(checkpoint, result::ScratchArray) =
    !allow_ptr_array_to_escape() && allocated_since(checkpoint, result.address)

@noinline escaped() = error("an array of scratch memory is the value of @no_escape, which frees it; " *
                              "define FirstTouch.allow_ptr_array_to_escape() = true to allow that")

end
