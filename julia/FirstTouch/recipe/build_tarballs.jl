# BinaryBuilder's recipe of firsttouch_jll: `julia build_tarballs.jl --verbose x86_64-linux-gnu`.
using BinaryBuilder

name = "firsttouch"
version = let project = joinpath(@__DIR__, "..", "Project.toml")
    VersionNumber(match(r"^version = \"(.*)\"$"m, read(project, String))[1])
end
# The checkout that this file is in.
sources = [DirectorySource(normpath(@__DIR__, "..", "..", ".."); target = "firsttouch")]

script = raw"""
cd ${WORKSPACE}/srcdir/firsttouch
make -C crates/firsttouch-c install TARGET=${rust_target} PREFIX=${prefix} CARGO_TARGET_DIR=${WORKSPACE}/target \
    BUILD=${WORKSPACE}/target/c
install_license LICENSE-MIT LICENSE-APACHE
"""

platforms = [Platform("x86_64", "linux"; libc = "glibc"), Platform("aarch64", "linux"; libc = "glibc"),
             Platform("x86_64", "windows")]
products = [LibraryProduct("libfirsttouch", :libfirsttouch)]

build_tarballs(ARGS, name, version, sources, script, platforms, products, Dependency[];
               compilers = [:c, :rust], julia_compat = "1.6")
