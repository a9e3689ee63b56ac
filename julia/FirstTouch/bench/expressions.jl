# A loop of vector expressions whose temporaries are new arrays, on a pool and on Julia's own memory.
using FirstTouch
include("timing.jl")

const POOL = pool()
temporary(::UndefInitializer, n) = Vector{Float64}(undef, n)
temporary(allocator, n) = Vector{Float64}(allocator, n)

# (a * b + a) / (b + 1), with an array for each operator.
function expression(source, a, b)
    n = length(a)
    product = temporary(source, n) .= a .* b
    sum = temporary(source, n) .= product .+ a
    below = temporary(source, n) .= b .+ 1
    return temporary(source, n) .= sum ./ below
end

loop(source, a, b) = () -> for _ in 1:20
    expression(source, a, b)
end

for kib in (64, 1024, 8192)
    a, b = rand(128kib), rand(128kib)
    compare("Temporaries of $kib KiB, for one expression", "`undef`" => loop(undef, a, b),
            "`pool()`" => loop(POOL, a, b); per = 20, seconds = 4.0)
end
