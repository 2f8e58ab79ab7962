//! Measures locks of several libraries in situations in which locks are known to fail: more threads
//! than cores, long sections, bursts, many locks, readers and writers, condition variables.
//!
//! ```sh
//! cargo bench -p consort-bench --bench scenarios -- --threads 1,2,4,8 short long
//! cargo bench -p consort-bench --bench scenarios -- --busy 2 --json >busy.jsonl
//! ```
//!
//! The arguments name scenarios; without any, all are measured. `--help` lists them and the
//! options.
//!
//! In each round, every lock gets two blocks for each scenario and number of threads: a block that
//! gives the operations per second, their distribution over the threads and the processor time, and
//! a block in which every wait is timed. Blocks of different locks follow each other. The figures
//! are medians over the rounds, and the longest wait of all rounds.

mod block;
mod locks;
mod monitors;
mod scenario;
mod waits;

use std::{
    process::{Child, Command, ExitCode},
    thread,
    time::Duration,
};

use block::{Block, Setting};
use scenario::{SCENARIOS, Scenario};

const HELP: &str = "\
usage: cargo bench -p consort-bench --bench scenarios -- [OPTION]... [SCENARIO]...

  --threads N,...  numbers of threads [default: 1 to 4 times the cores]
  --busy N         run N busy processes meanwhile [default: 0]
  --ms N           milliseconds of a block [default: 500]
  --rounds N       rounds [default: 3]
  --json           print one JSON object per row";

/// The settings of a run.
struct Options {
    threads: Vec<usize>,
    busy: usize,
    setting: Setting,
    rounds: usize,
    json: bool,
    scenarios: Vec<&'static Scenario>,
}

/// Parses the arguments.
///
/// # Errors
/// Says which argument is wrong, and what to use instead.
fn options(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        threads: ramp(cores),
        busy: 0,
        setting: Setting { length: Duration::from_millis(500) },
        rounds: 3,
        json: false,
        scenarios: Vec::new(),
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            value.parse::<usize>().map_err(|_| format!("invalid number `{value}` of {argument}"))
        };
        match argument.as_str() {
            "--threads" => {
                let value = arguments.next().unwrap_or_default();
                let threads: Result<Vec<usize>, _> = value.split(',').map(str::parse).collect();
                options.threads =
                    threads.ok().filter(|all| !all.contains(&0)).ok_or_else(|| {
                        format!("invalid numbers of threads `{value}`: use numbers, such as 2,8")
                    })?;
            }
            "--busy" => options.busy = number()?,
            "--ms" => options.setting.length = Duration::from_millis(number()? as u64),
            "--rounds" => options.rounds = number()?.max(1),
            "--json" => options.json = true,
            // Cargo adds the first. It uses the second in tests of benchmarks.
            "--bench" => {}
            "--test" => {
                options.setting.length = Duration::from_millis(2);
                (options.threads, options.rounds) = (vec![2], 1);
            }
            "--help" => return Err(help()),
            name => {
                let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
                let unknown = || format!("unknown scenario `{name}`: --help lists them");
                options.scenarios.push(found.ok_or_else(unknown)?);
            }
        }
    }
    if options.scenarios.is_empty() {
        options.scenarios = SCENARIOS.iter().collect();
    }
    Ok(options)
}

fn help() -> String {
    let line = |scenario: &Scenario| format!("\n  {:10} {}", scenario.name, scenario.what);
    format!("{HELP}\n\nscenarios:{}", SCENARIOS.iter().map(line).collect::<String>())
}

/// Returns the numbers of threads up to 4 times the cores: each of the first eight, then fewer.
fn ramp(cores: usize) -> Vec<usize> {
    let most = 4 * cores;
    let powers = (4..usize::BITS).map(|power| 1 << power).take_while(|threads| *threads < most);
    let mut threads: Vec<usize> = (1..=most.min(8)).chain(powers).chain([cores, most]).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Processes that use a core all the time, until this is dropped.
struct BusyProcesses(Vec<Child>);

impl BusyProcesses {
    fn start(count: usize) -> std::io::Result<Self> {
        // If a process cannot start, dropping `processes` ends the others.
        let mut processes = Self(Vec::new());
        for _ in 0..count {
            let process = Command::new("sh").args(["-c", "while :; do :; done"]).spawn()?;
            processes.0.push(process);
        }
        Ok(processes)
    }
}

impl Drop for BusyProcesses {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn measure(options: &Options) {
    for scenario in &options.scenarios {
        for &threads in &options.threads {
            let round = |_| -> Vec<Block> {
                scenario.rows.iter().map(|row| (row.block)(threads, options.setting)).collect()
            };
            let rounds: Vec<Vec<Block>> = (0..options.rounds).map(round).collect();
            if !options.json {
                println!("{}, {threads} threads, {} busy processes", scenario.name, options.busy);
                println!("  {}", Block::HEADER);
            }
            for (index, row) in scenario.rows.iter().enumerate() {
                let block = Block::median_of(rounds.iter().map(|round| &round[index]));
                if options.json {
                    println!("{}", block.json(scenario.name, row.name, threads, options.busy));
                } else {
                    println!("  {:18}{}", row.name, block.line());
                }
            }
        }
    }
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let _busy = match BusyProcesses::start(options.busy) {
        Ok(busy) => busy,
        Err(error) => {
            eprintln!("cannot start a busy process: {error}");
            return ExitCode::FAILURE;
        }
    };
    measure(&options);
    ExitCode::SUCCESS
}
