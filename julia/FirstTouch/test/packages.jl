# Names of ArrayAllocators.jl, NumaAllocators.jl and Bumper.jl beyond those that other tests use.
using FirstTouch: AbstractMemAlign, AbstractNumaAllocator, LibcArrayAllocator, LibNUMA, POSIX, Windows, alignment,
    lineage_finalizer, min_alignment, wrap_libc_pointer

@testset "supertypes" begin
    @test malloc isa LibcArrayAllocator && calloc isa AbstractArrayAllocator
    @test MemAlign(64) isa AbstractMemAlign && MemAlign === POSIX.PosixMemAlign
    @test numa(0) isa AbstractNumaAllocator && NumaAllocator === LibNUMA.LibNumaAllocator
    @test Windows.WinMemAlign() isa AbstractMemAlign && Windows.WinNumaAllocator(3) isa AbstractNumaAllocator
    @test min_alignment(MemAlign) == sizeof(Ptr) == alignment(MemAlign()) && min_alignment(Windows.WinMemAlign) == 2^16
end

struct Libc16{B} <: LibcArrayAllocator{B} end
FirstTouch.allocate(::Libc16, bytes) = Libc.malloc(bytes)
struct Aligned{B} <: AbstractMemAlign{B}
    alignment::Int
end

@testset "subtypes of one's own" begin
    @test fill!(Array{Int}(Libc16(), 2, 3), 1) == ones(2, 3)
    @test alignment(Aligned(32)) == 32
end

@testset "wrap_libc_pointer" begin
    @test wrap_libc_pointer(Ptr{Int}(Libc.calloc(6, 8)), (2, 3)) == zeros(2, 3)
    @test wrap_libc_pointer(Vector{Int}, Ptr{Int}(Libc.calloc(6, 8)), 6) isa Vector{Int}
    @test_throws OutOfMemoryError wrap_libc_pointer(Ptr{Int}(C_NULL), 5)
end

@testset "what only Windows has" begin
    for allocator in (Windows.WinMemAlign(2^16), Windows.virtual, Windows.WinNumaAllocator(0))
        error = try Vector{Int}(allocator, 5) catch e; e end
        @test error isa ErrorException && occursin("only Windows has: use ", error.msg)
    end
    @test_throws ArgumentError Windows.WinMemAlign(4096)
end

@testset "lineage_finalizer" begin
    released = Ref(0)
    release(_) = (released[] += 1)
    A = collect(1:6)
    lineage_finalizer(release, view(transpose(reshape(view(A, 1:6), 2, 3)), 1:2, :))
    finalize(FirstTouch.lifetime(A))
    @test released[] == 1
    r = Ref(1)
    lineage_finalizer(release, r)
    finalize(r)
    @test released[] == 2
    @test_throws ErrorException lineage_finalizer(release, 1:3)
end

@testset "LibNUMA" begin
    for pointer in (LibNUMA.numa_alloc_local(1024), LibNUMA.numa_alloc_onnode(1024, 0))
        bytes = unsafe_wrap(Array, Ptr{UInt8}(pointer), 1024)
        @test all(iszero, bytes)
        fill!(bytes, 1)
        before = FirstTouch.live[]
        LibNUMA.numa_free(bytes)
        @test FirstTouch.live[] <= before - 1024
    end
    LibNUMA.numa_free(C_NULL, 0)
    before = FirstTouch.live[]
    A = LibNUMA.wrap_numa(Matrix{Int}, Ptr{Int}(LibNUMA.numa_alloc_onnode(48, 0)), (2, 3))
    @test fill!(A, 2) == fill(2, 2, 3)
    finalize(FirstTouch.lifetime(A))
    @test FirstTouch.live[] == before
    @test_throws OutOfMemoryError LibNUMA.wrap_numa(Array{Int}, Ptr{Int}(C_NULL), 1024)
    @test_throws ArgumentError LibNUMA.numa_alloc_onnode(10, highest_numa_node() + 1)
    @test_throws ArgumentError LibNUMA.numa_alloc_local(-1)
    @test_throws OverflowError LibNUMA.numa_alloc_local(typemax(Int))
    @test 1 <= LibNUMA.numa_num_task_nodes() <= LibNUMA.numa_max_node() + 1
    @test 0 <= LibNUMA.numa_node_of_cpu() <= LibNUMA.numa_max_node()
    @test LibNUMA.numa_node_of_cpu(10^6) == -1
    @test LibNUMA.sched_getcpu() >= 0
end
