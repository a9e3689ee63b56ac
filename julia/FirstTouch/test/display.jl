# What the REPL shows, on a terminal of 80 columns.
on_terminal(value) = sprint(show, MIME("text/plain"), value; context = :displaysize => (24, 80))
fits(text) = all(line -> length(line) <= 80, split(text, '\n'))

p = pool()
B = Vector{Int}(p, 1000)
slab, fixed = SlabBuffer(), AllocBuffer(Vector{Int}(p, 1000))
deep = limited(filled(pool(pages(huge = "thp", populate = true, numa = 0), max_idle = "1 GiB")), "4 GiB")
for value in (p, malloc, calloc, MemAlign(2^16), numa(0), slab, fixed, CheckedBuffer(), default_buffer(),
              MallocAllocator{FirstTouch.WideningByteCalculator}())
    @test fits(on_terminal(value)) && !occursin("Ptr", on_terminal(value))
end

@test on_terminal(MemAlign(64)) == "MemAlign(64)"
@test repr(eval(Meta.parse(repr(deep)))) == repr(deep)

@test repr(slab) == "SlabBuffer{1048576}(0 bytes in use, slabs: 1, blocks: 0)"
FirstTouch.alloc!(slab, UInt8, 2^20 - 1)
FirstTouch.alloc!(slab, UInt8, 1024)
FirstTouch.alloc!(slab, UInt8, 2^21)
@test repr(slab) == "SlabBuffer{1048576}(3.001 MiB in use, slabs: 2, blocks: 1)"
FirstTouch.free(slab)
@test repr(slab) == "SlabBuffer{1048576}(no slab)"
FirstTouch.alloc!(fixed, Int, 10)
@test repr(fixed) == "AllocBuffer{Array}(80 bytes of 7.812 KiB in use)"

p = pool()
finalize(p)
@test repr(p) == "Allocator(finalized)"
@test_throws ArgumentError Vector{Int}(p, 3)
@test_throws ArgumentError stats(p)
