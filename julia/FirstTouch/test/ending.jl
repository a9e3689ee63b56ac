# A process may end while tasks in other threads use arrays: those stay valid to the end.
const BUSY = """
using FirstTouch
function work(A, started)
    while true
        GC.safepoint()
        A .+= 1
        started[] = true
    end
end
@noinline start(A, started) = (A .= 0; Threads.@spawn work(A, started); nothing)
const started = Threads.Atomic{Bool}(false)
mutable struct Slow end
slow() = finalizer(_ -> ccall(:usleep, Cint, (Cuint,), 100_000), Slow())
before = slow()
start(ARRAY, started)
after = slow() # whichever order finalizers run in, one of these comes after the array's
while !started[]
    Libc.systemsleep(0.01) # does not yield, so that the task runs in another thread
    GC.safepoint() # or a collection that the other thread began would wait for this one
end
"""
const PATHS = join(Base.load_path(), ':')

@testset "at the end of a process, $array" for array in ("Vector{Int}(pages(), 10^5)", "Vector{Int}(calloc, 10^6)")
    program = replace(BUSY, "ARRAY" => array)
    withenv("JULIA_NUM_THREADS" => "2", "JULIA_LOAD_PATH" => PATHS) do
        @test success(pipeline(`$(Base.julia_cmd()) --startup-file=no -e $program`; stderr = stderr))
    end
end
