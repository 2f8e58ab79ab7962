//! Arguments that several commands share, and their parsing.
//!
//! The unit of a size is a power of 1024 in every spelling: `8k`, `8kB` and `8KiB` are 8192,
//! because messages of "8 kB" usually have that size.

use std::{
    error::Error,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use anyhow::Result;
use clap::{
    Args, CommandFactory, Parser,
    builder::{
        PathBufValueParser, PossibleValue, PossibleValuesParser, StringValueParser,
        TypedValueParser,
    },
    error::{ContextValue, ErrorKind},
};
use consort::{
    Rank,
    launch::{Fabric, ProcessShape},
    sync_modes::{SyncMode, SyncModes},
    tune::{Collective, Query},
};
use consort_bench::{harness::Mode, units};
use consort_fabric::{OperatorClass, environment::variable};

use crate::{
    output::{files::try_to_write, print_error_line},
    require,
};

/// The variable with the number of PEs of a process.
pub const PES_PER_PROCESS: &str = "CONSORT_PES_PER_PROCESS";

/// A collective, and the details by which its algorithm is chosen.
#[derive(Args, Clone, Copy, Debug)]
pub struct Call {
    /// The operation: barrier, broadcast, all_reduce and so on
    #[arg(value_name = "COLLECTIVE")]
    pub collective: Collective,
    /// Bytes of a block, such as 8192, 8k or 1M
    #[arg(long, value_name = "SIZE", default_value = "8", value_parser = size)]
    pub bytes: usize,
    /// strict, loose, mine (default), or such as mine/all
    ///
    /// The synchronization modes, or ENTRY/EXIT.
    #[arg(long, value_name = "MODE", default_value = "mine", hide_default_value = true)]
    pub sync: SyncModes,
    /// The buffers lie in symmetric memory
    ///
    /// They must in a call that may return early.
    #[arg(long)]
    pub symmetric: bool,
    /// The operator does not commute, as for closures
    #[arg(long)]
    pub ordered: bool,
}

impl Call {
    /// Returns the query about this call among `pes` PEs.
    pub fn query(&self, pes: u32) -> Query {
        let operator =
            if self.ordered { OperatorClass::Ordered } else { OperatorClass::Commutative };
        Query {
            collective: self.collective,
            sync: self.sync,
            pes,
            bytes: self.bytes as u64,
            operator,
            // A call that may return early needs its data in symmetric memory.
            symmetric: self.symmetric || self.sync.exit == SyncMode::None,
        }
    }
}

/// Reads whether calls are timed in a row or separately.
pub fn mode() -> impl TypedValueParser<Value = Mode> {
    let throughput = PossibleValue::new(Mode::Throughput.name()).help("In a row");
    let latency = PossibleValue::new(Mode::Latency.name()).help("Each alone");
    PossibleValuesParser::new([throughput, latency])
        .map(|name| if name == Mode::Latency.name() { Mode::Latency } else { Mode::Throughput })
}

/// Reads the name of one of these values.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    values: impl IntoIterator<Item = T>,
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values: Vec<T> = values.into_iter().collect();
    let names = values.iter().map(|&value| name(value));
    PossibleValuesParser::new(names).map(move |text| {
        let found = values.iter().copied().find(|&value| name(value) == text);
        found.expect("the parser refuses other names")
    })
}

/// Reads the path of a file to write, or `-`. Tries immediately whether it can be written, not
/// after minutes of measuring.
pub fn writable() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path.as_os_str() != "-" {
            try_to_write(&path).map_err(|error| OutputFileError(format!("{error:#}")))?;
        }
        Ok::<PathBuf, OutputFileError>(path)
    })
}

/// An output file that cannot be written: an error, but not invalid usage.
#[derive(Debug)]
struct OutputFileError(String);

impl fmt::Display for OutputFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for OutputFileError {}

/// Ends the process with an error of the parser: as invalid usage, unless a file cannot be written.
fn end_with(error: &clap::Error) -> ! {
    match error.source().and_then(|source| source.downcast_ref::<OutputFileError>()) {
        Some(unwritable) => {
            print_error_line(&format!("error: {unwritable}"));
            process::exit(1)
        }
        None => error.exit(),
    }
}

/// Reads the path of a file to write, and tries it immediately.
pub fn writable_file() -> impl TypedValueParser<Value = PathBuf> {
    writable().try_map(|path| match path.as_os_str() == "-" {
        true => Err("a report is a file: name it, as in report.html"),
        false => Ok(path),
    })
}

