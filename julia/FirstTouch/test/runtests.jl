# All tests, or those named: `Pkg.test("FirstTouch"; test_args = ["scratch"])`.
using FirstTouch, Test

const ALL = ["calculators", "arguments", "arrays", "zeros", "allocators", "packages", "lifetime", "ending",
             "scratch", "checked", "placement", "display", "documentation",
             "loading"]

@testset "FirstTouch.jl" begin
    @testset "no ambiguities" begin
        @test isempty(detect_ambiguities(FirstTouch))
    end
    @testset "$file" for file in (isempty(ARGS) ? ALL : ARGS)
        include("$file.jl")
    end
end
