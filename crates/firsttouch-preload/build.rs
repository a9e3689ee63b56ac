//! How the library is linked.

use std::env::var;

fn main() {
    if var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The loader runs our constructor before every other: fork handlers that are registered first are called last.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,initfirst");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
