//! Segments that other processes also map. In a forked child they become private copies, so that
//! the child's writes do not reach the parent's job.
//!
//! A copied page has the contents that the file has when the child first writes the page, or later.
//! A copy is as large as the segment, because the child may use all its pages. Core files do not
//! contain it.

#![expect(unsafe_code, reason = "maps memory in a forked child")]

use std::{
    fs::File,
    ptr::NonNull,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed},
    },
};

use crate::{
    roster::{Entry, Roster},
    system::memory,
};
use consort_machine::system::fork::{end_child, in_children_once};

/// The file pages that back a segment. Dropped before the pages are unmapped.
pub(super) struct BackingPages(Entry<MappedPages>);

struct MappedPages {
    base: AtomicPtr<u8>,
    bytes: usize,
    file: Arc<File>,
    /// The offset of the pages in the file.
    from: u64,
    /// Whether this process is a forked child that has copied the pages.
    is_copy: AtomicBool,
}

static MAPPED: Roster<MappedPages> = Roster::new();

impl BackingPages {
    /// Registers the pages of a file from an offset on, which are mapped at an address.
    pub(super) fn new(base: NonNull<u8>, bytes: usize, file: Arc<File>, from: u64) -> Self {
        static REGISTERED: Once = Once::new();
        in_children_once(&REGISTERED, copy_all);
        let base = AtomicPtr::new(base.as_ptr());
        let is_copy = AtomicBool::new(false);
        Self(MAPPED.enter(MappedPages { base, bytes, file, from, is_copy }))
    }

    /// Returns whether this process is a forked child that has copied the pages.
    pub(super) fn is_copy(&self) -> bool {
        self.0.is_copy.load(Relaxed)
    }
}

/// Turns all segments into copies in a child that has just been forked. Copies stay copies.
pub(crate) fn copy_all() {
    // SAFETY: this is the child's only thread, and it drops nothing here.
    for mapped in unsafe { MAPPED.all() } {
        let MappedPages { base, bytes, file, from, is_copy } = mapped;
        // A child of a child has copies of its parent's copies.
        if is_copy.swap(true, Relaxed) {
            continue;
        }
        // SAFETY: these pages of the file were mapped here. Static variables may replace some of
        // them; this child has those at other addresses.
        if unsafe { memory::part_from_others(base.load(Relaxed), *bytes, file, *from) }.is_err() {
            end_child(
                "consort: a forked child ends, since the memory that its parent's job shares with \
                 other processes could not be copied\n",
            );
        }
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri, consort_portable))))]
mod tests {
    use std::{
        fs,
        io::{self, Read as _, Write as _},
        sync::atomic::AtomicU64,
    };

    use super::super::{
        backing::{Backing, GrowableFile},
        origin::Origin,
        page::PAGE,
        reservation::Segment,
        slice::SegmentWords,
    };
    use super::*;
    use crate::system::process;
    use consort_machine::token::ProcessToken;

    /// A shared file with its end.
    struct End(ProcessToken, Arc<File>, AtomicU64);

    impl GrowableFile for End {
        fn is_current(&self) -> bool {
            self.0.is_current()
        }

        fn file(&self) -> &Arc<File> {
            &self.1
        }

        fn end(&self) -> &AtomicU64 {
            &self.2
        }
    }

    /// Returns the flags of a process's mapping at an address.
    fn flags(process: i32, address: *mut u8) -> String {
        let maps = fs::read_to_string(format!("/proc/{process}/smaps")).expect("the maps");
        let begin = format!("{:x}-", address.addr());
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&begin));
        lines.find(|line| line.starts_with("VmFlags:")).expect("a mapping").to_owned()
    }

    #[test]
    fn forked_child_has_copies_of_segment_and_extents_outside_of_core_files() {
        let file = Arc::new(process::memory_file().expect("a file"));
        let end = End(ProcessToken::current(), file, AtomicU64::new(0));
        let backing = Backing::File(Arc::new(end));
        let extent = backing.extend(PAGE, "a test").expect("an extent");
        let alone = Segment::reserve(PAGE, Origin::Shared, "a test").expect("a page");
        let segments = [extent.segment, alone].map(Arc::new);
        let words = segments.each_ref().map(|segment| SegmentWords::new(segment, 0, 1));
        for (segment, words) in segments.iter().zip(&words) {
            words[0].store(7, Relaxed);
            segment.put_in_cores(0..PAGE);
            assert!(!segment.is_copy());
        }
        let (mut said, mut says) = io::pipe().expect("a pipe");
        let (mut goes_on, lets_go_on) = io::pipe().expect("a pipe");
        // SAFETY: the child calls only async-signal-safe functions, and then `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(lets_go_on);
            let are_copies = segments.iter().zip(&words).all(|(segment, words)| {
                let before = words[0].swap(9, Relaxed);
                segment.is_copy() && before == 7
            });
            let is_refused = backing.extend(PAGE, "a test").is_err()
                && backing.map(extent.file_at, PAGE, "a test").is_err();
            let _ = says.write_all(&[u8::from(are_copies && is_refused)]);
            let _ = goes_on.read(&mut [0]); // until the other end is closed
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) };
        }
        let mut is_well = [0];
        said.read_exact(&mut is_well).expect("the child's word");
        let flags = segments.each_ref().map(|segment| flags(child, segment.at(0, PAGE)));
        drop(lets_go_on);
        // SAFETY: the child, whose status is not needed.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        assert_eq!(is_well, [1]);
        assert!(flags.iter().all(|flags| flags.contains(" dd")), "{flags:?}");
        assert!(words.iter().all(|words| words[0].load(Relaxed) == 7));
    }
}
