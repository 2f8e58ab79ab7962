//! The shim's functions, loaded when a program starts.

#![expect(unsafe_code, reason = "calls the functions of a library that is loaded")]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::ManuallyDrop,
    path::Path,
};

use libloading::Library;

/// The shim of an MPI. It stays loaded until the process ends.
pub(crate) struct Shim {
    begin: extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    open: extern "C" fn() -> c_int,
    send: extern "C" fn(*const u64, c_int, c_int) -> *mut c_void,
    probe: extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut *mut c_void) -> c_int,
    receive: extern "C" fn(*mut c_void, *mut u64, c_int) -> *mut c_void,
    test: extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    close: extern "C" fn(c_int) -> c_int,
    error: extern "C" fn(*mut c_char, c_int),
}

/// A message in memory that is the MPI's until it is done. If nobody waits for that, it is never
/// freed.
pub(crate) struct Request {
    request: *mut c_void,
    words: ManuallyDrop<Vec<u64>>,
}

// SAFETY: a request is any thread's, one at a time, as the MPI is told with the level of threads.
unsafe impl Send for Request {}

/// A function of a library.
macro_rules! function {
    ($library:expr, $name:literal) => {{
        // SAFETY: the shim, whose source is beside this file, has a function of this type.
        let function = unsafe { $library.get($name) };
        *function.map_err(|error| error.to_string())?
    }};
}

fn load(path: &Path) -> Result<&'static Library, String> {
    // SAFETY: what is loaded is the shim, which an MPI's compiler has made, and the MPI itself.
    let library = unsafe { Library::new(path) };
    // An MPI must not be unloaded.
    Ok(Box::leak(Box::new(library.map_err(|error| error.to_string())?)))
}

/// What `write` writes into so many bytes.
fn text(write: extern "C" fn(*mut c_char, c_int)) -> String {
    let mut bytes = [0_u8; 512];
    write(bytes.as_mut_ptr().cast(), 512);
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    text.to_string_lossy().trim().to_owned()
}

/// The version that the MPI of a shim tells.
pub(crate) fn version(path: &Path) -> Result<String, String> {
    let library = load(path)?;
    Ok(text(function!(library, b"consort_mpi_version")))
}

impl Shim {
    /// Loads it.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        let library = load(path)?;
        Ok(Self {
            begin: function!(library, b"consort_mpi_begin"),
            open: function!(library, b"consort_mpi_open"),
            send: function!(library, b"consort_mpi_send"),
            probe: function!(library, b"consort_mpi_probe"),
            receive: function!(library, b"consort_mpi_receive"),
            test: function!(library, b"consort_mpi_test"),
            close: function!(library, b"consort_mpi_close"),
            error: function!(library, b"consort_mpi_error"),
        })
    }

    fn last_error(&self) -> String {
        text(self.error)
    }

    fn result<T>(&self, status: c_int, value: T) -> Result<T, String> {
        match status {
            0 => Ok(value),
            _ => Err(self.last_error()),
        }
    }

    /// Begins to use MPI: this process's rank, and the number of processes.
    pub(crate) fn begin(&self) -> Result<[u32; 2], String> {
        let (mut rank, mut processes) = (0, 0);
        match (self.begin)(&raw mut rank, &raw mut processes) {
            2 => {
                Err("the program has begun MPI for fewer threads than MPI_THREAD_SERIALIZED".into())
            }
            status => self.result(status, [rank, processes].map(c_int::unsigned_abs)),
        }
    }

    /// Begins a job, with all processes.
    pub(crate) fn open(&self) -> Result<(), String> {
        self.result((self.open)(), ())
    }

    /// Sends words to a process.
    pub(crate) fn send(&self, to: u32, words: Vec<u64>) -> Result<Request, String> {
        let [count, to] = [words.len(), to as usize].map(c_int::try_from);
        let (Ok(count), Ok(to)) = (count, to) else {
            return Err("a message is too long for MPI".to_owned());
        };
        let request = (self.send)(words.as_ptr(), count, to);
        if request.is_null() {
            return Err(self.last_error());
        }
        Ok(Request { request, words: ManuallyDrop::new(words) })
    }

    /// Begins to receive a message that has come, if one has; from a process.
    pub(crate) fn receive(&self) -> Result<Option<(u32, Request)>, String> {
        let (mut is_there, mut from, mut count) = (0, 0, 0);
        let mut message = std::ptr::null_mut();
        let status =
            (self.probe)(&raw mut is_there, &raw mut from, &raw mut count, &raw mut message);
        self.result(status, ())?;
        if is_there == 0 {
            return Ok(None);
        }
        let mut words = vec![0; count.unsigned_abs() as usize];
        let request = (self.receive)(message, words.as_mut_ptr(), count);
        if request.is_null() {
            return Err(self.last_error());
        }
        Ok(Some((from.unsigned_abs(), Request { request, words: ManuallyDrop::new(words) })))
    }

    /// The words of a message that is done, or the request again.
    pub(crate) fn test(&self, request: Request) -> Result<Result<Vec<u64>, Request>, String> {
        let mut is_done = 0;
        let status = (self.test)(request.request, &raw mut is_done);
        self.result(status, ())?;
        let Request { words, .. } = request;
        Ok(if is_done == 0 {
            Err(Request { words, ..request })
        } else {
            Ok(ManuallyDrop::into_inner(words))
        })
    }

    /// Ends a job, with all processes; or ends all processes.
    pub(crate) fn close(&self, all_end: bool) {
        (self.close)(all_end.into());
    }
}
