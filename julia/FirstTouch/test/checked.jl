# Arrays that are used after their scope, with and without the mode that finds them.
kept = Ref{Any}()
buffer = CheckedBuffer(SlabBuffer{16_384}())
@no_escape buffer begin
    outer = @alloc(Int, 3)
    @no_escape buffer begin
        kept[] = @alloc(Int, 3)
        kept[] .= 7
        outer .= kept[]
        nothing
    end
    @test_throws ErrorException kept[][1]
    @test_throws ErrorException kept[][1] = 2
    @test_throws ErrorException sum(kept[])
    @test_throws ErrorException pointer(kept[])
    @test sum(outer) == 21
    kept[] = outer
    nothing
end
@test_throws ErrorException kept[][1]
@test_throws ErrorException @no_escape buffer begin
    @alloc(Int, 3)
end

keep_one() = @no_escape begin
    kept[] = @alloc(Int, 3)
    nothing
end
keep_one()
@test (kept[][1] = 1) == 1 # nobody notices
@eval FirstTouch checking() = true
Base.invokelatest(keep_one)
@test_throws ErrorException kept[][1]
@eval FirstTouch checking() = false
Base.invokelatest(keep_one)
@test (kept[][1] = 1) == 1

# A scope that an exception leaves is closed with the scope around it, which is closed as well.
buffer = CheckedBuffer()
outer, inner = Ref{Any}(), Ref{Any}()
@no_escape buffer begin
    outer[] = @alloc(Int, 3)
    try
        @no_escape buffer begin
            inner[] = @alloc(Int, 3)
            error("left by an exception")
        end
    catch
    end
    outer[] .= 1
    nothing
end
@test_throws ErrorException outer[][1]
@test_throws ErrorException inner[][1]
@no_escape buffer begin
    outer[] = @alloc(Int, 3)
    FirstTouch.reset_buffer!(buffer)
end
@test_throws ErrorException outer[][1]
@no_escape buffer begin
    FirstTouch.reset_buffer!(buffer)
    inner[] = @alloc(Int, 3) # belongs to the scope around the reset
    nothing
end
@test_throws ErrorException inner[][1]
# A late array as the value of a scope does not keep the scope from ending.
start = buffer.buffer.current
@test_throws ErrorException @no_escape buffer begin
    @alloc(Int, 3)
    @no_escape buffer begin
        inner[] = @alloc(Int, 3)
        nothing
    end
    inner[]
end
@test buffer.buffer.current == start
