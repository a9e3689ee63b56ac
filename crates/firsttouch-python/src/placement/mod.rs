//! Placement: pages that are placed, their receipts, touching and moving what exists, and what there is of nodes.

mod making;
mod moving;
mod nodes;
mod receipts;
mod run_on;
mod touching;
mod waiting;

use pyo3::prelude::*;

pub use receipts::receipt_dict;
pub use waiting::raised;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    waiting::register(module)?;
    making::register(module)?;
    receipts::register(module)?;
    touching::register(module)?;
    moving::register(module)?;
    nodes::register(module)?;
    run_on::register(module)
}
