//! The profile of a PE: its time in calls and waits, by kind of call and place in the program.
//!
//! A job writes a file for each of its PEs, and `consort profile` joins them. A file is TOML like
//! wisdom: the PE's keys in a table `[pe]`, and a table `[[calls]]` for each kind of call at each
//! place. A file is read only by the version of the library that wrote it.

use consort_fabric::{Candidate, Query};

use crate::{
    named_enums::Origin,
    text::{read_query, write_query},
    toml::{self, Error, TextValue, TomlTable, Writer},
};

/// The profile of one PE of a job. Times are nanoseconds, and moments are those of the clock that
/// all processes of a machine share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeProfile {
    /// The identity of the job: equal for its PEs, and different for other jobs of the program.
    pub job: String,
    /// The job's name; empty if it has none.
    pub name: String,
    /// The kind of the PEs.
    pub fabric: String,
    /// The number of PEs of the job.
    pub pes: u32,
    /// The PE's rank.
    pub rank: u32,
    /// When the job began.
    pub begun_ns: u64,
    /// When the job ended, or the last call if the process ended before the job did.
    pub until_ns: u64,
    /// Whether the process has written the profile at the job's end.
    pub has_ended: bool,
    /// The waits that paused, because polling did not end them.
    pub paused: u64,
    /// The polls of these waits.
    pub polls: u64,
    /// The yields of these waits.
    pub yields: u64,
    /// The sleeps of these waits.
    pub sleeps: u64,
    /// The time of the yields.
    pub yielding_ns: u64,
    /// The time of the sleeps.
    pub sleeping_ns: u64,
    /// The time of paused waits outside of blocking calls: for words, requests and credits.
    pub waiting_elsewhere_ns: u64,
    /// The calls.
    pub calls: Vec<CallProfile>,
}

/// The calls of one kind that a PE made at one place in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallProfile {
    /// The call, as errors name it.
    pub name: String,
    /// The file and line of the call; empty if the program is not written in Rust.
    pub site: String,
    /// The query by which the call is tuned.
    pub query: Query,
    /// The candidate that served the calls.
    pub algorithm: Candidate,
    /// Why this candidate served them; `None` if the library makes the calls for itself.
    pub origin: Option<Origin>,
    /// Whether a call returns when it is complete. The time of other calls is the time until they
    /// are complete, during which the PE does other work.
    pub is_blocking: bool,
    /// The number of calls.
    pub count: u64,
    /// The time of all calls.
    pub ns: u64,
    /// The part of the time in which blocking calls could not go on.
    pub waiting_ns: u64,
    /// The time of the longest call.
    pub longest_ns: u64,
}

impl PeProfile {
    /// Returns the content of a file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut file = Writer::default();
        file.table(&["pe"]);
        for (key, value) in [("job", &self.job), ("name", &self.name), ("fabric", &self.fabric)] {
            file.string(key, value);
        }
        file.plain("pes", self.pes);
        file.plain("rank", self.rank);
        file.plain("has_ended", self.has_ended);
        for (key, value) in [
            ("begun_ns", self.begun_ns),
            ("until_ns", self.until_ns),
            ("paused", self.paused),
            ("polls", self.polls),
            ("yields", self.yields),
            ("sleeps", self.sleeps),
            ("yielding_ns", self.yielding_ns),
            ("sleeping_ns", self.sleeping_ns),
            ("waiting_elsewhere_ns", self.waiting_elsewhere_ns),
        ] {
            file.plain(key, value);
        }
        self.calls.iter().for_each(|call| call.write(&mut file));
        file.into_text()
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    /// The line and the reason, when it is not the profile of a PE.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        Self::read(bytes).map_err(|Error { line, message }| format!("line {line}: {message}"))
    }

    fn read(bytes: &[u8]) -> Result<Self, Error> {
        let file = toml::read(bytes)?;
        let pe = file.table("pe")?;
        Ok(Self {
            job: pe.get("job")?,
            name: pe.get("name")?,
            fabric: pe.get("fabric")?,
            pes: pe.get("pes")?,
            rank: pe.get("rank")?,
            begun_ns: pe.get("begun_ns")?,
            until_ns: pe.get("until_ns")?,
            has_ended: pe.get("has_ended")?,
            paused: pe.get("paused")?,
            polls: pe.get("polls")?,
            yields: pe.get("yields")?,
            sleeps: pe.get("sleeps")?,
            yielding_ns: pe.get("yielding_ns")?,
            sleeping_ns: pe.get("sleeping_ns")?,
            waiting_elsewhere_ns: pe.get("waiting_elsewhere_ns")?,
            calls: file.tables("calls")?.iter().map(CallProfile::read).collect::<Result<_, _>>()?,
        })
    }
}

impl CallProfile {
    fn write(&self, file: &mut Writer) {
        file.table_of("calls");
        file.string("name", &self.name);
        file.string("site", &self.site);
        write_query(&self.query, file);
        file.string("algorithm", &self.algorithm);
        if let Some(origin) = self.origin {
            file.string("origin", origin);
        }
        file.plain("is_blocking", self.is_blocking);
        for (key, value) in [
            ("count", self.count),
            ("ns", self.ns),
            ("waiting_ns", self.waiting_ns),
            ("longest_ns", self.longest_ns),
        ] {
            file.plain(key, value);
        }
    }

    fn read(table: &TomlTable) -> Result<Self, Error> {
        let TextValue(algorithm) = table.get("algorithm")?;
        let origin = table.find("origin")?.map(|TextValue(origin)| origin);
        Ok(Self {
            name: table.get("name")?,
            site: table.get("site")?,
            query: read_query(table)?,
            algorithm,
            origin,
            is_blocking: table.get("is_blocking")?,
            count: table.get("count")?,
            ns: table.get("ns")?,
            waiting_ns: table.get("waiting_ns")?,
            longest_ns: table.get("longest_ns")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::CallSpec;

    use super::*;

    #[test]
    fn profile_reads_as_it_was_written() {
        let call = CallProfile {
            name: "reduce(8 bytes of f64, |a| \"b\", root 0, mine)".into(),
            site: "src/main.rs:7".into(),
            query: CallSpec::barrier(4).query(),
            algorithm: Candidate::new("dissemination").with("radix", 2),
            origin: Some(Origin::Model),
            is_blocking: true,
            count: 3,
            ns: 1 << 62,
            waiting_ns: 5,
            longest_ns: 6,
        };
        let own = CallProfile { origin: None, site: String::new(), ..call.clone() };
        let profile = PeProfile {
            job: "17.0".into(),
            name: "it's \"one\"\n".into(),
            fabric: "threads".into(),
            pes: 4,
            rank: 3,
            begun_ns: 1,
            until_ns: 2,
            has_ended: true,
            paused: 3,
            polls: 4,
            yields: 5,
            sleeps: 6,
            yielding_ns: 7,
            sleeping_ns: 8,
            waiting_elsewhere_ns: 9,
            calls: vec![call, own],
        };
        assert_eq!(PeProfile::parse(profile.text().as_bytes()), Ok(profile));
        let error = PeProfile::parse(b"[pe]\njob = 7\n").unwrap_err();
        assert_eq!(error, "line 2: invalid type: integer `7`, expected a string");
    }
}
