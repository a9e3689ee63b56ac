# Ratios of times: the fastest of many rounds, in which the candidates take turns, so that all meet the same noise.

function fastest(candidates::Pair...; seconds = 1.0, rounds = 1000)
    best = Dict(name => Inf for (name, _) in candidates)
    foreach(candidate -> candidate.second(), candidates)
    finish = time() + seconds
    for _ in 1:rounds
        for (name, work) in candidates
            began = time_ns()
            work()
            best[name] = min(best[name], (time_ns() - began) / 1e9)
        end
        time() > finish && break
    end
    return best
end

function format_time(seconds)
    for (unit, size) in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
        seconds >= size && return string(round(seconds / size; sigdigits = 3), ' ', unit)
    end
    return string(round(seconds * 1e9; sigdigits = 3), " ns")
end

# A Markdown table, in units of the first row.
function table(title, candidates, best; per = 1)
    println("\n", title, "\n\n| | time | ratio |\n|---|---|---|")
    base = best[first(candidates).first]
    for (name, _) in candidates
        println("| ", name, " | ", format_time(best[name] / per), " | ", round(best[name] / base; sigdigits = 3), " |")
    end
end

function compare(title, candidates::Pair...; per = 1, seconds = 1.0)
    best = fastest(candidates...; seconds = seconds)
    table(title, candidates, best; per = per)
    return best
end
