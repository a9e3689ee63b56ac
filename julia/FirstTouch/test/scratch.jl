function total(x, buffer = default_buffer())
    @no_escape buffer begin
        y = @alloc(eltype(x), length(x))
        y .= x .+ 1
        sum(y)
    end
end
function total_default(x)
    @no_escape begin
        y = @alloc(eltype(x), length(x))
        y .= x .+ 1
        sum(y)
    end
end

@testset "free of allocations" begin
    x = collect(1:30)
    for buffer in (default_buffer(), SlabBuffer(), AllocBuffer(), AllocBuffer(1000),
                   AllocBuffer(Vector{Int}(pool(), 100)))
        @test total(x, buffer) == 495
        @test @allocated(total(x, buffer)) == 0
    end
    @test total_default(x) == 495
    @test @allocated(total_default(x)) == 0
end

@testset "arrays" begin
    @no_escape begin
        A = @alloc(Float64, 3, 4)
        @test A isa DenseMatrix{Float64}
        @test size(A) == (3, 4)
        A .= 2.0
        @test A * ones(4) == fill(8.0, 3)
        @test A' * A == fill(12.0, 4, 4)
        @test strides(A) == (1, 3)
        @test_throws BoundsError A[13]
        @test reshape(A, 2, 6) isa typeof(A) && vec(A) isa DenseVector
        @test vec(reshape(A, 2, :)) == fill(2.0, 12)
        @test_throws DimensionMismatch reshape(A, 5, 3)
        @test_throws ArgumentError reshape(A, -2, -6)
        @test_throws OverflowError reshape(@alloc(Int, 0), 2^32, 2^32)
        @test size(@alloc(Int)) == ()
        @test isempty(@alloc(Int, 0))
        @test_throws ArgumentError @alloc(String, 1)
        @test_throws ArgumentError @alloc(Int, -1)
        @test_throws OverflowError @alloc(Int, typemax(Int))
        @alloc(UInt8, 3)
        @test UInt(pointer(@alloc(Float64, 1))) % 8 == 0 # aligned for the type
        @test @alloc_ptr(10) isa Ptr{Nothing}
    end
end

@testset "$(typeof(buffer))" for buffer in (SlabBuffer{16_384}(), AllocBuffer(2^20))
    state() = buffer isa AllocBuffer ? buffer.offset :
              (buffer.current, length(buffer.slabs), length(buffer.custom_slabs))
    start = state()
    @no_escape buffer begin
        a = @alloc(Int, 1000)
        a .= 1
        inner = state()
        for _ in 1:3
            @no_escape buffer begin
                b = @alloc(Int, 1500)
                c = @alloc(Int, 3000)
                b .= 2
                c .= 3
                @test sum(a) == 1000
            end
            @test state() == inner
        end
        @test sum(a) == 1000
    end
    @test state() == start
    @test_throws ErrorException @no_escape buffer begin
        @alloc(Int, 3000)
        error("left by an exception")
    end
    @test state() != start
    FirstTouch.reset_buffer!(buffer)
    @test state() == start
end

@testset "a full buffer" begin
    buffer = AllocBuffer(100)
    @test_throws ErrorException FirstTouch.alloc!(buffer, Int, 13)
    @test buffer.offset == 0
    @test length(FirstTouch.alloc!(buffer, Int, 12)) == 12
    @test_throws ErrorException FirstTouch.alloc_ptr!(buffer, 5)
    @test_throws ErrorException FirstTouch.alloc_ptr!(buffer, typemax(Int))
end

@testset "aligned for $T" for T in (NTuple{8,VecElement{Float64}}, NTuple{16,VecElement{Float64}})
    for n in (1, 3, 30, 31, 40, 200),
        buffer in (SlabBuffer{4096}(), AllocBuffer(10^6), CheckedBuffer())
        for _ in 1:20
            FirstTouch.alloc!(buffer, UInt8, 64)
            x = FirstTouch.alloc!(buffer, T, n)
            @test UInt(pointer(x)) % sizeof(T) == 0
            x .= Ref(ntuple(_ -> VecElement(1.0), length(T.parameters)))
        end
        FirstTouch.reset_buffer!(buffer)
    end
end

