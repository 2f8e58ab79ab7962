//! The shim's functions, loaded at the start of a program.

#![expect(unsafe_code, reason = "calls the functions of a library that is loaded")]

use std::{
    error::Error,
    ffi::{CStr, CString, c_char, c_int, c_void},
    mem::ManuallyDrop,
    path::Path,
};

use consort_fabric::VendorCall;
use consort_native::TransferBuffer;
use libloading::Library;

/// The shim of an MPI. It stays loaded until the process ends.
pub(crate) struct Shim {
    begin: extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    open: extern "C" fn() -> c_int,
    gather: extern "C" fn(*const u64, c_int, *mut u64) -> c_int,
    send: extern "C" fn(*const u64, c_int, c_int) -> *mut c_void,
    probe: extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> c_int,
    receive: extern "C" fn(*mut u64, c_int) -> *mut c_void,
    lead: extern "C" fn(c_int) -> c_int,
    collect: unsafe extern "C" fn(
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        *const c_void,
        *mut c_void,
    ) -> *mut c_void,
    push: unsafe extern "C" fn(*const c_void, c_int, c_int, c_int) -> *mut c_void,
    pull: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> *mut c_void,
    test: extern "C" fn(*mut c_void, *mut c_int) -> c_int,
    cancel: extern "C" fn(*mut c_void),
    close: extern "C" fn(*const c_char) -> c_int,
    abort: extern "C" fn(c_int),
    error: extern "C" fn(*mut c_char, c_int),
}

/// Bytes of an element of each of [`VendorCall::DATATYPES`].
const ELEMENT_BYTES: [usize; VendorCall::DATATYPES.len()] = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8];

/// Addresses for an empty source and an empty target. MPIs treat some numbers that are not
/// addresses, such as Rust's for empty slices, as special values.
static NOTHING: [u64; 2] = [0; 2];

/// A request on words that belong to the MPI until it is done. If no one waits for it, they are
/// never freed.
pub(crate) struct FrameRequest {
    request: Request,
    words: ManuallyDrop<Vec<u64>>,
}

/// A request on memory that the caller keeps until it is done.
pub(crate) struct Request(*mut c_void);

// SAFETY: any thread may use a request, one at a time: the MPI runs at that thread level.
unsafe impl Send for Request {}

/// Looks up a function of a library.
macro_rules! function {
    ($library:expr, $name:literal) => {{
        // SAFETY: the shim, whose source is next to this file, has a function of this type.
        let function = unsafe { $library.get($name) };
        *function.map_err(|error| reason(&error))?
    }};
}

/// Returns the reason of an error, as the system reports it.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

fn load(path: &Path) -> Result<&'static Library, String> {
    // SAFETY: only the shim, which an MPI's compiler has created, and the MPI itself are loaded.
    let library = unsafe { Library::new(path) };
    // An MPI must not be unloaded.
    let library = library.map_err(|error| format!("{}: {}", path.display(), reason(&error)))?;
    Ok(Box::leak(Box::new(library)))
}

/// Converts a count or a rank to MPI's type.
fn number(number: usize) -> Result<c_int, String> {
    c_int::try_from(number).map_err(|_| "a message is too long for MPI".to_owned())
}

/// Returns the text that `write` writes into a buffer.
fn text(write: extern "C" fn(*mut c_char, c_int)) -> String {
    let mut bytes = [0_u8; 512];
    write(bytes.as_mut_ptr().cast(), 512);
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    text.to_string_lossy().trim().to_owned()
}

/// Returns the version of a shim's MPI.
pub(crate) fn version(path: &Path) -> Result<String, String> {
    let library = load(path)?;
    Ok(text(function!(library, b"consort_mpi_version")))
}

