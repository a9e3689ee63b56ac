//! NumPy as this module sees it: its C interface, its plain dtypes, and its domain of tracemalloc.

pub mod abi;
pub mod c_api;
pub mod dtypes;
pub mod tracemalloc;
