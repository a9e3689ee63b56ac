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

expand(block, where) = task_local_storage(() -> macroexpand(where, mark(block)), in_scope, true)

# By their names, because they need not be imported where `@no_escape` is called.
mark(other) = other
function mark(ex::Expr)
    ex.head in (:quote, :inert) && return ex
    if ex.head == :macrocall
        name = macro_name(ex.args[1])
        # An inner scope marks its own block.
        name == Symbol("@no_escape") && return ex
        haskey(markers, name) && return Expr(:call, markers[name], map(mark, ex.args[3:end])...)
    end
    return Expr(ex.head, map(mark, ex.args)...)
end

macro_name(name::Symbol) = name
macro_name(name::GlobalRef) = name.name
macro_name(name::Expr) = name.head == :. ? macro_name(name.args[end]) : nothing
macro_name(name::QuoteNode) = macro_name(name.value)
macro_name(other) = nothing

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
