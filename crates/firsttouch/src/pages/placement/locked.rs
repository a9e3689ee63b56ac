//! Locking a mapping into memory.

use crate::error::{AllocError, Limit};
use crate::failure;
use crate::os;
use crate::pages::receipt::{Outcome, Reason, Receipt};
use crate::size::Bytes;

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
            "cannot lock {} into memory: RLIMIT_MEMLOCK allows this process {}, other locked memory included \
             (ulimit -l, or LimitMEMLOCK= of its service)",
            Bytes(size),
            Bytes(limit)
        ),
    );
    Err(failed)
}
