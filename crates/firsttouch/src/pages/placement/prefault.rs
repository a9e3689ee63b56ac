//! Prefault: faults in all pages of a mapping.

#![allow(unsafe_code)] // Safety: the mapping is new, and stays until it is returned.

use super::available::{self, LOOK};
use super::{Placement, Populate, nodes};
use crate::error::{AllocError, Limit};
use crate::failure;
use crate::numa::policy::Orders;
use crate::os::Errno;
use crate::pages::page::page_bytes;
use crate::pages::receipt::{Outcome, Reason, Receipt};
use crate::pages::touch::{self, Job, Pattern, Way};
use crate::size::Bytes;

impl Placement {
    /// Faults in pages, by threads near the nodes that they come from.
    pub(super) fn make_real(
        &self,
        (address, size): (usize, usize),
        orders: Option<&Orders>,
        receipt: &mut Receipt,
    ) -> Result<(), AllocError> {
        available::enough(size, orders, receipt, "populate")?;
        let job = Job {
            address,
            size,
            step: page_bytes(receipt.page),
            way: Way::Write,
            threads: if let Populate::Threads(threads) = self.populate { Some(threads) } else { None },
            processors: orders.filter(|_| size >= LOOK).and_then(nodes::near),
            pattern: Pattern::Dynamic,
        };
        // SAFETY: the range was just mapped, and is not unmapped before this returns.
        match touch::around(self.progress.then_some(size), |go_on| unsafe { touch::make_real(job, go_on) }) {
            Ok(done) => (receipt.populate, receipt.threads) = (Outcome::Granted, done.threads),
            Err(Errno::INTERRUPTED) => receipt.populate = Outcome::Partly(Reason::Interrupted),
            Err(error) => {
                receipt.populate = Outcome::Refused(Reason::of(error));
                let failed = AllocError::new(receipt.asked, Limit::Errno(error.0));
                failure::explain(failed, format!("cannot populate {} (populate=): {}", Bytes(size), Reason::of(error)));
                return Err(failed);
            }
        }
        Ok(())
    }
}
