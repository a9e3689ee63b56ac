//! Selects the first of the requested page sizes that is available.

use super::{Page, Placement, strict_error};
use crate::error::AllocError;
use crate::failure;
use crate::layout::round_up;
use crate::numa::policy::Orders;
use crate::os;
use crate::pages::mapping::Mapper;
use crate::pages::receipt::Receipt;

impl Placement {
    /// Creates a mapping on the first page size that is available.
    pub(super) fn map_pages(
        &self,
        mapper: &mut dyn Mapper,
        size: usize,
        align: usize,
        orders: Option<&Orders>,
        receipt: &mut Receipt,
    ) -> Result<(usize, usize), AllocError> {
        for (at, &page) in self.pages.iter().enumerate() {
            let found = match page {
                Page::Base => break,
                Page::Transparent => mapper.transparent(size, align),
                Page::Explicit(bytes) => mapper.explicit(size, align, bytes, orders),
            };
            match found {
                Ok(mapping) => {
                    (receipt.page, receipt.bytes) = (page, mapping.1);
                    return Ok(mapping);
                }
                Err(reason) => receipt.refused[at.min(receipt.refused.len() - 1)] = Some((page, reason)),
            }
        }
        let refusal = receipt.refused.iter().flatten().find(|(_, reason)| reason.is_refusal());
        if self.strict
            && !self.pages.contains(&Page::Base)
            && let Some((page, reason)) = refusal
        {
            return Err(strict_error(size, &format!("huge={page}: {reason}")));
        }
        let bytes = round_up(size, os::page_size()).unwrap_or(size);
        let mapping = mapper.base(bytes, align.max(os::page_size())).map_err(|error| {
            let error = AllocError::new(size, os::why_refused(size, error));
            failure::remember(error);
            error
        })?;
        (receipt.page, receipt.bytes) = (Page::Base, mapping.1);
        Ok(mapping)
    }
}
