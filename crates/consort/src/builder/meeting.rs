//! Processes that exist already become the PEs of a job.

use std::{sync::Arc, time::Duration};

use consort_fabric::Rank;
use consort_native::{MeetError, PeProcess, SharedFile};

use super::{JobBuilder, settings::Setting};
use crate::{
    Result,
    error::{CallError, LaunchError},
    fabric::Fabric,
    rendezvous::Rendezvous,
    tune::Algorithms,
};

impl JobBuilder {
    /// Meets the other processes of the job. Returns this one as PE `rank`.
    pub(super) fn meet(
        &mut self,
        rank: Rank,
        rendezvous: &Rendezvous,
        joining: Option<Duration>,
    ) -> Result<Arc<PeProcess>> {
        let pes = self.count()?;
        if rank.0 >= pes {
            return Err(CallError::RankOutOfRange { rank, pes: self.pes }.into());
        }
        if let Err(error) = self.read_environment(pes) {
            // The others fail with this reason, because they would wait for this process.
            let _ = meet((rank, pes), rendezvous, Err(error.to_string()), None);
            return Err(error);
        }
        let mut settings = Vec::from(self.settings(Algorithms::of(Fabric::Processes)));
        settings.extend([
            Setting::new("name of the job", &self.name, format!("`{}`", self.name)),
            Setting::new("use of helper threads", &self.helpers, self.helpers.to_string()),
            Setting::new("wait for threads that join", &joining, format!("{joining:?}")),
            Setting::of_number("number of the first step", self.first_step),
            Setting::of_executable(self.statics.is_some()),
        ]);
        let met = meet((rank, pes), rendezvous, Ok(&settings), self.statics.as_deref());
        Ok(met.map_err(LaunchError::Meeting)?)
    }
}

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
use linux::meet;

/// Fails: this system does not support processes as PEs.
#[cfg(not(all(target_os = "linux", not(any(miri, consort_portable)))))]
fn meet(
    (rank, _): (Rank, u32),
    _: &Rendezvous,
    _: Result<&[Setting], String>,
    _: Option<&SharedFile>,
) -> Result<Arc<PeProcess>, MeetError> {
    let reason = "PEs are processes only on Linux: use Job::threads".to_owned();
    Err(MeetError::Refused { rank, reason })
}

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod linux {
    use consort_native::{Binding, Meeting};

    use super::{
        super::settings::{MASK, mask, processors_of},
        Algorithms, Arc, MeetError, PeProcess, Rank, Rendezvous, Setting, SharedFile,
    };

    /// The data that a process sends to the others about the job.
    struct Payload<'t> {
        /// The number of processors that the process may use, and their mask.
        processors: (u32, [u64; MASK]),
        /// Its settings, each with its text.
        settings: Vec<(u64, &'t [u8])>,
    }

    /// Meets the other processes, with the settings of this one or the reason why it cannot take
    /// part. All become members of one job, or get the same error.
    pub(super) fn meet(
        (rank, pes): (Rank, u32),
        rendezvous: &Rendezvous,
        settings: Result<&[Setting], String>,
        statics: Option<&SharedFile>,
    ) -> Result<Arc<PeProcess>, MeetError> {
        let processors = Algorithms::here().topology().processors();
        let own = (u32::try_from(processors).unwrap_or(u32::MAX), mask());
        let payload = settings.as_ref().map(|settings| encode(own, settings));
        let payload = payload.map_err(String::clone);
        let meeting = Meeting::begin(rank, pes, payload, statics, rendezvous.exchange()?)?;
        let all: Option<Vec<Payload<'_>>> = meeting.payloads().map(decode).collect();
        let all = all.ok_or(MeetError::Garbled)?;
        ensure_alike(&all, settings.unwrap_or_default())?;
        let processors = processors_of(all.iter().map(|payload| payload.processors));
        // Processes that may use different processors have been placed by their launcher.
        let have_one_mask = all.iter().all(|payload| payload.processors.1 == all[0].processors.1);
        let binding = if have_one_mask { Binding::Placed } else { Binding::None };
        meeting.join(u32::try_from(processors).unwrap_or(u32::MAX), binding)
    }

    fn encode((processors, mask): (u32, [u64; MASK]), settings: &[Setting]) -> Vec<u8> {
        let mut bytes = processors.to_le_bytes().to_vec();
        bytes.extend(mask.iter().flat_map(|word| word.to_le_bytes()));
        for Setting { value, shown, .. } in settings {
            bytes.extend(value.to_le_bytes());
            bytes.extend((shown.len() as u64).to_le_bytes());
            bytes.extend(shown.as_bytes());
        }
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Option<Payload<'_>> {
        let (processors, mut rest) = bytes.split_first_chunk()?;
        let mut mask = [0; MASK];
        for word in &mut mask {
            *word = number(&mut rest)?;
        }
        bytes = rest;
        let mut settings = Vec::new();
        while !bytes.is_empty() {
            let (value, length) = (number(&mut bytes)?, number(&mut bytes)?);
            let shown = bytes.split_off(..usize::try_from(length).ok()?)?;
            settings.push((value, shown));
        }
        Some(Payload { processors: (u32::from_le_bytes(*processors), mask), settings })
    }

    /// Takes a number from the beginning of the bytes.
    fn number(bytes: &mut &[u8]) -> Option<u64> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u64::from_le_bytes(*first))
    }

    /// Fails if a setting is not the same in all processes.
    fn ensure_alike(all: &[Payload<'_>], settings: &[Setting]) -> Result<(), MeetError> {
        if all.iter().any(|payload| payload.settings.len() != settings.len()) {
            return Err(MeetError::Garbled);
        }
        for (at, setting) in settings.iter().enumerate() {
            let differs = |payload: &Payload<'_>| payload.settings[at].0 != all[0].settings[at].0;
            if let Some(other) = all.iter().position(differs) {
                let shown = |rank: usize| {
                    let text = String::from_utf8_lossy(all[rank].settings[at].1).into_owned();
                    (Rank::new(rank), text)
                };
                let (what, settings) = (setting.name.to_owned(), [shown(0), shown(other)]);
                return Err(MeetError::Settings { what, settings });
            }
        }
        Ok(())
    }
}
