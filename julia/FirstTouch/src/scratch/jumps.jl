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