@testset "the storage of an AllocBuffer" begin
    @test sizeof(AllocBuffer(65536).buf) == 65536
    @test_throws ArgumentError AllocBuffer(-1)
    @test_throws ArgumentError AllocBuffer("64 KiB")
    whole = zeros(UInt8, 64)
    part = AllocBuffer(view(whole, 9:16))
    fill!(FirstTouch.alloc!(part, UInt8, 8), 1)
    @test_throws ErrorException FirstTouch.alloc!(part, UInt8, 1)
    @test findall(isone, whole) == 9:16
    # Others have gaps, or a `sizeof` that is not that of their memory.
    for storage in (view(whole, 1:2:9), whole', reinterpret(Int8, whole), view(reinterpret(Int8, whole), 1:8),
                    PermutedDimsArray(zeros(2, 2), (2, 1)))
        @test_throws ArgumentError AllocBuffer(storage)
    end
end

@testset "negative sizes" begin
    for buffer in (SlabBuffer{4096}(), AllocBuffer(100), CheckedBuffer())
        before = FirstTouch.checkpoint_save(buffer)
        @test_throws ArgumentError FirstTouch.alloc_ptr!(buffer, -5)
        @test_throws ArgumentError FirstTouch.alloc!(buffer, Int, -5)
        @test FirstTouch.alloc_ptr!(buffer, 0) isa Ptr
        FirstTouch.checkpoint_restore!(before)
    end
end

@testset "a reset inside a scope, then $after slabs" for after in (1, 2, 3, 5)
    buffer = SlabBuffer{4096}()
    @no_escape buffer begin
        foreach(_ -> FirstTouch.alloc!(buffer, UInt8, 3000), 1:3)
        @no_escape buffer begin
            FirstTouch.reset_buffer!(buffer)
            others = [FirstTouch.alloc!(SlabBuffer{4096}(), UInt8, 3000) for _ in 1:10] # on the slabs freed
            foreach(_ -> FirstTouch.alloc!(buffer, UInt8, 3000), 1:after)
            nothing
        end
        @test buffer.slabs[end] <= buffer.current <= buffer.slab_end == buffer.slabs[end] + 4096
        nothing
    end
    @test length(buffer.slabs) == 1
    @test buffer.slabs[1] <= buffer.current <= buffer.slab_end == buffer.slabs[1] + 4096
end

@testset "memory of slabs returns" begin
    GC.gc() # those of the buffers above
    before = FirstTouch.live[]
    buffer = SlabBuffer{4096}(finalize = false)
    FirstTouch.alloc!(buffer, UInt8, 10^6)
    for _ in 1:100
        FirstTouch.alloc!(buffer, UInt8, 3000)
    end
    @test FirstTouch.live[] > before + 10^6
    FirstTouch.free(buffer)
    @test FirstTouch.live[] == before
    # Without a slab, as after that or in a precompiled package, a buffer gets one.
    @test total([1, 2], buffer) == 5
    FirstTouch.free(buffer)
    @test FirstTouch.reset_buffer!(buffer).current == buffer.slabs[1] != C_NULL
    buffer.current = buffer.slab_end = buffer.slabs[1] = C_NULL
    for n in (1, 1000, 10^6)
        @test total(fill(1, n), buffer) == 2n
        @test length(buffer.slabs) == 1 && buffer.current == buffer.slabs[1]
    end
    FirstTouch.free(buffer)
    before = FirstTouch.live[]
    # A copy from another process lists the slabs that it had there, as null pointers.
    push!(buffer.slabs, C_NULL)
    push!(buffer.custom_slabs, (C_NULL, 10^6))
    FirstTouch.free(FirstTouch.reset_buffer!(buffer))
    @test FirstTouch.live[] == before
    buffer = SlabBuffer()
    other = deepcopy((5, buffer))[2]
    @test isempty(intersect(buffer.slabs, other.slabs))
    finalize(buffer)
    @test total([1, 2], other) == 5
end

