# The mode that finds arrays used after their scope, or beyond their end: there the program ends.
const USE = """
using FirstTouch
const kept = Ref{Any}()
BEFORE
@no_escape BUFFER begin
    kept[] = @alloc(Int, 8)
    kept[] .= 1
    INSIDE
    nothing
end
AFTER
"""

@testset "$what" for (what, changes, ends_well) in (
    ("used in time", ("BUFFER" => "CheckedBuffer()", "INSIDE" => "sum(kept[])"), true),
    ("used late", ("BUFFER" => "CheckedBuffer()", "AFTER" => "sum(kept[])"), false),
    ("written late", ("BUFFER" => "CheckedBuffer()", "AFTER" => "kept[][1] = 2"), false),
    ("used beyond its end", ("BUFFER" => "CheckedBuffer()", "INSIDE" => "unsafe_store!(pointer(kept[]), 1, 9)"), false),
    ("every scope", ("BEFORE" => "@eval FirstTouch checking() = true", "AFTER" => "sum(kept[])"), false),
    ("no scope", ("AFTER" => "sum(kept[])",), true))
    program = foldl(replace, (changes..., (word => "" for word in ("BEFORE", "BUFFER", "INSIDE", "AFTER"))...); init = USE)
    withenv("JULIA_LOAD_PATH" => join(Base.load_path(), ':')) do
        command = ignorestatus(`$(Base.julia_cmd()) --startup-file=no -e $program`)
        @test success(run(pipeline(command; stderr = devnull))) == ends_well
    end
end

# Blocks go back with their scope, also with one around it after an exception, and with a reset.
before = FirstTouch.live[]
buffer = CheckedBuffer()
@no_escape buffer begin
    outer = @alloc(Int, 3)
    try
        @no_escape buffer begin
            @alloc(Int, 3)
            error("left by an exception")
        end
    catch
    end
    outer .= 1
    @test length(buffer.blocks) == 2
    FirstTouch.reset_buffer!(buffer)
    @alloc(Int, 3)
    @test length(buffer.blocks) == 1
    nothing
end
@test isempty(buffer.blocks)
@test FirstTouch.live[] <= before
