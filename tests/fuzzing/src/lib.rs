//! Targets of a fuzzer: readers of users' files, and readers of packets from other processes.
//!
//! A target accepts any bytes. It may reject them, but it must not panic, and accepted data must
//! read the same once it has been written again. The tests of this crate feed the targets with a
//! corpus and with changes of it; `fuzz/` feeds them with the inputs of cargo-fuzz.

#[cfg(test)]
use consort_sandbox as _;

use std::{fs, path::PathBuf, sync::OnceLock, thread};

use consort_fabric::Candidate;
use consort_native::fuzzing;
use consort_sim::machines::Machine;
use consort_tuner::{Mix, Wisdom};
use tempfile::TempDir;

/// A target.
pub type Target = fn(&[u8]);

/// All targets, by name. The folders of the corpus have the same names; the corpus of `machine` is
/// the laboratory's machines.
pub const TARGETS: [(&str, Target); 6] = [
    ("calls", calls),
    ("candidate", candidate),
    ("failure", failure),
    ("machine", machine),
    ("packets", packets),
    ("wisdom", wisdom),
];

/// Writes these bytes to a file of this thread.
fn file(bytes: &[u8]) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder"));
    let path = folder.path().join(format!("{:?}", thread::current().id()));
    fs::write(&path, bytes).expect("a file");
    path
}

/// Returns words of eight bytes, without the remaining bytes.
fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Reads recorded calls.
pub fn calls(bytes: &[u8]) {
    let _ = Mix::load(&file(bytes));
}

/// Reads a candidate, as in an option of a command.
///
/// # Panics
/// When a candidate does not read as it was written.
pub fn candidate(bytes: &[u8]) {
    if let Some(candidate) = str::from_utf8(bytes).ok().and_then(|it| it.parse::<Candidate>().ok())
    {
        assert_eq!(candidate.to_string().parse(), Ok(candidate));
    }
}

/// Reads the reason why a job has failed, from another process.
pub fn failure(bytes: &[u8]) {
    fuzzing::failure(&words(bytes));
}

/// Reads the description of a machine.
pub fn machine(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = Machine::parse("fuzzed.toml", text);
    }
}

/// Reads a frame of packets from another process.
pub fn packets(bytes: &[u8]) {
    fuzzing::packets(&words(bytes));
}

/// Reads wisdom.
///
/// # Panics
/// When wisdom does not read as it was written.
pub fn wisdom(bytes: &[u8]) {
    if let Ok(wisdom) = Wisdom::load_unfitted(&file(bytes)) {
        let again = Wisdom::load_unfitted(&file(wisdom.to_string().as_bytes()));
        assert_eq!(again.expect("wisdom").to_string(), wisdom.to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use consort_sandbox::seeds;

    use super::*;

    /// Returns the corpus of a target.
    fn corpus(name: &str) -> Vec<Vec<u8>> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = match name {
            "machine" => own.join("../../lab/consort-sim/machines"),
            _ => own.join("corpus").join(name),
        };
        let files = fs::read_dir(&folder).expect("a corpus").map(|file| file.expect("a file"));
        let mut paths: Vec<_> = files.map(|file| file.path()).collect();
        paths.sort();
        let all: Vec<_> = paths.into_iter().map(|path| fs::read(path).expect("bytes")).collect();
        assert!(!all.is_empty(), "{} is empty", folder.display());
        all
    }

    /// Random numbers: SplitMix64 (Steele, Lea & Flood 2014).
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }

        fn below(&mut self, most: usize) -> usize {
            usize::try_from(self.next() % most.max(1) as u64).unwrap_or(0)
        }
    }

    /// Makes a few changes: bytes are replaced, removed, repeated, or taken from another input.
    fn change(bytes: &mut Vec<u8>, others: &[Vec<u8>], numbers: &mut Numbers) {
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len() + 1);
            let end = (at + 1 + numbers.below(24)).min(bytes.len());
            match numbers.below(5) {
                0 if at < bytes.len() => {
                    const BYTES: &[u8] = b"\0\xff\n\"=[]{},.-0129eE#(";
                    bytes[at] = BYTES[numbers.below(BYTES.len())];
                }
                1 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
                2 => drop(bytes.drain(at.min(end)..end)),
                3 => {
                    let part = bytes[at.min(end)..end].to_vec();
                    bytes.splice(at..at, part);
                }
                _ => {
                    let other = &others[numbers.below(others.len())];
                    let from = numbers.below(other.len());
                    let part = &other[from..(from + 1 + numbers.below(64)).min(other.len())];
                    bytes.splice(at..at, part.iter().copied());
                }
            }
        }
    }

    #[test]
    fn cargo_fuzz_has_a_program_for_each_target() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        for (name, _) in TARGETS {
            let path = format!("fuzz_targets/{name}.rs");
            let program = fs::read_to_string(folder.join(&path)).expect("a program");
            assert!(program.contains(&format!("consort_fuzzing::{name}(")), "{path}: {program}");
            assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"{path}\"")), "{path}");
        }
        let files = fs::read_dir(folder.join("fuzz_targets")).expect("a folder");
        assert_eq!(files.count(), TARGETS.len());
    }

    /// `TEST_SEED=N` repeats one change.
    #[test]
    fn targets_take_the_corpus_and_changes_of_it() {
        for (name, target) in TARGETS {
            let corpus = corpus(name);
            corpus.iter().for_each(|input| target(input));
            for seed in seeds::seeds(1000, 20_000, &[]) {
                let mut numbers = Numbers(seed);
                let mut input = corpus[numbers.below(corpus.len())].clone();
                change(&mut input, &corpus, &mut numbers);
                let played = std::panic::catch_unwind(|| target(&input));
                assert!(played.is_ok(), "{name}, TEST_SEED={seed}: {}", input.escape_ascii());
            }
        }
    }
}
