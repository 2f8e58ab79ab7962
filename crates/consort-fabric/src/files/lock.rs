//! Locks of files, which exclude other processes.

use std::{fs::File, ops::Deref};

/// An open file or folder that is locked until this is dropped. The lock is advisory, and some file
/// systems have none: then it excludes nobody.
///
/// A forked child has a copy of the descriptor, and the system keeps the lock as long as there is a
/// copy. So closing the file does not suffice: dropping this unlocks it.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Waits until no other process has locked the file, and locks it.
    #[must_use]
    pub fn new(file: File) -> Self {
        // An error means that there are no locks.
        let _ = file.lock();
        Self(file)
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // The only remedy for an error is to close the file, which comes next.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_the_descriptor_do_not_keep_the_lock() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let lock = FileLock::new(file.reopen().expect("the file"));
        let _copy = lock.try_clone().expect("a copy");
        assert!(file.as_file().try_lock().is_err());
        drop(lock);
        assert!(file.as_file().try_lock().is_ok());
    }
}