@testset "an inner scope may return an array of an outer one" begin
    for buffer in (SlabBuffer{4096}(), AllocBuffer(10^6), CheckedBuffer()), inner in (1, 10, 10_000)
        @test 3 == @no_escape buffer begin
            a = @alloc(Int, 3)
            b = @no_escape buffer begin
                @alloc(Int, inner)
                a .= 1
            end
            sum(b)
        end
        for n in (1, 10, 10_000)
            @test_throws ErrorException @no_escape buffer begin
                @alloc(Int, inner)
                @alloc(Int, n)
            end
        end
        isa(buffer, CheckedBuffer) || @test buffer isa AllocBuffer ? buffer.offset == 0 : length(buffer.slabs) == 1
    end
end

@testset "what stands on an array may not leave either" begin
    x = collect(1.0:4)
    for leave in (a -> view(a, 1:2), a -> a', a -> (1, a), a -> (first = 1, second = (a, 2)), a -> reinterpret(Int, a),
                  a -> transpose(view(a, 2:3)), a -> PermutedDimsArray(reshape(a, 2, 2), (2, 1)))
        @test_throws ErrorException @no_escape begin
            a = @alloc(Float64, 4)
            leave(a)
        end
        @test @no_escape(begin
            @alloc(Float64, 4)
            leave(x)
        end) == leave(x)
        @test 10 == @no_escape begin
            a = @alloc(Float64, 4)
            a .= x
            @no_escape begin
                @alloc(Float64, 4)
                leave(a)
            end
            sum(a)
        end
    end
    buffer = SlabBuffer()
    two(x) = @no_escape buffer begin
        y = @alloc(Float64, 4)
        y .= x
        (sum(y), x')
    end
    @test two(x) == (10, x')
    @test @allocated(two(x)) <= 64
end

macro hidden_return(value)
    esc(:(return $value))
end
macro vector(T, n)
    esc(:(@alloc($T, $n)))
end
macro hidden_goto(label)
    esc(:(@goto $label))
end
expands(block) = FirstTouch.Internals._no_escape_macro(:(default_buffer()), block, @__MODULE__)
@testset "no way out but the end" begin
    for block in (:(return 1), :(@hidden_return 1), :(@goto out), :(@hidden_goto out), :(@label out), :(break),
                  :(x && continue), :(@inbounds break))
        @test_throws ErrorException expands(block)
    end
    @test_throws ErrorException @no_escape begin
        @alloc(Int, 3)
    end
    @test_throws Exception @no_escape begin
        fetch(@async (@alloc(Int, 3); nothing)) # the buffer belongs to the task of the scope
    end
    @test 4 == @no_escape begin # loops inside may
        for i in 1:9
            i < 3 && continue
            @inbounds(while true; break; end)
            i == 4 && break
        end
        4
    end
    @test [1, 4, 9] == @no_escape begin # and so may functions
        square(x) = (x < 0 && return 0; @alloc(Int, 1) .= x^2; return x^2)
        y = @alloc(Int, 3)
        map!(x -> (return square(x)), y, 1:3)
        Threads.@threads for i in 1:3 # becomes a function that returns
            y[i] = y[i]
        end
        late = :(return 1)
        foreach(y) do x
            x > 4 && return
        end
        copy(y)
    end
    @test_throws ErrorException expands(:(f(x) = 1; return 2))
    @test_throws LoadError @eval @alloc(Int, 3)
    FirstTouch.reset_buffer!()
end

function variables(x)
    @no_escape begin
        y = @alloc(Int, length(x))
        y .= x
        s = sum(y)
        nothing
    end
    return s
end
@testset "the block is no scope of variables" begin
    @test variables([1, 2, 3]) == 6
    x = [1]
    @test @allocated(variables(x)) == 0
end

@testset "markers" begin
    @test 6 == @no_escape begin
        sum(FirstTouch.@alloc(Int, 3) .= 2)
    end
    @test 6 == FirstTouch.@no_escape begin
        @inbounds sum(@alloc(Int, 3) .= 2)
    end
    @test 6 == @no_escape begin # that another macro produces
        sum(@inbounds(@vector(Int, 3)) .= 2)
    end
    plain = Module(:Plain) # where nothing is imported
    Core.eval(plain, :(import FirstTouch))
    @test 6 == Core.eval(plain, :(FirstTouch.@no_escape begin
        sum(@alloc(Int, 3) .= 2)
    end))
    @test @no_escape(begin @alloc_ptr(0x10) isa Ptr end)
    @test 9 == @no_escape begin
        x = @alloc(Int, 3)
        x .= 1
        y = @no_escape begin
            sum(@alloc(Int, 3) .= x .+ 1)
        end
        sum(x) + y
    end
end

@testset "tasks" begin
    @test default_buffer() === default_buffer()
    @test default_buffer() !== fetch(@async default_buffer())
    buffer = SlabBuffer()
    @test with_buffer(default_buffer, buffer) === buffer
    fixed = AllocBuffer()
    @test with_buffer(() -> default_buffer(AllocBuffer), fixed) === fixed
    @test_throws MethodError with_buffer(default_buffer, AllocBuffer(Vector{Int}(undef, 10)))
    @test fetch.([@async(total_default(fill(i, 100))) for i in 1:10]) == [100 * (i + 1) for i in 1:10]
end

mutable struct Stack
    memory::Vector{UInt8}
    top::Int
end
FirstTouch.alloc_ptr!(s::Stack, n::Int)::Ptr{Cvoid} = (s.top += n; pointer(s.memory) + s.top - n)
FirstTouch.checkpoint_save(s::Stack) = (s, s.top)
FirstTouch.checkpoint_restore!((s, top)::Tuple{Stack,Int}) = (s.top = top; nothing)
@testset "a buffer of one's own" begin
    stack = Stack(Vector{UInt8}(undef, 1000), 0)
    @test total(collect(1:30), stack) == 495
    @test stack.top == 0
end

# An assignment of an array to itself is right, or an error.
@testset "overlap" begin
    buffer = SlabBuffer()
    function changed(change)
        @no_escape buffer begin
            y = @alloc(Int, 3, 3)
            y .= reshape(1:9, 3, 3)
            change(y)
            copy(y)
        end
    end
    for change in (y -> y .= y', y -> (@views y[2:end, :] .= y[1:end-1, :]), y -> (v = vec(y); v .= @view v[end:-1:1]),
                   y -> y .= y .+ y', y -> y' .= y, y -> vec(view(y, 3:-1:1, :)) .= vec(y), y -> y'[:, :] = y,
                   y -> vec(view(y, 3:-1:1, :)) .= vec(view(y, 1:3, :)), y -> copyto!(vec(view(y', :, :)), vec(y)))
        @test_throws ArgumentError changed(change)
    end
    for change in (y -> y .= copy(y'), y -> y .= permutedims(y), y -> (v = vec(y); v .= v[end:-1:1]),
                   y -> (@views y[1:2, :] .= y[3:3, :] .+ 1), y -> y .= 1:3, y -> y .= y .* 2 .+ y,
                   y -> y' .= 2 .* y', y -> view(y', 1:1, :) .= view(y', 3:3, :))
        expected = reshape(collect(1:9), 3, 3)
        change(expected)
        @test changed(change) == expected
    end
    FirstTouch.reset_buffer!(buffer)
end
@testset "empty arrays overlap nothing" begin
    @no_escape begin
        x = @alloc(Int, 0, 3)
        y = @alloc(Int, 1, 3)
        y .= 1
        x .= y
        view(x, :, 1:2) .= y[:, 1:2] .+ view(y, :, 2:3)
        @test isempty(x)
    end
end
function shift(x, buffer)
    @no_escape buffer begin
        y = @alloc(Int, length(x))
        z = @alloc(Int, length(x))
        z .= x
        y .= z
        @views y[1:2] .= y[3:4] .+ z[1:2]
        y .= y .* 2 .+ view(z, 1:4)
        sum(y)
    end
end
@testset "copyto! with positions" begin
    for (to, from) in ((2, 1), (1, 2))
        expected = copyto!(collect(1:10), to, collect(1:10), from, 9)
        @test expected == @no_escape begin
            y = @alloc(Int, 10)
            y .= 1:10
            copyto!(y, to, y, from, 9)
            @test_throws BoundsError copyto!(y, to, y, from, 10)
            @test_throws ArgumentError copyto!(y, 1, y, 1, -1)
            @test copyto!(y, 11, y, 11, 0) === y
            copy(y)
        end
    end
end
@testset "no overlap, no allocation" begin
    buffer = SlabBuffer()
    x = [1, 2, 3, 4]
    @test shift(x, buffer) == 44
    @test @allocated(shift(x, buffer)) == 0
end
