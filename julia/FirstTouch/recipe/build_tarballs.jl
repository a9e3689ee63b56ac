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
# For a named target, cargo builds into a folder of that name, where the makefile does not look.
export CARGO_TARGET_DIR=${WORKSPACE}/target
cargo build --locked --release --target ${rust_target} --package firsttouch-c
mkdir -p ${CARGO_TARGET_DIR}/release
ln -s ../${rust_target}/release/libfirsttouch_c.a ${CARGO_TARGET_DIR}/release/
CARGO_BUILD_TARGET=${rust_target} make -C crates/firsttouch-c install PREFIX=${prefix} LIBDIR=${libdir} \
    BUILD=${CARGO_TARGET_DIR}/c
install_license LICENSE-MIT LICENSE-APACHE
"""

platforms = [Platform("x86_64", "linux"; libc = "glibc"), Platform("aarch64", "linux"; libc = "glibc")]
products = [LibraryProduct("libfirsttouch", :libfirsttouch)]

build_tarballs(ARGS, name, version, sources, script, platforms, products, Dependency[];
               compilers = [:c, :rust], julia_compat = "1.6")
