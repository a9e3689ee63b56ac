//! Placement if the system refuses: receipts or errors, and nothing is lost.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)] // Safety: blocks go back to where they came from, once.

mod common;

use common::alone::alone;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::{Allocator, Limit, Request};
use firsttouch::failure::last_reason;
use firsttouch::os::{Call, fail_after, headroom, huge_page_size};
use firsttouch::pages::placement::{Page, Placement, Reason};
use firsttouch::scratch::Buffer;
use firsttouch::sources::Pages;
use std::sync::Arc;

const SIZE: usize = 8 << 20;

/// Large enough for huge pages, whatever their size.
fn large() -> usize {
    SIZE.max(2 * huge_page_size().unwrap_or(0))
}

fn thp(strict: bool) -> Placement {
    Placement { page: Page::Transparent, strict, ..Placement::default() }
}

#[test]
fn advice_that_is_refused_is_on_the_receipt() {
    alone("advice_that_is_refused_is_on_the_receipt", || {
        let pages = Pages::placed(thp(false));
        fail_after(&[Call::AdviseHuge], 0, i64::MAX);
        let block = pages.allocate(Request::bytes(large())).unwrap();
        let strict = Pages::placed(thp(true)).allocate(Request::bytes(large())).unwrap_err();
        fail_after(&[], 0, 0);
        assert_eq!(strict.limit, Limit::Placement);
        let (start, receipt) = pages.receipt(block.address.as_ptr() as usize + 5000).unwrap();
        assert_eq!((start, receipt.page), (block.address.as_ptr() as usize, Page::Base));
        assert!(matches!(receipt.refused, Some((Page::Transparent, Reason::Errno(_)))));
        assert!(receipt.why_not()[0].starts_with("huge='thp': the kernel refused"));
        // SAFETY: it came from there, and goes back once.
        unsafe { pages.deallocate(block.address) };
        assert!(pages.receipt(start).is_none());
    });
}

#[test]
fn who_stands_on_it_keeps_the_reason() {
    alone("who_stands_on_it_keeps_the_reason", || {
        let pages = || Pages::placed(Placement { populate: Some(0), ..Placement::default() });
        let buffer = Buffer::growing(pages(), Buffer::CHUNK);
        let above: [Arc<dyn Allocator>; 2] = [Pool::over(pages(), Options::default()), buffer];
        for allocator in above {
            let error = allocator.allocate(Request::bytes(headroom() + (256 << 20))).unwrap_err();
            if matches!(error.limit, Limit::Memory(_) | Limit::Bound(_)) {
                continue; // on a machine where little is in use the kernel speaks first
            }
            assert!(matches!(error.limit, Limit::Available(_)));
            let reason = last_reason().unwrap();
            assert!(reason.contains("(populate)"), "{}: {reason}", allocator.expression());
        }
    });
}
