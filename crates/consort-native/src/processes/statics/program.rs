//! The places of the program's data, from the headers of its file.
//!
//! Data that the system writes once when it loads the program and then protects (`PT_GNU_RELRO`)
//! counts as read-only. A program without shared libraries (one that names no dynamic linker)
//! contains the C library. The C library's variables must stay private, because in a fork the C
//! library's own code runs before any handler of this library. Linkers keep the order of their
//! input, in which the C library comes last. This library has two variables that begin separate
//! pages. The data before them belongs to the program. The data after them is not moved.

#![expect(unsafe_code, reason = "reads the system's list of loaded objects")]

use std::{
    cell::UnsafeCell,
    ffi::{CStr, c_char},
    ops::Range,
    ptr::{from_ref, with_exposed_provenance},
};

use libc::{c_int, c_void, dl_phdr_info, size_t};

use crate::segment::page::PAGE;

/// Whole pages of the program's writable data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) pages: Range<usize>,
    /// The address at which zeros begin. Only touched pages of the zeros are copied.
    pub(super) zeros: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct WritableData {
    pub(super) chunks: Vec<Chunk>,
    /// Read-only data.
    pub(super) constants: Vec<Range<usize>>,
    /// Whether this library is in the program's file, or was loaded together with the program.
    pub(super) is_linked: bool,
    /// Whether the program has no shared libraries.
    pub(super) is_static: bool,
}

/// A variable that begins a page and fills it.
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
struct Boundary(UnsafeCell<[u8; PAGE]>);

// SAFETY: nothing accesses the contents.
unsafe impl Sync for Boundary {}

/// The end of the program's initialized variables. The C library's may follow.
#[used]
static VALUES_END: Boundary = Boundary(UnsafeCell::new([1; PAGE]));
/// The end of the program's zero-initialized variables. The C library's may follow.
#[used]
static ZEROS_END: Boundary = Boundary(UnsafeCell::new([0; PAGE]));

unsafe extern "C" {
    /// A variable of the C library that refers to another.
    static stdout: *const c_void;
    /// A variable of the C library.
    static environ: *const *const c_char;
}

/// Converts a memory size, which the system gives in 64 bits.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the size of the system's pages in bytes.
pub(super) fn page_size() -> usize {
    // SAFETY: queries a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(PAGE)
}

fn down(address: usize) -> usize {
    address - address % page_size()
}

fn up(address: usize) -> usize {
    address.next_multiple_of(page_size())
}

impl WritableData {
    pub(super) fn of_program() -> Self {
        let mut search = ObjectSearch::default();
        // SAFETY: the function gets the pointer that is passed here, and the search lives longer.
        unsafe { libc::dl_iterate_phdr(Some(next_object), (&raw mut search).cast()) };
        search.data
    }

    /// Records the data of the program, which is the first object.
    fn note(&mut self, program: &LoadedObject) {
        let protected = program.ranges(|header| header.p_type == libc::PT_GNU_RELRO).next();
        let protected = protected.map_or(0..0, |pages| down(pages.start)..down(pages.end));
        let loaded = |header: &libc::Elf64_Phdr| header.p_type == libc::PT_LOAD;
        let is_written = |header: &libc::Elf64_Phdr| header.p_flags & libc::PF_W != 0;
        self.constants = program.ranges(|header| loaded(header) && !is_written(header)).collect();
        self.constants.push(protected.clone());
        let is_static = program.ranges(|header| header.p_type == libc::PT_INTERP).next().is_none();
        self.is_static = is_static;
        for header in program.headers.iter().filter(|header| loaded(header) && is_written(header)) {
            let all = program.range(header.p_vaddr, header.p_memsz);
            let values_end = up(program.range(header.p_vaddr, header.p_filesz).end);
            let pages = down(all.start)..up(all.end);
            let before = pages.start..pages.end.min(protected.start).max(pages.start);
            let after = pages.start.max(protected.end).min(pages.end)..pages.end;
            let apart = protected.end <= pages.start || pages.end <= protected.start;
            let parts = if apart { vec![pages] } else { vec![before, after] };
            for pages in parts {
                let zeros = values_end.clamp(pages.start, pages.end);
                if is_static {
                    self.note_chunk(before_own(pages.start..zeros, &VALUES_END), zeros);
                    self.note_chunk(before_own(zeros..pages.end, &ZEROS_END), zeros);
                } else {
                    self.note_chunk(pages, zeros);
                }
            }
        }
        // SAFETY: a variable that is set before the program begins.
        let referred = unsafe { stdout }.addr();
        let of_libc = [referred, (&raw const environ).addr()];
        if is_static && of_libc.iter().any(|address| self.holds(*address)) {
            // An unusual order: the variables of the program and of the C library are mixed.
            self.chunks.clear();
        }
    }

