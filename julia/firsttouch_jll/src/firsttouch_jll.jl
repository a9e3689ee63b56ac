"""
    firsttouch_jll

Stands in for the binary package of the same name where FirstTouch is used from a checkout: it has the names that a JLL
has, and finds the library that was built there.
"""
module firsttouch_jll

using Libdl

export libfirsttouch

"By the name that the dynamic linker resolves to the library that `__init__` has loaded."
const libfirsttouch = Sys.iswindows() ? "libfirsttouch.dll" : "libfirsttouch.so.0.1"

"Where the library that is in use lies."
libfirsttouch_path = ""

# In order: what the user says, what was built in this checkout, the system's.
function candidates()
    haskey(ENV, "FIRSTTOUCH_LIBRARY") && return [ENV["FIRSTTOUCH_LIBRARY"]]
    built = normpath(@__DIR__, "..", "..", "..", "target", "c", libfirsttouch)
    return isfile(built) ? [built, libfirsttouch] : [libfirsttouch]
end

function __init__()
    for candidate in candidates()
        handle = dlopen(candidate; throw_error = false)
        handle === nothing && continue
        global libfirsttouch_path = dlpath(handle)
        return
    end
    error("cannot load libfirsttouch: tried ", join(candidates(), ", "), ". Build it with `make c-library`, or set ",
          "FIRSTTOUCH_LIBRARY to the path of ", libfirsttouch)
end

end
