shown(value) = sprint(show, MIME("text/plain"), value)

@testset "inspect and touch!" begin
    A = Vector{UInt8}(pages(), 1 << 20)
    found = inspect(A)
    @test found.pages >= 256
    @test found.real == 0
    @test found.absent == 1 << 20
    @test touch!(A) === A
    @test inspect(A).absent == 0
    @test occursin("pages", shown(found)) && occursin("absent", shown(found)) && occursin("1 MiB", shown(found))
    B = FirstTouch.zeros(UInt8, 1 << 24)
    touch!(B, write = false, threads = 1)
    @test inspect(B).real === nothing || inspect(B).real < 1 << 23
    @test inspect(zeros(10)).pages >= 1 # of any allocator
    for buffer in (SlabBuffer(), CheckedBuffer())
        @test 1024 <= @no_escape buffer begin
            scratch = @alloc(Int, 2^19)
            touch!(scratch)
            @assert inspect(scratch).absent == 0
            inspect(scratch).pages
        end
    end
end

@testset "receipt" begin
    r = receipt(Vector{UInt8}(pages(populate = true), 10^6))
    @test r.asked == 10^6
    @test r.mapped >= 10^6
    @test r.populate == :granted
    @test r.lock == :not_asked
    @test occursin("granted", shown(r))
    A = Vector{UInt8}(numa(0), 10^6)
    @test receipt(A).numa in (:granted, :partly, :refused)
    @test_throws ArgumentError receipt(zeros(10))
end

@testset "migrate! and collapse!" begin
    A = fill!(Vector{UInt8}(pages(huge = "thp"), 4 << 20), 1)
    try # containers may forbid it
        m = migrate!(A, 0)
        @test m.moved + m.stayed + m.absent + m.failed >= 4 << 20
        @test occursin("migration of", shown(m))
    catch error
        @test occursin("migrate", error.msg) || occursin("permitted", error.msg)
    end
    try
        @test collapse!(A) >= 0
    catch error
        @test error isa ErrorException
    end
    @test all(==(1), A)
    @test_throws Exception migrate!(A, "nowhere")
end

@testset "stats and trim" begin
    p = pool(decay = Inf)
    A = fill!(Vector{UInt8}(p, 10^6), 1)
    s = stats(p)
    @test s.blocks == 1 && s.in_use >= 10^6 && s.allocations == 1
    @test occursin("1 blocks", shown(s))
    finalize(FirstTouch.lifetime(A))
    @test stats(p).blocks == 0
    @test stats(p).idle >= 10^6 # in the pool, not lost
    @test trim(p) >= 10^6
    @test stats(p).idle == 0
    @test stats().failures >= 0 && trim() >= 0 # of the pool that the process shares
end
