# 30 integers: scratch memory, the heap, and a bump written by hand. All take turns in each of many rounds, so that they meet
# the same noise, and the first one runs twice in a round: what its second row differs by from 1 is noise.
using FirstTouch

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

const BY_HAND = repeated(by_hand, HAND)
const KINDS = ["by hand" => BY_HAND, "`AllocBuffer`" => repeated(in_scratch, FIXED),
               "`SlabBuffer`" => repeated(in_scratch, SLAB), "the default buffer" => repeated(in_default),
               "the heap" => repeated(on_heap), "by hand, again" => BY_HAND]
const ROUNDS = [Float64[] for _ in KINDS]
foreach(kind -> kind.second(), KINDS) # compiles it
const FINISH = time() + 3
while time() < FINISH
    foreach((times, kind) -> push!(times, @elapsed kind.second()), ROUNDS, KINDS)
end

println("30 integers, for one evaluation:\n\n| | fastest | ratio | ratio of medians |\n|---|---|---|---|")
middle(times) = sort(times)[cld(length(times), 2)]
shown(number) = string(round(number; sigdigits = 3))
for (times, (name, _)) in zip(ROUNDS, KINDS)
    ratios = [shown(of(times) / of(ROUNDS[1])) for of in (minimum, middle)]
    println("| ", join((name, shown(1e9 * minimum(times) / TIMES) * " ns", ratios...), " | "), " |")
end
println("\nAllocated bytes: `AllocBuffer` ", @allocated(in_scratch(X, ANY, FIXED)), ", `SlabBuffer` ",
        @allocated(in_scratch(X, ANY, SLAB)), ", default ", @allocated(in_default(X, ANY)), ", heap ",
        @allocated(on_heap(X, ANY)))
