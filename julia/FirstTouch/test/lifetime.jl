# Memory lives as long as its last user, and no longer.

blocks(allocator) = (GC.gc(); GC.gc(); stats(allocator).blocks)
make(allocator, n) = fill!(Vector{Int}(allocator, n), n)

@testset "returned when garbage" begin
    p = pool()
    @noinline drop() = (make(p, 1000); nothing)
    drop()
    @test blocks(p) == 0
    finalize(FirstTouch.lifetime(make(p, 10)))
    @test stats(p).blocks == 0
end

@testset "reshapes, views and closures keep it" begin
    p = guarded()
    @noinline users() = [reshape(make(p, 600), 20, 30), view(make(p, 500), 3:400), reinterpret(Float64, make(p, 100)),
                         vec(reshape(make(p, 64), 8, 8)), transpose(make(p, 50))]
    @noinline closures() = (A = make(p, 700); () -> sum(A))
    kept, closure = users(), closures()
    GC.gc()
    @test map(sum, kept)[[1, 2, 4, 5]] == [600^2, 500 * 398, 64^2, 50^2]
    @test reinterpret(Int, kept[3]) == fill(100, 100)
    @test closure() == 700^2
    kept = closure = nothing
end

@testset "an allocator may go first" begin
    @noinline orphan() = make(pool(), 1000)
    kept = [orphan() for _ in 1:200]
    GC.gc()
    others = [pool() for _ in 1:200] # where the released ones lay, if they were released
    @test all(A -> sum(A) == 10^6, kept)
    foreach(A -> finalize(FirstTouch.lifetime(A)), kept)
    @test all(p -> stats(p).blocks == 0, others)
    @test all(A -> sum(A) == 10^6, [make(p, 1000) for p in others])
end

@testset "copies of an allocator are the same" begin
    p = pool()
    @test deepcopy((1, p))[2] === p
    # As after deserialization, which makes pointers null.
    stranger = FirstTouch.Allocator{FirstTouch.DefaultByteCalculator}(C_NULL)
    @test_throws ArgumentError Vector{Int}(stranger, 3)
end

@testset "unsafe_wrap of a preserved array" begin
    A = make(guarded(), 600)
    GC.@preserve A begin
        B = unsafe_wrap(Array, pointer(A), 600)
        GC.gc()
        @test sum(B) == 600^2
    end
end

VERSION >= v"1.11-" && @testset "the memory outlives its array" begin
    p = pool()
    alone = Memory{Int}(p, 100)
    @test alone isa Memory{Int} && length(alone) == 100 && stats(p).blocks == 1
    finalize(alone)
    @test stats(p).blocks == 0 && isempty(Memory{Int}(p, 0))
    @noinline memory() = make(p, 100).ref.mem
    m = memory()
    GC.gc()
    @test sum(m) == 100^2
    @noinline grown() = push!(make(p, 100), 0)
    A = grown()
    @test blocks(p) == 1 # of m: the array has other memory now
    @test sum(A) == 100^2
end

@testset "100,000 arrays, with collections in other tasks" begin
    p = pool()
    before = FirstTouch.live[]
    done = Ref(false)
    collector = @async while !done[]
        GC.gc(false)
        sleep(0.01)
    end
    function create_and_drop()
        wrong = 0
        for i in 1:100_000
            A = Vector{Int}(p, 1 + i % 100)
            A .= i
            wrong += A[end] != i
            i % 1000 == 0 && yield()
        end
        return wrong
    end
    wrong = create_and_drop()
    done[] = true
    wait(collector)
    @test wrong == 0
    @test blocks(p) == 0
    @test stats(p).allocations == 100_000
    @test FirstTouch.live[] <= before # each was counted and released once
end

@testset "in $(Threads.nthreads()) threads" begin
    p = pool()
    wrong = Threads.Atomic{Int}(0)
    create(n) = (A = Vector{Int}(p, 1 + n % 1000); A .= n; A[end] == n || Threads.atomic_add!(wrong, 1))
    Threads.@threads for _ in 1:4
        foreach(create, 1:5000)
    end
    @test wrong[] == 0
    @test blocks(p) == 0
    @test stats(p).allocations == 20_000
end

@testset "collected in time, also after requests that failed" begin
    p = pool()
    before = FirstTouch.live[]
    for bytes in (typemax(Int), 2^50, 2^62)
        @test_throws AllocationError Vector{UInt8}(p, bytes)
    end
    @test FirstTouch.live[] <= before
    most = 0
    for _ in 1:2000
        Vector{UInt8}(p, 2^20)
        most = max(most, stats(p).in_use)
    end
    @test most < 2^29 # of 2 GiB that were allocated
end

@testset "under the guarded allocator" begin
    p = guarded(keep = "16 MiB")
    kept = Any[]
    for i in 1:2000
        A = make(p, 1 + rand(1:2000))
        i % 3 == 0 && push!(kept, rand((A, reshape(A, 1, :), view(A, 1:length(A)), () -> A)))
        length(kept) > 100 && popfirst!(kept)
        i % 200 == 0 && GC.gc()
    end
    total(x::Function) = total(x())
    total(x) = sum(x) - length(x)^2
    @test all(iszero, map(total, kept))
end
