//! Keeps the shared library that contains this code loaded.
//!
//! A program may unload a plug-in (`dlclose`) while the process still keeps something that runs the
//! plug-in's code: a thread, a fork handler, or the destructor of a thread-specific key. The
//! standard library has such a key for `thread::current`. So code that leaves such things behind
//! first calls [`stay_loaded`](super::fork::stay_loaded), which pins the library until the process
//! ends (`RTLD_NODELETE`). A pin that could be released again would not be enough: the last thread
//! to leave would return into unmapped code.
//!
//! Programs are never unloaded, and a static executable loads no libraries.

#![cfg_attr(
    not(target_feature = "crt-static"),
    expect(unsafe_code, reason = "asks the dynamic linker for loaded objects")
)]

#[cfg(not(target_feature = "crt-static"))]
pub(super) use dynamic::{is_pinned, pin};

/// Returns `true`: a static executable is never unloaded.
#[cfg(target_feature = "crt-static")]
pub(super) fn is_pinned() -> bool {
    true
}

/// Does nothing, as for a dynamic executable.
#[cfg(target_feature = "crt-static")]
pub(super) fn pin() {}

#[cfg(not(target_feature = "crt-static"))]
mod dynamic {
    use std::{
        ffi::{CStr, CString},
        slice,
        sync::atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    };

    use libc::{c_int, c_void, dl_phdr_info, size_t};

    static IS_PINNED: AtomicBool = AtomicBool::new(false);

    /// Returns whether the library is pinned.
    pub(in super::super) fn is_pinned() -> bool {
        IS_PINNED.load(Acquire) // pairs with the release in `pin`
    }

    /// A search for the object that contains an address.
    struct ObjectQuery {
        address: usize,
        /// The object's name once it is found; the name of a program is empty.
        name: CString,
    }

    impl ObjectQuery {
        fn is_in(&self, object: &dl_phdr_info) -> bool {
            // SAFETY: the system passes this many headers, and never changes them.
            let headers =
                unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
            let offset = (self.address as u64).wrapping_sub(object.dlpi_addr);
            headers.iter().any(|header| {
                let (begin, bytes) = (header.p_vaddr, header.p_memsz);
                header.p_type == libc::PT_LOAD && offset.wrapping_sub(begin) < bytes
            })
        }
    }

    /// # Safety
    /// `search` points to a [`ObjectQuery`], and `object` is what the system passes.
    unsafe extern "C" fn look_at(
        object: *mut dl_phdr_info,
        _: size_t,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the system passes a valid object.
        let object = unsafe { &*object };
        // SAFETY: the caller's promise.
        let search = unsafe { &mut *search.cast::<ObjectQuery>() };
        let is_found = search.is_in(object);
        if is_found && !object.dlpi_name.is_null() {
            // SAFETY: the name is terminated, and lives as long as the object.
            search.name = unsafe { CStr::from_ptr(object.dlpi_name) }.to_owned();
        }
        is_found.into()
    }

    /// Pins the library that contains this function. Pinning twice is harmless.
    ///
    /// # Panics
    /// When the dynamic linker refuses, which it does only when it has no memory.
    pub(in super::super) fn pin() {
        let own: fn() = pin;
        let mut search = ObjectQuery { address: own as usize, name: CString::default() };
        // SAFETY: the callback gets the pointer that is passed here, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look_at), (&raw mut search).cast()) };
        if !search.name.is_empty() {
            let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            // SAFETY: the name is terminated. The library is already loaded, so this runs no code.
            let handle = unsafe { libc::dlopen(search.name.as_ptr(), how) };
            assert!(
                !handle.is_null(),
                "the library {:?} cannot be kept loaded: dlopen with RTLD_NODELETE has failed; do \
                 not unload it, or load it with RTLD_NODELETE",
                search.name
            );
        }
        IS_PINNED.store(true, Release); // pairs with the acquire in `is_pinned`
    }
}
