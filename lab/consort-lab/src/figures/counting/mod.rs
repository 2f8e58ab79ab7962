//! P3, P4, P5 (Dinan et al. 2014, sections 3.1 to 3.4): a ping-pong, an all-to-all and a stencil
//! with counting puts, compared with the operations that these replace.
//!
//! `simulated` runs the same programs on the paper's machine. The stencil runs with several numbers
//! of PEs. Either the part of each PE stays the same (weak scaling), or all PEs share one grid
//! (strong scaling).

mod simulated;

use anyhow::{Result, ensure};

pub use simulated::{
    all_to_all as simulated_all_to_all, ping_pong as simulated_ping_pong, stencils,
};

use super::{
    experiment::{Experiment, Outcome},
    figure::Figure,
    quantity::Quantity,
};
use crate::simulation::counting::Grid;
use consort_bench::{
    page::Page,
    units::{counted, ratio, size},
    workloads::counting::{METHODS, Race, Times, Workload, show},
};
use consort_console::usage::Usage;

/// The paper's machine.
pub const MACHINE: &str = "xeon-x5680-infiniband";

figures! { pub PING_PONG_FIGURES of "P3", "section 3.1, figure 3": "ratio":
    // "the latency is approximately halved for small messages".
    PING_PONG["ping-pong, put, fence, flag over counted put, ", " B";
        8 | 56 | 64 => (MACHINE == 2.0), 256 | 1024 | 4096 => ()]
    // "For larger message sizes, the cost associated with the fence and flag update operations is
    // amortized over a larger message transfer".
    LARGE_BALL("ping-pong, put, fence, flag over counted put, 4096 B / 8 B", MACHINE <= 1.0)
}

figures! { pub ALL_TO_ALL_FIGURES of "P4", "section 3.2, figure 4": "ratio":
    // "The barrier implementation achieves the lowest bandwidth"; "the CT version of the
    // benchmark provides the best performance".
    FLAG["all-to-all, put, fence, flag over counted put, ", " B";
        8 | 64 | 512 | 4096 | 32768 => (MACHINE >= 1.0)]
    BARRIER["all-to-all, put, barrier over counted put, ", " B";
        8 | 64 | 512 | 4096 | 32768 => ()]
    BARRIER_OVER_FLAG["all-to-all, put, barrier over put, fence, flag, ", " B";
        8 | 64 | 512 | 4096 | 32768 => (MACHINE >= 1.0)]
}

figures! { pub STENCIL_FIGURES of "P5", "sections 3.3 and 3.4, figures 5 and 6": "ratio":
    // The cost of synchronization by flags is high, "resulting in poor scaling. Counting puts
    // eliminate the overhead".
    STENCIL("12800 x 1280, put, fence, flag over counted put", MACHINE >= 1.0)
    WEAK["stencil, put, fence, flag over counted put, ", " B"; 64 | 256 | 1024 | 4096 | 16384 => ()]
    // "the performance difference between the two implementations decreases with an increase in
    // problem size".
    GROWTH("204800 x 1280 over 12800 x 1280, gain of counted put", MACHINE <= 1.0)
}

/// Section 3.3: the grid of the strong scaling.
const STRONG: Grid = Grid { columns: 12_800, rows: 1280 };
/// A PE's part of a row in the weak scaling.
const WEAK_BYTES: usize = 1024;

/// Returns the quantities of the figures with this size.
fn of_size(figures: &'static [Figure], bytes: usize) -> impl Iterator<Item = Quantity> {
    figures.iter().filter(move |one| one.at as usize == bytes).map(|one| one.on(MACHINE))
}

/// Returns the figures of the strong scaling with their values, from the times of an iteration with
/// counting puts and with flags. A single PE has no peer to notify.
fn strong(pes: u32, ns: [f64; 2]) -> Vec<(Quantity, f64)> {
    let Grid { columns, rows } = STRONG;
    let rates = METHODS.iter().zip(ns).map(|(method, ns)| {
        let what = format!("{columns} x {rows}, {method}");
        (Quantity::new(MACHINE, what, "Gflop/s"), STRONG.gflops(ns))
    });
    let over = (pes > 1).then(|| (STENCIL.on(MACHINE), ns[1] / ns[0]));
    rates.chain(over).map(|(figure, value)| (figure.with_pes(pes), value)).collect()
}

/// P3. Runs the experiment and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn ping_pong(experiment: &Experiment<'_>) -> Result<Outcome> {
    ensure!(
        experiment.pes.is_none_or(|pes| pes == 2),
        Usage("--pes: a ping-pong has two PEs".to_owned())
    );
    let says = "half the latency for small messages, and less of a gain for larger ones.";
    run(experiment, Workload::PingPong, 2, says)
}

/// P4. Runs the experiment and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn all_to_all(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.team_size();
    let says = "counting puts are best and the barrier is worst; the gain shrinks with the size.";
    run(experiment, Workload::AllToAll, pes, says)
}