/// Parses the arguments of the command. A file that follows `--json` or `--csv` as a separate word,
/// where it would be another argument, is an error that suggests `--json=FILE`.
pub fn parsed<P: Parser>(words: Vec<OsString>) -> P {
    let named = OUTPUTS.iter().find_map(|output| Some((output, file_after(output, &words)?)));
    // A word with such an extension is certainly a file. Other words are left to the parser.
    if let Some((output, file)) = named.filter(|(output, file)| *file == "-" || output.names(file))
    {
        misplaced::<P>(output, file).exit();
    }
    let named = named.map(|(output, file)| (output, file.to_string_lossy().into_owned()));
    P::try_parse_from(&words).unwrap_or_else(|error| {
        let is_bad = |file: &String| {
            let mut context = error.context();
            context.any(|(_, it)| matches!(it, ContextValue::String(bad) if bad == file))
        };
        match named.filter(|(_, file)| is_bad(file)) {
            Some((output, file)) => misplaced::<P>(output, OsStr::new(&file)).exit(),
            None => end_with(&error),
        }
    })
}

/// An option whose file is named after a `=`.
struct OutputOption {
    option: &'static str,
    /// The file extensions by which a misplaced file is recognized.
    extensions: &'static [&'static str],
}

const OUTPUTS: [OutputOption; 2] = [
    OutputOption { option: "--json", extensions: &["json", "jsonl", "ndjson"] },
    OutputOption { option: "--csv", extensions: &["csv", "tsv"] },
];

impl OutputOption {
    fn names(&self, file: &OsStr) -> bool {
        let extension = Path::new(file).extension();
        extension.is_some_and(|it| self.extensions.iter().any(|known| it == *known))
    }
}

/// Returns the word after an option, unless it is an option. Ignores commands whose later words
/// belong to another program.
fn file_after<'w>(output: &OutputOption, words: &'w [OsString]) -> Option<&'w OsStr> {
    let is_of_others = |name: &OsString| ["run", "cc", "c++"].into_iter().any(|one| name == one);
    let own = words.get(1).is_some_and(|name| !is_of_others(name)).then_some(words)?;
    let own = own.split(|word| word == "--").next()?;
    let at = own.iter().position(|word| word == output.option)?;
    let next = own.get(at + 1)?;
    let is_option = next.as_encoded_bytes().starts_with(b"-") && next != "-";
    (!is_option).then_some(next)
}

fn misplaced<P: CommandFactory>(
    OutputOption { option, .. }: &OutputOption,
    file: &OsStr,
) -> clap::Error {
    let file = file.display();
    P::command().error(
        ErrorKind::UnknownArgument,
        format!(
            "unexpected {file} after {option}: write {option}={file} for a file, or {option} \
             alone to print"
        ),
    )
}

/// The letters of the units, each 1024 times the previous one.
const UNITS: [char; 4] = ['k', 'M', 'G', 'T'];

/// Reads a size such as `8192`, `8k`, `8KiB`, `8kB`, `1M` or `4MiB`.
///
/// # Errors
/// A sentence with the remedy.
pub fn size(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let letter = unit.chars().next().filter(|letter| !matches!(letter, 'b' | 'B'));
    let rest = letter.map_or(unit, |letter| &unit[letter.len_utf8()..]);
    let power = match letter {
        None => Some(0),
        Some(letter) => {
            let place = UNITS.iter().position(|unit| unit.eq_ignore_ascii_case(&letter));
            place.map(|place| place + 1)
        }
    };
    let spelt = match rest {
        "" | "B" | "b" => true,
        "iB" | "ib" => letter.is_some(),
        _ => false,
    };
    let (Some(power), true, false) = (power, spelt, number.is_empty()) else {
        return Err(format!(
            "invalid size `{text}`: write bytes, as in 8192, 8k, 8KiB, 1M or 4MiB"
        ));
    };
    let factor = 1_usize.checked_shl(10 * u32::try_from(power).unwrap_or(u32::MAX));
    let bytes = number.parse::<usize>().ok().zip(factor);
    bytes
        .and_then(|(number, factor)| number.checked_mul(factor))
        .ok_or_else(|| format!("size `{text}` is too large: use at most 1T"))
}

/// Reads the size of a message of doubles, for measuring.
///
/// # Errors
/// A sentence with the remedy.
pub fn size_of_doubles(text: &str) -> Result<u64, String> {
    const MOST_BYTES: usize = 1 << 30;
    let bytes = size(text)?;
    if bytes == 0 || bytes % 8 != 0 {
        return Err(format!("{bytes} bytes are not whole doubles: use a multiple of 8"));
    }
    if bytes > MOST_BYTES {
        return Err(format!(
            "{} is too large to measure: use at most 1 GiB",
            units::size(bytes as u64)
        ));
    }
    Ok(bytes as u64)
}

