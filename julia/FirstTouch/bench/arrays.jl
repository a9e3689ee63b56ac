# Create, sum and fill: `zeros` against `calloc`, `undef`, a pool and populated pages.
using FirstTouch
include("timing.jl")

const N = 1024
const POOL = pool()
const POPULATED = pages(huge = "thp", populate = true)

const KINDS = ("`zeros`" => () -> zeros(Float64, N, N),
               "`calloc`" => () -> Array{Float64}(calloc, N, N),
               "`FirstTouch.zeros`" => () -> FirstTouch.zeros(N, N),
               "`undef`" => () -> Array{Float64}(undef, N, N),
               "`pool()`" => () -> Array{Float64}(POOL, N, N),
               "`pages(populate)`" => () -> Array{Float64}(POPULATED, N, N))

after(f) = map(kind -> kind.first => (() -> f(kind.second())), KINDS)

# Without `undef`, whose sum may be anything.
const ZEROED = KINDS[1:3]

compare("Create $N x $N", KINDS...)
compare("Create and sum", map(kind -> kind.first => (() -> sum(kind.second())), ZEROED)...)
compare("Create and fill", after(A -> fill!(A, 1.0))...)

println("\nFill, the first and the second time:\n\n| | first | second |\n|---|---|---|")
for (name, make) in KINDS
    first_fill = second_fill = Inf
    for _ in 1:20
        A = make()
        first_fill = min(first_fill, @elapsed fill!(A, 1.0))
        second_fill = min(second_fill, @elapsed fill!(A, 2.0))
    end
    println("| ", name, " | ", format_time(first_fill), " | ", format_time(second_fill), " |")
end
