@testset "expressions" begin
    budget = ft"limited(pool(), '1 MiB')"
    @test budget isa Allocator
    @test occursin("limited(pool(", repr(budget))
    @test startswith(repr(pages(huge = "thp")), "ft\"pages(huge='thp'")
    @test_throws ArgumentError Allocator("poool()")
    error = try Allocator("limited(poool(), 5)") catch e; e end
    @test occursin("pool", error.msg)
end

@testset "budgets" begin
    for budget in (ft"limited(pool(), '1 MiB')", limited(pool(), "1 MiB"), limited(pool(), 2^20))
        A = Vector{UInt8}(budget, 2^19)
        error = try Vector{UInt8}(budget, 2^20) catch e; e end
        @test error isa AllocationError
        @test occursin("limit", sprint(showerror, error))
        A[1] = 1
    end
    # Garbage is collected before a request fails.
    budget = limited(pool(), "1 MiB")
    @test all(_ -> length(Vector{UInt8}(budget, 3 * 2^18)) > 0, 1:20)
end

@testset "adaptors share their upstream" begin
    p = pool()
    A = Vector{UInt8}(filled(p), 10^6)
    @test stats(p).blocks == 1
    B = Vector{UInt8}(limited(p, "1 GiB"), 1000)
    @test stats(p).blocks == 2
    @test stats(p).in_use == 1_001_000
    @test (A[1] = 1; B[1] = 1; true)
end

@testset "options" begin
    @test_throws MethodError MemAlign(64.0)
    @test_throws MethodError Allocator(:pool)
    @test all(==(0xff), Vector{UInt8}(filled(pool()), 100))
    @test all(==(0x00), Vector{UInt8}(filled(pool(), on_allocate = 0), 100))
end
