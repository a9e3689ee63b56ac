# Arrays on every allocator, in every form of the constructor.
const SOURCES = (malloc, calloc, MallocAllocator(), CallocAllocator(), UndefAllocator(), MemAlign(), MemAlign(2^16),
                 numa(0), NumaAllocator(0), pool(), pages(), limited(pool(), "1 GiB"), guarded(),
                 filled(pool()), ft"jemalloc()")

@testset "$(repr(allocator))" for allocator in SOURCES
    for A in (Array{Float64}(allocator, 3, 4), Array{Float64}(allocator, (3, 4)), Matrix{Float64}(allocator, 3, 4),
              Array{Float64}(allocator, Int32(3), 0x04))
        @test A isa Matrix{Float64}
        @test size(A) == (3, 4)
        A .= 1:3
        @test sum(A) == 24
    end
    @test size(Array{Int}(allocator)) == ()
    @test size(Vector{Int}(allocator, 5)) == (5,)
    @test size(Vector{Int}(allocator, 0)) == (0,)
    @test size(Array{Int}(allocator, 3, 0, 2)) == (3, 0, 2)
    @test length(Vector{Nothing}(allocator, 7)) == 7
    @test Vector{Tuple{Int8,Float64}}(allocator, 3) isa Vector
    @test_throws OverflowError Array{UInt8}(allocator, 20480000, typemax(Int))
    @test_throws OverflowError Array{UInt16}(allocator, 2, typemax(Int) ÷ 2)
    @test_throws OverflowError Array{UInt8}(allocator, big(2)^70)
    @test_throws ArgumentError Array{UInt8}(allocator, -1)
    @test_throws MethodError Vector{Int}(allocator, 2, 3)
end

@testset "zeroed, aligned" begin
    for n in (100, 10^5, 10^6, 2^20, 10^7), _ in 1:3
        A = Vector{UInt8}(calloc, n)
        @test all(iszero, A)
        fill!(A, 1)
        n < 2^20 || finalize(FirstTouch.lifetime(A)) # the next one is likely to lie here
    end
    trim(FirstTouch.lazy[]) # freed arrays are purged soon after; here, now
    @test inspect(Vector{UInt8}(calloc, 2^24)).absent >= 2^24 - 2^22 # but for huge pages that are shared with others
    for alignment in (8, 64, 4096, 2^16)
        A = Array{UInt8}(MemAlign(alignment), 100)
        @test UInt(pointer(A)) % alignment == 0
        @test FirstTouch.alignment(MemAlign(alignment)) == alignment
        on_windows = Vector{UInt8}(FirstTouch.aligned_of(MemAlign(alignment)), 100)
        @test UInt(pointer(on_windows)) % alignment == 0
    end
    @test_throws ArgumentError MemAlign(48)
    @test_throws ArgumentError MemAlign(4)
    @test UInt(pointer(Vector{UInt8}(pool(), 1))) % 64 == 0
end

@testset "byte calculators" begin
    for B in (FirstTouch.CheckedMulByteCalculator, FirstTouch.WideningByteCalculator, SafeByteCalculator)
        @test_throws OverflowError Array{UInt16}(MallocAllocator{B}(), 2, typemax(Int) ÷ 2)
        @test size(Array{UInt16}(MemAlign{B}(64), 2, 3)) == (2, 3)
        @test size(Array{UInt16}(NumaAllocator{B}(0), 2, 3)) == (2, 3)
        @test size(Array{UInt16}(Allocator{B}("pool()"), 2, 3)) == (2, 3)
    end
end

@testset "elements that are references" begin
    A = Array{String}(calloc, 2, 2)
    @test !isassigned(A, 1)
    A[1] = "text"
    GC.gc()
    @test A[1] == "text"
    @test Vector{Any}(UndefAllocator(), 3) isa Vector{Any}
    @test_throws ArgumentError Vector{String}(malloc, 3)
    @test_throws ArgumentError Vector{Any}(pool(), 3)
    @test_throws ArgumentError Vector{Union{Int,Missing}}(numa(0), 3)
end

# As OffsetArrays.jl does: made of an array and its axes.
struct Shifted{T,N} <: AbstractArray{T,N}
    parent::Array{T,N}
    ranges::Tuple
end
Shifted(parent::Array{T,N}, ranges::AbstractUnitRange...) where {T,N} = Shifted{T,N}(parent, ranges)
Base.size(shifted::Shifted) = size(shifted.parent)
Base.getindex(shifted::Shifted, i::Int...) =
    shifted.parent[map((i, range) -> i - first(range) + 1, i, shifted.ranges)...]

@testset "other array types" begin
    # From Julia 1.9 on, an extension has such a constructor for OffsetArrays.
    shift(A, allocator, dims...) = VERSION < v"1.9-" ? A(allocator, dims...) : FirstTouch.make(A, allocator, dims)
    shifted = shift(Shifted{UInt8}, calloc, -5:3, Base.OneTo(9))
    @test size(shifted) == (9, 9)
    @test shifted[-5, 9] == 0
    @test shift(Shifted{Int}, pool(), 2, 3).ranges == (Base.OneTo(2), Base.OneTo(3))
    @test Array{Int}(calloc, Base.OneTo(3)) == [0, 0, 0]
    @test_throws ArgumentError Array{Int}(calloc, -1:1)
    @test_throws ArgumentError FirstTouch.make(BitArray, calloc, (3,))
end

@testset "growing" begin
    for allocator in (malloc, pool())
        A = Vector{Int}(allocator, 3)
        A .= 1:3
        if VERSION < v"1.11-"
            @test_throws ErrorException push!(A, 4)
        else
            @test push!(A, 4) == 1:4
        end
    end
end
