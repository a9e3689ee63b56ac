@testset "inspect and touch!" begin
    A = Vector{UInt8}(pages(), 1 << 20)
    found = inspect(A)
    @test found.pages >= 256
    @test found.real == 0
    @test found.absent == 1 << 20
    @test touch!(A) === A
    @test inspect(A).absent == 0
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

@testset "the memory of wrappers" begin
    A = Matrix{UInt8}(pages(), 4096, 64)
    B = Vector{Int}(pages(), 512 * 16)
    touched(x) = (touch!(x); 4096 * 64 - inspect(A).absent)
    @test touched(view(A, 1:4096, 3)) == 4096
    @test touched(view(A, 4096:-1:1, 5)) == 2 * 4096
    @test touched(view(A, 1:10, 7:2:11)) == 2 * 4096 + 5 * 4096 # with the gaps
    @test touched(view(A, 5:4, 20)) == 7 * 4096
    @test touched(reshape(view(A, :, 20:21), 64, :)) == 9 * 4096
    @test touched(PermutedDimsArray(view(A, :, 22:23), (2, 1))) == 11 * 4096
    @test touched(transpose(view(A, :, 24))) == 12 * 4096
    @test touched(A') == 64 * 4096
    for wrapper in (B, reshape(B, 512, 16), view(B, 3:50), reinterpret(Float32, B), view(reshape(B, 512, 16), :, 2),
                    view(reinterpret(Float32, B), 1:9), Base.ReshapedArray(B, (4, 2048), ()), falses(64))
        @test touch!(wrapper) === wrapper
        @test inspect(wrapper).absent == 0
    end
    @test inspect(view(B, 512 .* (1:16))).pages == 16 && inspect(view(B, 16:-1:1)).pages == 1
    @test inspect(view(["a", "b"], 2:2)).pages >= 1
    for nowhere in (1:3, view(B, [1, 5, 2]), view(trues(9), 2:3))
        for call in (inspect, touch!, receipt, x -> migrate!(x, 0))
            @test_throws ArgumentError call(nowhere)
        end
    end
end

@testset "nodes" begin
    @test current_numa_node() isa Int
    @test 0 <= current_numa_node() <= highest_numa_node()
end

@testset "receipt" begin
    r = receipt(Vector{UInt8}(pages(populate = true), 10^6))
    @test r.asked == 10^6
    @test r.mapped >= 10^6
    @test r.populate == :granted
    @test r.lock == :not_asked
    A = Vector{UInt8}(numa(0), 10^6)
    @test receipt(A).numa in (:granted, :partly, :refused)
    @test receipt(Vector{UInt8}(pages(), 100)).populate == :not_asked
    for plain in (zeros(10), Vector{UInt8}(pool(), 100))
        error = try receipt(plain) catch e; e end
        @test error isa ArgumentError && occursin("only those on pages() and numa(node)", error.msg)
    end
    # Of wrappers, and after the allocator object is garbage.
    @noinline populated() = Vector{UInt8}(pages(populate = true), 10^6)
    A = populated()
    GC.gc(); GC.gc()
    @test receipt(A) == receipt(view(A, 10:20)) == receipt(reinterpret(UInt16, A))
end

@testset "migrate!" begin
    A = fill!(Vector{UInt8}(pages(huge = "thp"), 4 << 20), 1)
    try # containers may forbid it
        m = migrate!(A, 0)
        @test m.moved + m.stayed + m.absent + m.failed >= 4 << 20
    catch error
        @test occursin("migrate", error.msg) || occursin("permitted", error.msg)
    end
    @test all(==(1), A)
    @test_throws Exception migrate!(A, "nowhere")
end

@testset "stats and trim" begin
    p = pool(decay = nothing)
    A = fill!(Vector{UInt8}(p, 10^6), 1)
    s = stats(p)
    @test s.blocks == 1 && s.in_use >= 10^6 && s.allocations == 1
    finalize(FirstTouch.lifetime(A))
    @test stats(p).blocks == 0
    @test stats(p).idle >= 10^6 # in the pool, not lost
    @test trim(p) >= 10^6
    @test stats(p).idle == 0
    @test stats().failures >= 0 && trim() >= 0 # of the pool that the process shares
end