/// Reads the size of a block of doubles, in memory.
///
/// # Errors
/// A sentence with the remedy.
pub fn block(text: &str) -> Result<usize, String> {
    let bytes = size_of_doubles(text)?;
    usize::try_from(bytes).map_err(|_| format!("{text} is more than this machine can address"))
}

/// The largest number of PEs of a job.
pub const MOST_PES: u32 = Rank::new(consort::launch::MOST_PES).0;

/// Reads a number of PEs.
///
/// # Errors
/// A sentence with the remedy.
pub fn pes(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|&pes| (1..=MOST_PES).contains(&pes));
    number.ok_or_else(|| format!("invalid number of PEs `{text}`: use 1 to {MOST_PES}"))
}

/// Reads a number from 1 to `most`.
pub fn counts(most: usize) -> impl TypedValueParser<Value = usize> {
    StringValueParser::new().try_map(move |text| {
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| format!("use a number from 1 to {most}"))
    })
}

/// Reads a number of seconds.
///
/// # Errors
/// A sentence with the remedy.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "use a number of seconds, as in 2 or 0.5".to_owned())
}

/// Checks that the environment does not contradict the command line's number of PEs per process.
///
/// # Errors
/// When it does.
pub fn check_environment(fabric: Fabric) -> Result<()> {
    let said = variable(PES_PER_PROCESS).and_then(|said| said.into_string().ok());
    if let (Some(shape), Some(said)) = (fabric.shape(), said) {
        let each = shape.pes_each;
        require!(
            said.trim().parse() == Ok(each),
            "--fabric {fabric} has {each} PEs per process, but {PES_PER_PROCESS} is {said}: unset \
             it, or use --fabric {}:{}",
            fabric.name(),
            said.trim()
        );
    }
    Ok(())
}

/// Checks that PEs fill the processes of an MPI.
///
/// # Errors
/// When the last process would have fewer PEs than the others.
pub fn check_processes(shape: ProcessShape, pes: u32) -> Result<()> {
    let each = shape.pes_each;
    require!(
        (pes as usize).is_multiple_of(each),
        "--pes {pes}: with {each} PEs a process it must be a multiple of {each}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_after_an_option_is_recognized() {
        let found = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let file = OUTPUTS.iter().find_map(|output| file_after(output, &words));
            file.map(|file| file.to_string_lossy().into_owned())
        };
        assert_eq!(found("consort bench barrier --json out"), Some("out".to_owned()));
        assert_eq!(found("consort topo --json - scc"), Some("-".to_owned()));
        assert_eq!(found("consort bench barrier --csv out"), Some("out".to_owned()));
        for line in [
            "consort",
            "consort topo --json",
            "consort topo --json=out scc",
            "consort topo --json --source",
            "consort run -n 2 ./program --json out",
            "consort topo -- --json out",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn seconds_may_be_fractions() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["x", "-1", "nan", "inf", "1e30"] {
            assert!(seconds(bad).unwrap_err().contains("0.5"), "{bad}");
        }
    }

    #[test]
    fn units_are_powers_of_1024() {
        let sizes = ["8192", "8k", "8K", "8KiB", "8kB", "8kb", "8 KiB", "8192B", "0", "1M", "4MiB"];
        let bytes = sizes.map(|text| size(text).unwrap());
        let mib = 1 << 20;
        assert_eq!(bytes, [8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192, 0, mib, 4 * mib]);
        assert_eq!(size("3G"), Ok(3 << 30));
    }

    #[test]
    fn size_error_shows_a_valid_size() {
        for bad in ["banana", "", "k", "-8", "8.5k", "8x", "8iB", "8kBB", "8kilo", "0x10", "∞"] {
            let error = size(bad).unwrap_err();
            assert!(error.contains(bad) && error.contains("8KiB"), "{error}");
        }
        assert!(size("99999999999999999999").unwrap_err().contains("at most"));
        assert!(size("99999999T").unwrap_err().contains("at most"));
    }

    #[test]
    fn doubles_are_whole() {
        assert_eq!(size_of_doubles("8k"), Ok(8192));
        for bad in ["0", "10", "2G", "banana"] {
            assert!(size_of_doubles(bad).is_err(), "{bad}");
        }
    }
}
