# Byte counts as text, in both directions.

const UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

function format_bytes(bytes::Integer)
    value = Float64(bytes)
    unit = 1
    while value >= 1024 && unit < length(UNITS)
        value /= 1024
        unit += 1
    end
    text = isinteger(value) ? string(Int(value)) : string(round(value; digits = 1))
    return string(text, ' ', UNITS[unit])
end

const FACTORS = Dict("" => 1, "B" => 1, "KIB" => 2^10, "MIB" => 2^20, "GIB" => 2^30, "TIB" => 2^40, "K" => 2^10,
                     "M" => 2^20, "G" => 2^30, "T" => 2^40, "KB" => 10^3, "MB" => 10^6, "GB" => 10^9, "TB" => 10^12)

# A number of bytes, or `nothing` where the text is none. It may be too large for an `Int`.
function tryparse_bytes(text::AbstractString)
    parts = match(r"^\s*([0-9_]*\.?[0-9]+)\s*([A-Za-z]*)\s*$", text)
    factor = parts === nothing ? nothing : get(FACTORS, uppercase(parts[2]), nothing)
    return factor === nothing ? nothing : round(parse(BigFloat, replace(parts[1], "_" => "")) * factor)
end
