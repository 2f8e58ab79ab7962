//! The identity of the library, and the environment variables that it reads.

use std::io::{self, Write as _};

use consort_machine::usage::LargePages;
use consort_native::obtains_large_page;
use libc::{c_char, c_int};

use crate::{environment::SYMMETRIC_SIZE, world::World};

/// The name of the library, as in `SHMEM_VENDOR_STRING`.
pub const VENDOR: &str = concat!("Consort ", env!("CARGO_PKG_VERSION"));

/// `shmem_info_get_version`.
///
/// # Safety
/// Both arguments point to writable variables.
pub unsafe fn get_version(major: *mut c_int, minor: *mut c_int) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        major.write(1);
        minor.write(6);
    }
}

/// `shmem_info_get_name`.
///
/// # Safety
/// `name` has room for `SHMEM_MAX_NAME_LEN` characters.
pub unsafe fn get_name(name: *mut c_char) {
    let bytes = VENDOR.bytes().chain([0]);
    // SAFETY: guaranteed by the caller; the name is shorter than that.
    bytes.enumerate().for_each(|(at, byte)| unsafe { name.add(at).write(byte.cast_signed()) });
}

/// Describes whether the heap has large pages: the system's settings, and the result of a trial.
fn large_pages(world: &World) -> String {
    let Some(pages) = LargePages::of_system() else {
        return "this system has none".to_owned();
    };
    let uses = match (pages.may_be_shared(), world.job.config().fits()) {
        (true, true) => match obtains_large_page() {
            Some(true) => "obtained".to_owned(),
            Some(false) => "asked for, but not obtained in a trial".to_owned(),
            None => "asked for".to_owned(),
        },
        (true, false) => "not used, since PEs share cores".to_owned(),
        (false, _) => format!("not used: set {} to advise", LargePages::SHARED),
    };
    format!("{uses} (the system says {})", pages.shared)
}

/// Prints what the environment requests, on PE 0.
pub(crate) fn announce(world: &World) {
    let environment = world.environment;
    if world.rank.0 != 0 {
        return;
    }
    // If standard output cannot be written, only the text is lost.
    let mut out = io::stdout();
    if environment.version {
        let _ = writeln!(out, "{VENDOR}, OpenSHMEM 1.6");
    }
    if environment.info {
        let _ = writeln!(
            out,
            "{SYMMETRIC_SIZE}={}: bytes of each PE's symmetric heap, with K, M, G or T\n\
             SHMEM_VERSION={}: print the library's version\n\
             SHMEM_INFO=1: print this\n\
             SHMEM_DEBUG={}: check arguments thoroughly\n\
             large pages of the heap: {}",
            environment.symmetric_bytes,
            u8::from(environment.version),
            u8::from(environment.debug),
            large_pages(world),
        );
    }
}
