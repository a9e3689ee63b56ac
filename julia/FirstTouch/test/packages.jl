# Names of ArrayAllocators.jl, NumaAllocators.jl and Bumper.jl beyond those that other tests use.
using FirstTouch: LibcArrayAllocator, LibNUMA, lineage_finalizer, wrap_libc_pointer

struct Libc16{B} <: LibcArrayAllocator{B} end
FirstTouch.allocate(::Libc16, bytes) = Libc.malloc(bytes)

@testset "subtypes of one's own" begin
    @test malloc isa LibcArrayAllocator && calloc isa AbstractArrayAllocator
    @test fill!(Array{Int}(Libc16(), 2, 3), 1) == ones(2, 3)
end

@testset "wrap_libc_pointer" begin
    @test wrap_libc_pointer(Ptr{Int}(Libc.calloc(6, 8)), (2, 3)) == zeros(2, 3)
    @test wrap_libc_pointer(Vector{Int}, Ptr{Int}(Libc.calloc(6, 8)), 6) isa Vector{Int}
    @test_throws OutOfMemoryError wrap_libc_pointer(Ptr{Int}(C_NULL), 5)
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
    @test 1 <= LibNUMA.numa_num_task_nodes() <= highest_numa_node() + 1
end
