# What an option does not take is an error that names the option and what was given.
complaint(f) = try f(); "no error" catch error; error isa ArgumentError ? error.msg : sprint(showerror, error) end

options(f, name, values...) = [name => (value, () -> f(; (Symbol(name) => value,)...)) for value in values]
const WRONG = vcat(
    options(pool, "decay", -5, NaN, Inf, "3", true, 1e300, 1im, missing),
    options(pool, "max_idle", -1, typemax(UInt), 1.5, false, :big, big(2)^70),
    options(pages, "huge", true, ()), options(pages, "numa", [0, 1]), options(pages, "populate", 10^12, nothing))

@testset "$name = $(repr(value))" for (name, (value, call)) in WRONG
    text = complaint(call)
    @test startswith(text, "$name=") || startswith(text, "$name: ")
end

@testset "without a name" begin
    @test occursin("budget=-4: give a number of bytes", complaint(() -> limited(pool(), -4)))
    @test occursin("budget=0", complaint(() -> limited(pool(), 0)))
    @test occursin("allocator=MallocAllocator()", complaint(() -> limited(malloc, 5)))
    @test occursin("ft\"malloc()\"", complaint(() -> pool("pages()")))
    for call in (pool, filled, stats, trim)
        @test occursin("not an allocator", complaint(() -> call(5)))
    end
    for node in (-1, highest_numa_node() + 1, 1.5, "0", nothing, true, big(2)^70)
        @test occursin("node=", complaint(() -> numa(node)))
    end
    for node in (-1, true, "nowhere")
        @test_throws ArgumentError migrate!([1], node)
    end
    @test_throws TypeError touch!([1]; write = 1)
    for size in (0, -5, 1.5, :x, typemax(Int))
        @test occursin("SlabSize=", complaint(() -> SlabBuffer{size}()))
    end
    for storage in (1.5, nothing, 1:3, pool())
        @test occursin("storage=", complaint(() -> AllocBuffer(storage)))
    end
    @test occursin("String", complaint(() -> AllocBuffer(["a"])))
    @test occursin("larger than all memory", complaint(() -> MemAlign(big(2)^70)))
    @test occursin("huge=", complaint(() -> pages(huge = ("2M", true))))
    @test length(complaint(() -> pages(numa = zeros(10^6)))) < 500
end

@testset "what is taken" begin
    @test occursin("decay=None", repr(pool(decay = nothing)))
    @test occursin("decay=1.5", repr(pool(decay = 3 // 2))) && occursin("decay=3", repr(pool(decay = 3)))
    @test occursin("max_idle='1 GiB'", repr(pool(max_idle = "1 GiB")))
    @test occursin("before", repr(guarded(side = :before)))
    @test repr(pages(huge = false)) == repr(pages()) == repr(pages(populate = false))
    @test occursin("thp", repr(pages(huge = "thp")))
    @test occursin("bind:0", repr(pages(numa = 0))) && occursin("local", repr(pages(numa = :local)))
    @test occursin("1 GB", repr(limited(pool(), 1e9)))
    @test stats(numa(0)).blocks >= 0 && filled(numa(0)) isa Allocator
    @test sizeof(AllocBuffer(Int32(100)).buf) == 100
    @test SlabBuffer{0x1000}() isa SlabBuffer{4096}
end