    fn note_chunk(&mut self, pages: Range<usize>, zeros: usize) {
        if !pages.is_empty() {
            let zeros = zeros.clamp(pages.start, pages.end);
            self.chunks.push(Chunk { pages, zeros });
        }
    }

    fn holds(&self, address: usize) -> bool {
        self.chunks.iter().any(|chunk| chunk.pages.contains(&address))
    }
}

/// Returns the part of `pages` before a boundary, or all of it if the boundary is elsewhere.
fn before_own(pages: Range<usize>, boundary: &Boundary) -> Range<usize> {
    let end = from_ref(boundary).addr();
    if pages.contains(&end) { pages.start..down(end) } else { pages }
}

struct LoadedObject<'a> {
    base: u64,
    name: &'a CStr,
    headers: &'a [libc::Elf64_Phdr],
}

/// The tags of the entries of an object's dynamic section that are used here.
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
const SONAME: u64 = 14;

impl LoadedObject<'_> {
    fn range(&self, at: u64, bytes: u64) -> Range<usize> {
        let begin = size(self.base + at);
        begin..begin + size(bytes)
    }

    /// Returns the memory of all headers of a kind.
    fn ranges(
        &self,
        kind: impl Fn(&libc::Elf64_Phdr) -> bool,
    ) -> impl Iterator<Item = Range<usize>> {
        let headers = self.headers.iter().filter(move |header| kind(header));
        headers.map(|header| self.range(header.p_vaddr, header.p_memsz))
    }

    /// Returns the object's dynamic section: pairs of a tag and a value.
    fn dynamic(&self) -> &[[u64; 2]] {
        self.ranges(|header| header.p_type == libc::PT_DYNAMIC).next().map_or(&[], |section| {
            let bytes = section.len() / 16;
            // SAFETY: loaded, according to the header, and not changed afterwards.
            unsafe { std::slice::from_raw_parts(with_exposed_provenance(section.start), bytes) }
        })
    }

    /// Returns the names in the entries with a tag.
    fn names(&self, tag: u64) -> impl Iterator<Item = &CStr> {
        let dynamic = self.dynamic();
        let strings = dynamic.iter().find(|entry| entry[0] == STRINGS).map_or(0, |entry| entry[1]);
        // Most systems have turned this value into an address. Others leave an offset.
        let strings = if strings < self.base { strings + self.base } else { strings };
        let named = dynamic.iter().filter(move |entry| entry[0] == tag && strings != 0);
        // SAFETY: the section refers to a terminated name, which stays there.
        named.map(move |entry| unsafe {
            CStr::from_ptr(with_exposed_provenance(size(strings + entry[1])))
        })
    }
}

/// The results of a walk over the loaded objects. They are visited in the order in which they were
/// loaded, so an object comes before the objects that it needs.
#[derive(Default)]
struct ObjectSearch {
    data: WritableData,
    /// The names of the objects that are loaded together with the program.
    names: Vec<Vec<u8>>,
    /// Whether the program has been seen.
    is_past_program: bool,
}

impl ObjectSearch {
    /// Looks at an object. Returns whether to look at more objects.
    fn look(&mut self, object: &LoadedObject) -> bool {
        if !self.is_past_program {
            self.data.note(object);
        } else if !self.is_needed(object) {
            return true;
        }
        self.is_past_program = true;
        let own = from_ref(&VALUES_END).addr();
        let mut loaded = object.ranges(|header| header.p_type == libc::PT_LOAD);
        self.data.is_linked = loaded.any(|range| range.contains(&own));
        self.names.extend(object.names(NEEDED).map(|name| name.to_bytes().to_vec()));
        !self.data.is_linked
    }

    fn is_needed(&self, object: &LoadedObject) -> bool {
        let path = object.name.to_bytes();
        let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let is_named = |name: &[u8]| self.names.iter().any(|needed| needed == name);
        is_named(path) || is_named(last) || object.names(SONAME).any(|n| is_named(n.to_bytes()))
    }
}

/// # Safety
/// `search` is an `ObjectSearch`, and `info` is what the system passes.
unsafe extern "C" fn next_object(info: *mut dl_phdr_info, _: size_t, search: *mut c_void) -> c_int {
    // SAFETY: the system passes a valid object.
    let info = unsafe { &*info };
    // SAFETY: as many headers as the system reports. They never change.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    // SAFETY: a terminated name that lives as long as the object.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    // SAFETY: the caller's promise.
    let search = unsafe { &mut *search.cast::<ObjectSearch>() };
    c_int::from(!search.look(&LoadedObject { base: info.dlpi_addr, name, headers }))
}
