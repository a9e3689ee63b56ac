# Runs the examples of all docstrings: each `julia>` input in a module of its own, with its output compared.
function examples(text)
    found = Vector{Tuple{String,String}}[]
    for block in eachmatch(r"```jldoctest\n(.*?)```"s, text)
        pairs = Tuple{String,String}[]
        for part in split(block[1], r"^julia> "m)[2:end]
            lines = split(part, '\n')
            more = findfirst(line -> !startswith(line, "       "), lines[2:end])
            input = join(lines[1:more], '\n')
            push!(pairs, (input, strip(join(lines[more+1:end], '\n'))))
        end
        push!(found, pairs)
    end
    return found
end

function output(input, scope)
    value = try
        include_string(scope, input)
    catch error
        error = error isa LoadError ? error.error : error
        return "ERROR: " * sprint(showerror, error)
    end
    (value === nothing || endswith(input, ';')) && return ""
    return sprint(show, MIME("text/plain"), value; context = :module => scope)
end

function matches(expected, actual)
    endswith(expected, "[...]") || return expected == actual
    return startswith(actual, strip(chop(expected, tail = 5)))
end

count = 0
for (folder, _, files) in walkdir(joinpath(@__DIR__, "..", "src")), file in files
    for pairs in examples(read(joinpath(folder, file), String))
        scope = Module(:Example)
        Core.eval(scope, :(using FirstTouch))
        for (input, expected) in pairs
            global count += 1
            actual = output(input, scope)
            matches(expected, actual) || println(stderr, file, ": julia> ", input, '\n', actual)
            @test matches(expected, actual)
        end
    end
end
@test count > 40

# The README's statements in order; what only the kernel refuses is no failure.
function statements(code)
    found, position = Any[], 1
    while position <= lastindex(code)
        statement, position = Meta.parse(code, position)
        statement === nothing || push!(found, statement)
    end
    return found
end
readme = read(joinpath(@__DIR__, "..", "README.md"), String)
reader = Module(:Reader)
for block in eachmatch(r"```julia\n(.*?)```"s, readme), statement in statements(block[1])
    failure = try
        Core.eval(reader, statement)
        nothing
    catch error
        error isa ErrorException && startswith(error.msg, "cannot ") ? nothing : error
    end
    failure === nothing || println(stderr, "README: ", statement, '\n', failure)
    @test failure === nothing
end
@test reader.f([1, 2, 3]) == 9
