//! Residency: the states of the pages of a range. No query touches a page or needs privileges.
//!
//! [`footprint()`] computes the pages of an array. [`query()`] determines their states from the best source that the
//! kernel and the process offer, and names that source; what no source tells is reported as unknown, never guessed.
//! [`summarize`] adds the states up. Other threads keep running: each state is exact for one moment, but not all for
//! the same.

mod footprint;
mod mappings;
mod nodes;
mod query;
mod refine;
mod runs;
mod sources;

pub use footprint::footprint;
pub use mappings::{Mapping, mappings_in};
pub use nodes::visit_nodes;
pub use query::{Figure, Residency, ResidencySummary, query, summarize};
pub use runs::{PageRun, PageRuns, PageState, StateSource};