impl Shim {
    /// Loads the shim at `path`.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        let library = load(path)?;
        Ok(Self {
            begin: function!(library, b"consort_mpi_begin"),
            open: function!(library, b"consort_mpi_open"),
            gather: function!(library, b"consort_mpi_gather"),
            send: function!(library, b"consort_mpi_send"),
            probe: function!(library, b"consort_mpi_probe"),
            receive: function!(library, b"consort_mpi_receive"),
            lead: function!(library, b"consort_mpi_lead"),
            collect: function!(library, b"consort_mpi_collect"),
            push: function!(library, b"consort_mpi_push"),
            pull: function!(library, b"consort_mpi_pull"),
            test: function!(library, b"consort_mpi_test"),
            cancel: function!(library, b"consort_mpi_cancel"),
            close: function!(library, b"consort_mpi_close"),
            abort: function!(library, b"consort_mpi_abort"),
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

    /// Begins to use MPI. Returns this process's rank and the number of processes.
    pub(crate) fn begin(&self) -> Result<[u32; 2], String> {
        let (mut rank, mut processes) = (0, 0);
        match (self.begin)(&raw mut rank, &raw mut processes) {
            2 => {
                Err("the program has begun MPI for fewer threads than MPI_THREAD_SERIALIZED".into())
            }
            3 => Err("the program has finalized MPI".into()),
            status => self.result(status, [rank, processes].map(c_int::unsigned_abs)),
        }
    }

    /// Begins a job, together with all processes.
    pub(crate) fn open(&self) -> Result<(), String> {
        self.result((self.open)(), ())
    }

    /// Gathers words from all `processes` processes. Each passes the same number.
    pub(crate) fn gather(&self, words: &[u64], processes: u32) -> Result<Vec<u64>, String> {
        let mut gathered = vec![0; words.len() * processes as usize];
        let count = number(words.len())?;
        self.result((self.gather)(words.as_ptr(), count, gathered.as_mut_ptr()), gathered)
    }

    fn begun(&self, request: *mut c_void) -> Result<Request, String> {
        if request.is_null() { Err(self.last_error()) } else { Ok(Request(request)) }
    }

    /// Sends words to a process.
    pub(crate) fn send(&self, to: u32, words: Vec<u64>) -> Result<FrameRequest, String> {
        let (count, to) = (number(words.len())?, number(to as usize)?);
        let request = self.begun((self.send)(words.as_ptr(), count, to))?;
        Ok(FrameRequest { request, words: ManuallyDrop::new(words) })
    }

    /// Begins to receive the next message if it has arrived; also returns its sender.
    pub(crate) fn receive(&self) -> Result<Option<(u32, FrameRequest)>, String> {
        let (mut has_come, mut from, mut count) = (0, 0, 0);
        let status = (self.probe)(&raw mut has_come, &raw mut from, &raw mut count);
        self.result(status, ())?;
        if has_come == 0 {
            return Ok(None);
        }
        let mut words = vec![0; count.unsigned_abs() as usize];
        let request = self.begun((self.receive)(words.as_mut_ptr(), count))?;
        let request = FrameRequest { request, words: ManuallyDrop::new(words) };
        Ok(Some((from.unsigned_abs(), request)))
    }

    /// Declares whether this process is the first of its node. All processes must call this.
    pub(crate) fn lead(&self, leads: bool) -> Result<(), String> {
        self.result((self.lead)(leads.into()), ())
    }

    /// Begins one of the MPI's own collectives.
    ///
    /// # Safety
    /// The source and the target must stay until the request is done, and be as long as the call
    /// says. The call must be supported.
    pub(crate) unsafe fn collect(
        &self,
        call: &VendorCall,
        [source, target]: [TransferBuffer; 2],
    ) -> Result<Request, String> {
        let address = |region: TransferBuffer, nothing: &'static u64| match region.bytes() {
            0 => (&raw const *nothing).cast_mut().cast(),
            _ => region.at(),
        };
        let [source, target] = [address(source, &NOTHING[0]), address(target, &NOTHING[1])];
        let place = |names: &[&str], name| names.iter().position(|known| *known == name);
        let collective = VendorCall::COLLECTIVES.iter().position(|one| *one == call.collective);
        let collective = collective.ok_or("the MPI has no such collective")?;
        let (datatype, bytes, operator) = if call.collective.combines() {
            let datatype = place(&VendorCall::DATATYPES, call.datatype);
            let operator = place(&VendorCall::OPERATORS, call.operator);
            let (Some(datatype), Some(operator)) = (datatype, operator) else {
                return Err("the MPI has no such operator".to_owned());
            };
            (datatype + 1, ELEMENT_BYTES[datatype], operator)
        } else {
            (0, 1, 0) // bytes
        };
        let request = unsafe {
            // SAFETY: the caller's promise.
            (self.collect)(
                number(collective)?,
                call.leaders.into(),
                number(call.root.index())?,
                number(call.bytes / bytes)?,
                number(datatype)?,
                number(operator)?,
                source.cast_const().cast(),
                target.cast(),
            )
        };
        self.begun(request)
    }

    /// Sends bytes directly from their memory.
    ///
    /// # Safety
    /// The memory must stay until the request is done.
    pub(crate) unsafe fn push(
        &self,
        to: u32,
        tag: u32,
        (at, bytes): (*const u8, usize),
    ) -> Result<Request, String> {
        let (count, to, tag) = (number(bytes)?, number(to as usize)?, number(tag as usize)?);
        // SAFETY: the caller's promise.
        self.begun(unsafe { (self.push)(at.cast(), count, to, tag) })
    }

    /// Receives bytes directly into their memory.
    ///
    /// # Safety
    /// The memory must stay, and be writable, until the request is done.
    pub(crate) unsafe fn pull(
        &self,
        from: u32,
        tag: u32,
        (at, bytes): (*mut u8, usize),
    ) -> Result<Request, String> {
        let (count, from, tag) = (number(bytes)?, number(from as usize)?, number(tag as usize)?);
        // SAFETY: the caller's promise.
        self.begun(unsafe { (self.pull)(at.cast(), count, from, tag) })
    }

    /// Returns `None` if a request is done, otherwise the request.
    pub(crate) fn is_done(&self, request: Request) -> Result<Option<Request>, String> {
        let mut is_done = 0;
        let status = (self.test)(request.0, &raw mut is_done);
        self.result(status, ())?;
        Ok((is_done == 0).then_some(request))
    }

    /// Returns the words of a finished request, otherwise the request.
    pub(crate) fn words(
        &self,
        FrameRequest { request, words }: FrameRequest,
    ) -> Result<Result<Vec<u64>, FrameRequest>, String> {
        Ok(match self.is_done(request)? {
            Some(request) => Err(FrameRequest { request, words }),
            None => Ok(ManuallyDrop::into_inner(words)),
        })
    }

    /// Cancels a receive for which nothing is sent.
    pub(crate) fn cancel(&self, request: Request) {
        (self.cancel)(request.0);
    }

    /// Ends a job, together with all processes; or prints why it failed, and ends all processes.
    pub(crate) fn close(&self, failed: Option<&str>) {
        let reason = failed.map(|reason| CString::new(reason.replace('\0', " ")));
        let reason = reason.map(Result::unwrap_or_default);
        (self.close)(reason.as_ref().map_or(std::ptr::null(), |reason| reason.as_ptr()));
    }

    /// Ends all processes, including this one, with a status.
    pub(crate) fn abort(&self, status: u8) {
        (self.abort)(status.into());
    }
}
