//! P3, P4, P5 (Dinan et al. 2014, sections 3.1 to 3.4): a ping-pong, an all-to-all and a stencil
//! with counting puts, against the operations that these replace.

use anyhow::{Result, ensure};

use super::experiment::{Experiment, Outcome};
use crate::{
    page::Page,
    units::{ratio, size},
    usage::Usage,
    workloads::counting::{METHODS, Race, Times, Workload, show},
};

/// The paper's machine.
pub const MACHINE: &str = "xeon-x5680-infiniband";

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
    let pes = experiment.team_size();
    let says = "with counting puts the stencil scales, with flags it does not; the gain shrinks \
                as the problem grows.";
    run(experiment, Workload::Stencil, pes, says)
}

fn run(experiment: &Experiment<'_>, workload: Workload, pes: u32, says: &str) -> Result<Outcome> {
    let sizes_bytes = workload.sizes_bytes();
    let Experiment { budget, stop, .. } = *experiment;
    let race = Race { workload, pes, waiting: None, sizes_bytes, budget, stop };
    let times = of_one_class(race.run()?);
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        let verdict = "nothing could be measured: the machine changed in every block".to_owned();
        return Ok(Outcome { verdict, page: Page::default(), quantities: Vec::new() });
    };
    let mut quantities = Vec::new();
    for Times { bytes, over_counted, .. } in &times {
        for (&over, method) in over_counted.iter().zip(&METHODS[1..]) {
            let what = format!("{}, {method} over {}, {bytes} B", name(workload), METHODS[0]);
            let figure = experiment.source.quantity(MACHINE, what, "ratio");
            quantities.push(figure.with_pes(pes).native(over));
        }
    }
    let gain = |times: &Times| {
        let others = times.over_counted.iter().zip(&METHODS[1..]);
        let gains: Vec<String> =
            others.map(|(&over, other)| format!("{} as fast as {other}", ratio(over))).collect();
        format!("{} {}", size(times.bytes as u64), gains.join(" and "))
    };
    let class = first.class.map_or("sharing cores".to_owned(), |class| class.to_string());
    let (first, last) = (gain(first), gain(last));
    let verdict = format!("{pes} PEs, {class}: by counting puts {first}; {last}");
    let mut page = Page::default();
    show(&mut page, workload, &times);
    page.lines("\n");
    page.paragraph(format!("The paper: {says}"));
    Ok(Outcome { verdict, page, quantities })
}

const fn name(workload: Workload) -> &'static str {
    match workload {
        Workload::PingPong => "ping-pong",
        Workload::Bundle => "ping-pong of bundles",
        Workload::AllToAll => "all-to-all",
        Workload::Stencil => "stencil",
    }
}

/// The times of the class in which most sizes have times.
fn of_one_class(times: Vec<Times>) -> Vec<Times> {
    let count = |class| times.iter().filter(|one| one.class == class).count();
    let most = times.iter().map(|one| one.class).max_by_key(|&class| count(class)).flatten();
    times.into_iter().filter(|one| one.class == most).collect()
}
