//! Locking a mapping into memory.

use crate::error::{AllocError, Limit};
use crate::failure;
use crate::os;
use crate::pages::receipt::{Outcome, Reason, Receipt};

/// Locks a mapping.
///
/// # Errors
/// If the limit does not allow it.
pub(super) fn lock((address, size): (usize, usize), receipt: &mut Receipt) -> Result<(), AllocError> {
    if os::lock(address, size).is_ok() {
        receipt.lock = Outcome::Granted;
        return Ok(());
    }
    receipt.lock = Outcome::Refused(Reason::LockLimit);
    let limit = os::lock_limit().unwrap_or(usize::MAX);
    let failed = AllocError::new(receipt.asked, Limit::Locked { limit });
    failure::explain(
        failed,
        format!(
            "{size} bytes could not be locked into memory: RLIMIT_MEMLOCK allows this process {limit} \
             bytes, other locked memory included (ulimit -l, or LimitMEMLOCK= of its service)"
        ),
    );
    Err(failed)
}