/// P5. Runs the experiment and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn stencil(experiment: &Experiment<'_>) -> Result<Outcome> {
    let most = experiment.team_size();
    let fewer: Vec<u32> = (0..).map(|power| 1 << power).take_while(|&pes| pes < most).collect();
    let fewer = if experiment.pes.is_some() { Vec::new() } else { fewer };
    // Half of the time is for all sizes, and the rest for each number of PEs.
    let parts = u32::try_from(2 * fewer.len() + 1)?;
    let each = Experiment { budget: experiment.budget / 2 / parts, ..*experiment };
    let says = "with counting puts the stencil scales, with flags it does not; the gain shrinks \
                as the problem grows.";
    let whole = Experiment { budget: experiment.budget / 2, ..*experiment };
    let mut outcome = run(&whole, Workload::Stencil, most, says)?;
    for &pes in fewer.iter().filter(|&&pes| pes > 1) {
        let race = race(&each, Workload::Stencil, pes, &[WEAK_BYTES]);
        outcome.quantities.extend(quantities(&race, &of_one_class(race.run()?)));
    }
    let (mut rows, mut last) = (Vec::new(), None);
    for &pes in fewer.iter().chain([&most]) {
        let columns = STRONG.columns.div_ceil(pes as usize);
        let bytes = [columns * size_of::<f64>()];
        let race = Race {
            rounds: u32::try_from(STRONG.rows).ok(),
            ..race(&each, Workload::Stencil, pes, &bytes)
        };
        let Some(times) = of_one_class(race.run()?).into_iter().next() else { continue };
        let ns = [0, 1].map(|method: usize| times.methods[method].median * STRONG.rows as f64);
        rows.push(vec![
            pes.to_string(),
            format!("{:.2}", STRONG.gflops(ns[0])),
            format!("{:.2}", STRONG.gflops(ns[1])),
            ratio(ns[1] / ns[0]),
        ]);
        let figures = strong(pes, ns);
        outcome.quantities.extend(figures.into_iter().map(|(one, value)| one.native(value)));
        last = Some((pes, ns));
    }
    let Grid { columns, rows: lines } = STRONG;
    let header = ["PEs", METHODS[0], METHODS[1], "flag / count"].map(str::to_owned);
    outcome.page.lines("\n");
    outcome.page.paragraph(format!(
        "{columns} x {lines} in Gflop/s, on {}; the paper has 4 PEs on each node, of at most 15",
        counted(experiment.cores as usize, "core")
    ));
    outcome.page.table(header, rows, 0..=3);
    if let Some((pes, ns)) = last {
        outcome.verdict += &format!(
            "; {columns} x {lines} among {pes} PEs, of {}, {} as fast",
            counted(experiment.cores as usize, "core"),
            ratio(ns[1] / ns[0])
        );
    }
    Ok(outcome)
}

fn run(experiment: &Experiment<'_>, workload: Workload, pes: u32, says: &str) -> Result<Outcome> {
    let race = race(experiment, workload, pes, workload.sizes_bytes());
    let times = of_one_class(race.run()?);
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        let verdict = "nothing could be measured: the machine changed in every block".to_owned();
        return Ok(Outcome { verdict, page: Page::default(), quantities: Vec::new() });
    };
    let quantities = quantities(&race, &times);
    let gain = |times: &Times| {
        let others = times.over_counted.iter().zip(&METHODS[1..]);
        let gains: Vec<String> =
            others.map(|(&over, other)| format!("{} as fast as {other}", ratio(over))).collect();
        format!("{} {}", size(times.bytes as u64), gains.join(" and "))
    };
    let class = first.class.map_or("sharing cores".to_owned(), |class| class.to_string());
    let (first, last) = (gain(first), gain(last));
    let verdict = format!("{pes} PEs, {class}: with counting puts {first}; {last}");
    let mut page = Page::default();
    show(&mut page, workload, &times);
    page.lines("\n");
    page.paragraph(format!("The paper: {says}"));
    Ok(Outcome { verdict, page, quantities })
}

fn race<'r>(
    experiment: &Experiment<'r>,
    workload: Workload,
    pes: u32,
    sizes_bytes: &'r [usize],
) -> Race<'r> {
    let Experiment { budget, stop, .. } = *experiment;
    Race { workload, pes, waiting: None, sizes_bytes, rounds: None, budget, stop }
}

/// Returns the figures of a workload's times.
fn quantities(race: &Race<'_>, times: &[Times]) -> Vec<Quantity> {
    let mut all = Vec::new();
    let methods: [&'static [Figure]; 2] = match race.workload {
        Workload::PingPong => [&PING_PONG, &[]],
        Workload::AllToAll => [&FLAG, &BARRIER],
        Workload::Stencil => [&WEAK, &[]],
    };
    for Times { bytes, over_counted, .. } in times {
        let mut add = |figures, value| {
            let of_size = of_size(figures, *bytes);
            all.extend(of_size.map(|one| one.with_pes(race.pes).native(value)));
        };
        methods.into_iter().zip(over_counted).for_each(|(figures, &over)| add(figures, over));
        if let [flag, barrier] = over_counted[..] {
            add(&BARRIER_OVER_FLAG, barrier / flag);
        }
    }
    all
}

const fn name(workload: Workload) -> &'static str {
    match workload {
        Workload::PingPong => "ping-pong",
        Workload::AllToAll => "all-to-all",
        Workload::Stencil => "stencil",
    }
}

/// Returns the times of the class that has times for most sizes.
fn of_one_class(times: Vec<Times>) -> Vec<Times> {
    let count = |class| times.iter().filter(|one| one.class == class).count();
    let most = times.iter().map(|one| one.class).max_by_key(|&class| count(class)).flatten();
    times.into_iter().filter(|one| one.class == most).collect()
}
