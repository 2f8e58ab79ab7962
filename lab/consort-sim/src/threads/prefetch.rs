//! The prefetcher of a core. It either follows strides within a page, or it fetches the next line
//! after a miss, and after the first use of a prefetched line (tagged prefetch, Smith 1982).

use super::{
    traffic::Kind,
    world::{Fetch, Page, World},
};
use crate::engine::Time;

/// The number of pages that a prefetcher follows at a time, and of lines whose first use it waits
/// for.
const PAGES: usize = 16;
/// The longest stride that it follows, in lines.
const LONGEST_STRIDE: i64 = 16;

impl World {
    /// Handles an access of a thread to a line, at the time `at`. `missed` says whether the thread
    /// had to wait for the line.
    pub(super) fn accessed(&self, thread: u32, line: u32, missed: bool, at: Time) {
        let Some(prefetch) = &self.costs.prefetch else { return };
        let Some((place, _)) = self.lines.at(line).place else { return };
        if prefetch.training == 0 {
            let mut unused = self.cores[self.thread(thread).core as usize].unused.borrow_mut();
            let first_use = unused.iter().position(|&other| other == line);
            if let Some(index) = first_use {
                unused.remove(index);
            }
            drop(unused);
            let arrives = missed || first_use.is_some();
            for by in (1..=i64::from(prefetch.ahead)).filter(|_| arrives) {
                self.prefetch(thread, line, by, false, at);
            }
            return;
        }
        if prefetch.pairs && missed {
            let other = if place.is_multiple_of(2) { 1 } else { -1 };
            self.prefetch(thread, line, other, false, at);
        }
        let core = &self.cores[self.thread(thread).core as usize];
        let mut pages = core.pages.borrow_mut();
        let first = line - place % prefetch.page_lines;
        let Some(mut page) = take_page(&mut pages, first) else {
            let new = Page { first, last: line, stride: 0, run: 0, fetched: 0, written: false };
            return pages.push(new);
        };
        let stride = i64::from(line) - i64::from(page.last);
        if stride != 0 {
            if stride == page.stride {
                page.run += 1;
            } else {
                (page.stride, page.run, page.fetched) = (stride, 0, 0);
            }
            page.last = line;
            page.fetched = (page.fetched - 1).max(0);
            if page.run + 1 >= prefetch.training && stride.abs() <= LONGEST_STRIDE {
                for step in page.fetched + 1..=i64::from(prefetch.ahead) {
                    let own = page.written && prefetch.for_ownership;
                    if !self.prefetch(thread, line, step * stride, own, at) {
                        break;
                    }
                    page.fetched = step;
                }
            }
        }
        pages.push(page);
    }

    /// Handles a write of a thread to a line: from now on the page is fetched for writing.
    pub(super) fn written(&self, thread: u32, line: u32) {
        let Some(prefetch) = &self.costs.prefetch else { return };
        let Some((place, _)) = self.lines.at(line).place else { return };
        let first = line - place % prefetch.page_lines;
        let mut pages = self.cores[self.thread(thread).core as usize].pages.borrow_mut();
        if let Some(page) = pages.iter_mut().find(|page| page.first == first) {
            page.written = true;
        }
    }

    /// Fetches the line that is `by` places further at a time, if it is on the same page. Returns
    /// `false` if the core has no prefetcher or waits for too many lines.
    fn prefetch(&self, thread: u32, line: u32, by: i64, own: bool, at: Time) -> bool {
        let Some(prefetch) = &self.costs.prefetch else { return false };
        let Some(line) = self.lines.neighbour(line, by, prefetch.page_lines) else { return true };
        let fetched = self.fetch_ahead(thread, line, own, at);
        if fetched == Some(true) {
            self.tally(thread).prefetched += 1;
            let mut unused = self.cores[self.thread(thread).core as usize].unused.borrow_mut();
            unused.truncate(PAGES - 1);
            unused.push_front(line);
        }
        fetched.is_some()
    }

    /// Fetches a line at the time `at`, unless the core has it or waits for it. Returns whether a
    /// fetch was needed, or `None` if the core waits for too many lines.
    pub(super) fn fetch_ahead(&self, thread: u32, line: u32, own: bool, at: Time) -> Option<bool> {
        let core = self.thread(thread).core;
        let kind = Kind::Prefetch { own: own && !self.costs.stores_at_home };
        let mut fetches = self.cores[core as usize].fetches.borrow_mut();
        let now = self.engine.now();
        fetches.retain(|fetch| fetch.done.is_none_or(|done| done > now));
        if self.has(&self.lines.at(line), core, kind) || fetches.iter().any(|f| f.line == line) {
            return Some(false);
        }
        if fetches.len() >= self.costs.in_flight {
            return None;
        }
        let transaction = self.begin(thread, line, kind, at);
        fetches.push(Fetch { line, transaction, done: None });
        Some(true)
    }
}

/// Removes a page from those that are followed, or makes room for it.
fn take_page(pages: &mut Vec<Page>, first: u32) -> Option<Page> {
    match pages.iter().position(|page| page.first == first) {
        Some(index) => Some(pages.remove(index)),
        None => {
            if pages.len() == PAGES {
                pages.remove(0);
            }
            None
        }
    }
}
