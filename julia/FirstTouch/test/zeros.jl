for dims in ((), (0,), (5,), (2, 3), (2, 0, 3))
    for T in (Float64, Int8, ComplexF32, Bool, Rational{Int}, BigInt)
        A = FirstTouch.zeros(T, dims...)
        @test A == zeros(T, dims...)
        @test typeof(A) == typeof(zeros(T, dims...))
        @test FirstTouch.zeros(T, dims) == A
    end
    @test FirstTouch.zeros(dims...) == zeros(dims...)
    @test FirstTouch.zeros(dims) == zeros(dims)
end
@test FirstTouch.zeros(Int, 0x02, Int32(3)) == zeros(Int, 2, 3)
@test FirstTouch.zeros(Int, Base.OneTo(3)) == zeros(Int, Base.OneTo(3))
@test FirstTouch.zeros(Tuple{Int,Int}, 3) == fill((0, 0), 3)
@test FirstTouch.zeros(Char, 2) == ['\0', '\0']
@test_throws OverflowError FirstTouch.zeros(UInt8, 2^40, 2^40)

# Lazily: nothing is behind most pages.
A = FirstTouch.zeros(UInt8, 64 << 20)
@test inspect(A).absent > 60 << 20
A = zeros(UInt8, 64 << 20)
@test inspect(A).absent < 4 << 20
