using FirstTouch.ByteCalculators

for C in (CheckedMulByteCalculator, WideningByteCalculator, SafeByteCalculator)
    @test nbytes(C{UInt16}(3, 5)) == 30
    @test nbytes(C{UInt16}((3, 5))) == 30
    @test nbytes(C{Float64}(-1:1, Base.OneTo(4))) == 96
    @test nbytes(C{Float64}()) == 8
    @test nbytes(C{Nothing}(typemax(Int))) == 0
    @test length(C{UInt16}(typemax(Int))) == typemax(Int)
    @test_throws OverflowError nbytes(C{UInt16}(typemax(Int)))
    @test_throws OverflowError length(C{UInt8}(2^32, 2^32))
end
@test nbytes(UnsafeByteCalculator{UInt16}(typemax(Int))) == -2
@test elsize(CheckedMulByteCalculator{String}(1)) == sizeof(Ptr)

primitive type Three 24 end
@test nbytes(CheckedMulByteCalculator{Three}(2)) == sizeof(Ptr) # each padded to 4 bytes

message = try
    nbytes(CheckedMulByteCalculator{UInt16}(4, typemax(Int)))
catch error
    sprint(showerror, error)
end
@test occursin("4×9223372036854775807 array of UInt16", message)
