//! The data that processes exchange to start a job together: the settings, which must be the same
//! in all of them, and the cores that each may use.

use std::{
    env,
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    io::Read as _,
};

use consort_fabric::Collective;
use consort_machine::affinity::{self, CpuId};

use super::JobBuilder;
use crate::tune::Algorithms;

/// The words of a mask of processors.
pub(super) const MASK: usize = 16;

/// A setting of a job.
pub(super) struct Setting {
    pub(super) name: &'static str,
    /// A hash of the setting, or the setting itself.
    pub(super) value: u64,
    /// The setting for people.
    pub(super) shown: String,
}

impl Setting {
    pub(super) fn new(name: &'static str, value: &(impl Hash + ?Sized), shown: String) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self { name, value: hasher.finish(), shown }
    }

    pub(super) fn of_number(name: &'static str, value: u64) -> Self {
        Self { name, value, shown: value.to_string() }
    }

    /// Returns the executable, if processes share static variables: those have the same addresses
    /// only in the same executable.
    pub(super) fn of_executable(shares_statics: bool) -> Self {
        const NAME: &str = "executable";
        if !shares_statics {
            return Self::of_number(NAME, 0);
        }
        let path = env::current_exe().unwrap_or_default();
        Self::new(NAME, &head(), path.display().to_string())
    }
}

/// Returns data that distinguishes an executable from others with the same statics: its head, with
/// the sizes of its parts and most often its build id.
fn head() -> Vec<u8> {
    let mut head = Vec::new();
    let file = File::open("/proc/self/exe");
    // An unreadable executable is not distinguished.
    let _ = file.and_then(|file| file.take(4096).read_to_end(&mut head));
    head
}

impl JobBuilder {
    /// Returns the settings that decide how PEs call, and how their memory is laid out.
    pub(super) fn settings(&self, algorithms: &Algorithms) -> [Setting; 8] {
        let wisdom = self.wisdom.content(algorithms, self.arrival);
        let last_of = |what| self.forced.iter().rfind(|(forced, _)| *forced == what);
        let forced = Collective::EVERY.into_iter().filter_map(last_of);
        let forced: Vec<String> = forced.map(|(what, by)| format!("{what} by {by}")).collect();
        let own = algorithms.shown_own();
        let online = self.online.map_or(0, f64::to_bits);
        [
            Setting::of_number("bytes of the heap", self.heap_bytes.unwrap_or(0) as u64),
            Setting::of_number("alignment of the heap", self.heap_align as u64),
            Setting::of_number("bytes of statics", self.statics_bytes as u64),
            Setting::new("waiting policy", &self.waiting, format!("{:?}", self.waiting)),
            Setting::new("wisdom", &wisdom, self.wisdom.shown(algorithms, self.arrival)),
            Setting::new("algorithms that are forced", &forced, format!("{forced:?}")),
            Setting::new("algorithms of the program", &own, own.clone()),
            Setting::new("refinement", &online, format!("{:?}", self.online)),
        ]
    }
}

/// Returns the processors that this process may use, one per bit.
pub(super) fn mask() -> [u64; MASK] {
    let mut mask = [0; MASK];
    for CpuId(cpu) in affinity::allowed_to_process() {
        if let Some(word) = mask.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    mask
}

/// Returns the number of processors that processes may use together, from the number of processors
/// and the mask of each. It grows with the union of the masks.
pub(super) fn processors_of(all: impl Iterator<Item = (u32, [u64; MASK])> + Clone) -> usize {
    let count = |mask: &[u64]| mask.iter().map(|word| word.count_ones()).sum::<u32>().max(1);
    let mut union = [0; MASK];
    for (_, mask) in all.clone() {
        union.iter_mut().zip(mask).for_each(|(all, own)| *all |= own);
    }
    let first = all.into_iter().next();
    let (processors, own) = first.map_or((1, 1), |(processors, own)| (processors, count(&own)));
    // The product does not fit 32 bits if a process says that it may use very many processors.
    let all = u64::from(processors) * u64::from(count(&union)) / u64::from(own);
    usize::try_from(all).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_those_of_one_process_in_proportion_to_all_processors() {
        let mask = |words: [u64; 2]| {
            let mut mask = [0; MASK];
            mask[..2].copy_from_slice(&words);
            mask
        };
        let of = |all: &[(u32, [u64; MASK])]| processors_of(all.iter().copied());
        assert_eq!(of(&[]), 1);
        assert_eq!(of(&[(2, mask([0b1111, 0])), (2, mask([0b1111, 0]))]), 2);
        assert_eq!(of(&[(2, mask([0b1111, 0])), (2, mask([0, 0b1111]))]), 4);
        assert_eq!(of(&[(0, mask([0, 0]))]), 1);
        let most = u32::MAX as usize;
        assert_eq!(of(&[(u32::MAX, mask([u64::MAX, u64::MAX]))]), most);
        assert_eq!(of(&[(u32::MAX, mask([1, 0])), (1, mask([2, 0]))]), 2 * most);
    }
}
