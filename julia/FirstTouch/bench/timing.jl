# Ratios of times: candidates take turns in each of many rounds, so that all meet the same noise, and the first one runs
# twice in a round: what its second row differs by from 1 is noise.

function measure(candidates; seconds, rounds = 1000)
    times = [Float64[] for _ in candidates]
    foreach(candidate -> candidate.second(), candidates)
    finish = time() + seconds
    for _ in 1:rounds
        for (i, (_, work)) in enumerate(candidates)
            began = time_ns()
            work()
            push!(times[i], (time_ns() - began) / 1e9)
        end
        time() > finish && break
    end
    return times
end

function format_time(seconds)
    for (unit, size) in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
        seconds >= size && return string(round(seconds / size; sigdigits = 3), ' ', unit)
    end
    return string(round(seconds * 1e9; sigdigits = 3), " ns")
end
format_ratio(ratio) = string(round(ratio; sigdigits = 2))
middle(times) = sort(times)[cld(length(times), 2)]

# A Markdown table: the fastest round of each, and the fastest and the median round in units of the first row.
function compare(title, candidates::Pair...; per = 1, seconds = 1.0)
    again = candidates[1].first * ", again" => candidates[1].second
    all = Pair[candidates..., again]
    times = measure(all; seconds = seconds)
    println("\n", title, ":\n\n| | fastest | ratio | ratio of medians |\n|---|---|---|---|")
    for (i, (name, _)) in enumerate(all)
        println("| ", name, " | ", format_time(minimum(times[i]) / per), " | ",
                format_ratio(minimum(times[i]) / minimum(times[1])), " | ",
                format_ratio(middle(times[i]) / middle(times[1])), " |")
    end
end
