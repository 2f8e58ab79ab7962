//! Tests whether the system has large pages left; its settings do not show this.

use std::{
    fs,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use super::{
    origin::Origin,
    page::{LARGE_PAGE, PAGE},
    reservation::Segment,
    slice::SegmentWords,
};

/// Returns whether the system has just provided a large page of memory that processes share.
/// Symmetric heaps of processes request such pages. `None` if the system does not report it.
#[must_use]
pub fn obtains_large_page() -> Option<bool> {
    let segment = Segment::reserve(LARGE_PAGE, Origin::Shared, "a trial of large pages").ok()?;
    segment.let_pages_be_large(0..LARGE_PAGE);
    let segment = Arc::new(segment);
    SegmentWords::new(&segment, 0, 1)[0].store(1, Relaxed); // touches the page
    let at = segment.at(0, PAGE).addr();
    let mappings = fs::read_to_string("/proc/self/smaps").ok()?;
    let mut lines = mappings.lines().skip_while(|line| !begins_mapping_of(line, at));
    let large = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:"))?;
    Some(large.split_whitespace().next()? != "0")
}

/// Returns whether a line of `smaps` begins the mapping that contains an address.
fn begins_mapping_of(line: &str, at: usize) -> bool {
    let hex = |text: &str| usize::from_str_radix(text, 16).ok();
    let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
    let range = range.and_then(|(start, end)| Some(hex(start)?..hex(end)?));
    range.is_some_and(|range| range.contains(&at))
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri))))]
mod tests {
    use super::*;
    use consort_machine::usage::LargePages;

    #[test]
    fn system_that_forbids_large_pages_provides_none() {
        let pages = LargePages::of_system();
        let is_possible = pages.is_some_and(|pages| pages.may_be_shared());
        assert!(is_possible || obtains_large_page() != Some(true));
    }

    #[test]
    fn mappings_are_found_by_address() {
        let line = "7f00-8f00 rw-s 00000000 00:01 4 /memfd:segment (deleted)";
        assert!(begins_mapping_of(line, 0x7f00) && begins_mapping_of(line, 0x8eff));
        assert!(!begins_mapping_of(line, 0x7eff) && !begins_mapping_of(line, 0x8f00));
        assert!(!begins_mapping_of("Size: 4 kB", 0x7f00));
    }
}
