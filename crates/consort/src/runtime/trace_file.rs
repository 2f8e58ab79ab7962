//! A file of trace events, to which the PEs of several processes append.
//!
//! The file is a complete JSON text after each append, so a process may die at any time. An append
//! locks the file.

use std::{
    fs::OpenOptions,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use consort_fabric::{TRACE_BEGIN, TRACE_END, TRACE_SEPARATOR, files::FileLock};

/// A file of trace events.
#[derive(Debug)]
pub(super) struct TraceFile(PathBuf);

impl TraceFile {
    /// Returns the trace at `path`, an empty one if it `is_new`.
    ///
    /// # Errors
    /// When the file cannot be written, or has other content.
    pub(super) fn open(path: PathBuf, is_new: bool) -> io::Result<Self> {
        let file = locked(&path)?;
        let mut beginning = vec![0; TRACE_BEGIN.len()];
        if file.metadata()?.len() > 0 {
            let is_trace = (&*file).read_exact(&mut beginning).is_ok();
            if !is_trace || beginning != TRACE_BEGIN.as_bytes() {
                return Err(io::Error::other("it has other content: name a new file"));
            }
        }
        if is_new {
            file.set_len(0)?;
        }
        Ok(Self(path))
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Appends events. There must be at least one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn append(&self, events: &[String]) -> io::Result<()> {
        let file = locked(&self.0)?;
        let mut file = &*file;
        let len = file.metadata()?.len();
        let before = if len == 0 { TRACE_BEGIN } else { TRACE_SEPARATOR };
        file.seek(SeekFrom::Start(len.saturating_sub(TRACE_END.len() as u64)))?;
        let events = events.join(TRACE_SEPARATOR);
        file.write_all(format!("{before}{events}{TRACE_END}").as_bytes())
    }
}

/// Opens a file for reading and writing, and excludes other writers until the result is dropped.
fn locked(path: &Path) -> io::Result<FileLock> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    Ok(FileLock::new(file))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn trace_is_complete_after_each_append() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.json");
        let text = || fs::read_to_string(&path).expect("the trace");
        let trace = TraceFile::open(path.clone(), true).expect("a new file");
        trace.append(&["{}".into()]).expect("a writable file");
        assert_eq!(text(), format!("{TRACE_BEGIN}{{}}{TRACE_END}"));
        trace.append(&["1".into(), "2".into()]).expect("a writable file");
        assert_eq!(text(), format!("{TRACE_BEGIN}{{}},\n1,\n2{TRACE_END}"));
        drop(TraceFile::open(path.clone(), false).expect("a trace"));
        assert!(text().contains("1,\n2"));
        drop(TraceFile::open(path.clone(), true).expect("a trace"));
        assert_eq!(text(), "");
        fs::write(&path, "a letter").expect("a writable file");
        let error = TraceFile::open(path.clone(), true).expect_err("not a trace");
        assert!(error.to_string().contains("name a new file"), "{error}");
        assert_eq!(text(), "a letter");
    }
}
