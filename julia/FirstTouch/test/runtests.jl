# All tests, or those named: `Pkg.test("FirstTouch"; test_args = ["scratch"])`.
using FirstTouch, Test

const ALL = ["bytes", "calculators", "arguments", "arrays", "zeros", "allocators", "packages", "lifetime", "ending",
             "scratch", "checked", "placement", "display", "documentation"]

@testset "FirstTouch.jl" begin
    @testset "$file" for file in (isempty(ARGS) ? ALL : ARGS)
        include("$file.jl")
    end
end
