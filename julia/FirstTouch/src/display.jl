# How results and allocators are displayed.

# Results have a `title`, and `rows`: the name and the value of each field that says something.
abstract type Figures end

Base.show(io::IO, figures::Figures) = print(io, nameof(typeof(figures)), '(', title(figures), ')')
function Base.show(io::IO, ::MIME"text/plain", figures::Figures)
    print(io, title(figures))
    width = mapreduce(row -> length(row[1]), max, rows(figures); init = 0)
    for (name, value) in rows(figures)
        print(io, "\n  ", rpad(name, width), "  ", value)
    end
end

words(field::Symbol) = replace(string(field), '_' => ' ')
counted(n, word) = string(n, ' ', word, n == 1 ? "" : "s")

# An expression in lines that end at commas; such lines can be read back.
function print_wrapped(io::IO, text)
    width, column = displaysize(io)[2], 0
    for part in split(text, r"(?<=, )")
        column > 0 && column + length(rstrip(part)) > width && (print(io, "\n    "); column = 4)
        print(io, part)
        column += length(part)
    end
end
