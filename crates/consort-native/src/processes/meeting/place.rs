//! The places where processes of one machine meet.

use std::{
    fmt, fs, io,
    net::ToSocketAddrs as _,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
};

use super::meet_error::MeetError;
use crate::system::socket::Address;

/// The longest name in bytes: the system allows this many, with the prefix.
const MOST_NAME: usize = 90;

/// A place where the processes of a job meet: its first process listens there.
pub struct MeetingPlace {
    address: Address,
    /// The words for it in messages.
    shown: String,
}

impl MeetingPlace {
    /// Returns the place with a name.
    ///
    /// # Errors
    /// When the name is empty, or too long.
    pub fn of_name(name: &str) -> Result<Self, MeetError> {
        if name.is_empty() || name.len() > MOST_NAME || name.contains('\0') {
            let why = format!(
                "invalid name {name:?} of a job: use 1 to {MOST_NAME} bytes, none of them zero"
            );
            return Err(MeetError::Place(why));
        }
        let address = Address::Name(format!("consort/{name}"));
        Ok(Self { address, shown: format!("the name `{name}`") })
    }

    /// Returns the place of the processes that have the same file open as this descriptor.
    ///
    /// The place is a name with the numbers of the file, which no other file has while it is open.
    ///
    /// # Errors
    /// When the descriptor is closed, or refers to something other than a pipe, socket or regular
    /// file.
    pub fn of_file(descriptor: i32) -> Result<Self, MeetError> {
        let refused = |why: &str| MeetError::Place(format!("descriptor {descriptor} {why}"));
        let file = match fs::metadata(format!("/proc/self/fd/{descriptor}")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(refused(
                    "is not open in this process: let each process inherit it, also by `exec`",
                ));
            }
            Err(error) => return Err(refused(&format!("cannot be looked at: {error}"))),
        };
        let kind = file.file_type();
        if !(kind.is_fifo() || kind.is_socket() || kind.is_file()) {
            return Err(refused(
                "is a terminal, another device or an object of the system, which processes of other \
                 jobs have open, too: use a pipe or a file",
            ));
        }
        // Not one of the names that programs choose.
        let name = format!("consort-file/{}-{}", file.dev(), file.ino());
        Ok(Self {
            address: Address::Name(name),
            shown: format!("the file of descriptor {descriptor}"),
        })
    }

    /// Returns the place with a TCP address: a host and a port.
    ///
    /// # Errors
    /// When it is not HOST:PORT, the host is unknown, or the port is 0.
    pub fn of_address(address: &str) -> Result<Self, MeetError> {
        let invalid = |why: &str| {
            MeetError::Place(format!(
                "invalid address `{address}`: {why}; use HOST:PORT, such as 127.0.0.1:29500"
            ))
        };
        // All processes take the same address, in whatever order they get a host's addresses.
        let found = address.to_socket_addrs().map_err(|error| invalid(&error.to_string()))?.min();
        let found = found.ok_or_else(|| invalid("the host has none"))?;
        if found.port() == 0 {
            return Err(invalid("all processes need the same port, but 0 is any"));
        }
        Ok(Self { address: Address::Tcp(found), shown: format!("the address {address}") })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the error for a place that is not on this machine.
    pub(super) fn elsewhere_error(&self) -> MeetError {
        MeetError::Place(format!(
            "{self} is not one of this machine: all processes run on one machine, so use one of \
             its addresses, such as 127.0.0.1:29500"
        ))
    }
}

impl fmt::Display for MeetingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
