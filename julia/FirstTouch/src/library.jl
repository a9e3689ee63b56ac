# Finds libfirsttouch when the package is loaded. Calls then name it by its soname, which the dynamic linker resolves to
# the library that is loaded already.

const libfirsttouch = "libfirsttouch.so.0.1"

"The path of the library in use."
const library_path = Ref("")

# In order: what the user says, what was built in this checkout, the JLL where the environment has it, the system's.
function library_candidates()
    haskey(ENV, "FIRSTTOUCH_LIBRARY") && return [ENV["FIRSTTOUCH_LIBRARY"]]
    candidates = [normpath(@__DIR__, "..", "..", "..", "target", "c", libfirsttouch)]
    filter!(isfile, candidates)
    jll = Base.identify_package("firsttouch_jll")
    isempty(candidates) && jll !== nothing && push!(candidates, Base.require(jll).libfirsttouch_path)
    push!(candidates, libfirsttouch)
end

function load_library()
    candidates = library_candidates()
    for candidate in candidates
        handle = dlopen(candidate; throw_error = false)
        handle === nothing && continue
        version = unsafe_string(ccall(dlsym(handle, :firsttouch_version), Cstring, ()))
        VersionNumber(version) >= v"0.1" ||
            error("$candidate is firsttouch $version: this package needs 0.1 or newer")
        library_path[] = dlpath(handle)
        return
    end
    error("cannot load libfirsttouch: tried ", join(candidates, ", "), ". Build it with `make c-library`, or set ",
          "FIRSTTOUCH_LIBRARY to the path of ", libfirsttouch)
end
