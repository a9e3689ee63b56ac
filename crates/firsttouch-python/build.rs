//! Tells the compiler whether the interpreter that the module is built for has a GIL (`cfg(Py_GIL_DISABLED)`).

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
