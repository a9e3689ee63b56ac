# 30 integers: scratch memory, the heap, and a bump written by hand.
using FirstTouch
include("timing.jl")

mutable struct Hand
    memory::Vector{UInt8}
    offset::Int
end

function by_hand(x, ::Val, hand)
    saved = hand.offset
    n = length(x)
    result = GC.@preserve hand begin
        hand.offset + 8n > length(hand.memory) && error("full")
        y = FirstTouch.ScratchArray{Int,1}(Ptr{Int}(pointer(hand.memory)) + hand.offset, (n,), hand)
        hand.offset += 8n
        y .= x .+ 1
        sum(y)
    end
    hand.offset = saved
    return result
end

function in_scratch(x, ::Val, buffer)
    @no_escape buffer begin
        y = @alloc(Int, length(x))
        y .= x .+ 1
        sum(y)
    end
end

function in_default(x, ::Val)
    @no_escape begin
        y = @alloc(Int, length(x))
        y .= x .+ 1
        sum(y)
    end
end

on_heap(x, ::Val) = sum(x .+ 1)

# Many inputs, and a copy of the code for each `Val`: where they lie in memory decides up to a third of the time.
const INPUTS = [rand(1:10, 30) for _ in 1:256]
const COPIES = ntuple(Val, 8)
const X, ANY = INPUTS[1], COPIES[1]
const HAND = Hand(Vector{UInt8}(undef, 2^20), 0)
const FIXED = AllocBuffer()
const SLAB = SlabBuffer()
const TIMES = 10 * length(INPUTS) * length(COPIES)
function repeated_copy(f::F, copy::Val, arguments...) where {F}
    total = 0
    for _ in 1:10, x in INPUTS
        total += f(x, copy, arguments...)
    end
    return total
end
repeated(f, arguments...) = () -> sum(copy -> repeated_copy(f, copy, arguments...), COPIES)

compare("30 integers, for one evaluation", "by hand" => repeated(by_hand, HAND),
        "`AllocBuffer`" => repeated(in_scratch, FIXED), "`SlabBuffer`" => repeated(in_scratch, SLAB),
        "the default buffer" => repeated(in_default), "the heap" => repeated(on_heap); per = TIMES, seconds = 3.0)
println("\nAllocated bytes: `AllocBuffer` ", @allocated(in_scratch(X, ANY, FIXED)), ", `SlabBuffer` ",
        @allocated(in_scratch(X, ANY, SLAB)), ", default ", @allocated(in_default(X, ANY)), ", heap ",
        @allocated(on_heap(X, ANY)))
