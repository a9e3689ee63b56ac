//! Collapses small pages into huge ones synchronously.

use crate::os::{self, Errno};
use crate::pages::receipt::Reason;
use crate::pages::touch::GoOn;

/// The number of attempts for a page that is pinned for a moment.
const TRIES: usize = 3;

/// Collapses the whole huge pages in a range. Returns the bytes that are huge now, and why others are not.
pub(crate) fn collapse(range: (usize, usize), go_on: GoOn<'_>) -> (usize, Option<Reason>) {
    let Some(page) = os::huge_page_size() else { return (0, Some(Reason::Unsupported)) };
    let (start, end) = (range.0.next_multiple_of(page), (range.0 + range.1) & !(page - 1));
    if start >= end {
        return (0, Some(Reason::Small));
    }
    let (mut huge, mut why_not) = (0, None);
    for address in (start..end).step_by(page) {
        let done = (0..TRIES).find_map(|attempt| match os::collapse(address, page) {
            Err(Errno::AGAIN) => None,
            // A heap may have taken the advice away when it split the page.
            Err(Errno::INVALID) if attempt == 0 && os::advise_huge(address, page).is_ok() => None,
            done => Some(done),
        });
        match done {
            Some(Ok(())) => huge += page,
            Some(Err(error)) => why_not = Some(Reason::of(error)),
            None => why_not = Some(Reason::of(Errno::AGAIN)),
        }
        if !go_on(address - start) {
            return (huge, Some(Reason::Interrupted));
        }
    }
    (huge, why_not)
}
