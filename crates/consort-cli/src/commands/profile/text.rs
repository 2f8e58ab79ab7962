//! The profile of a job for people. The first screen answers whether faster calls are worth it.

use consort_console::output::{brief_in_words, finish, table, time, wrapped};
use consort_tuner::PeProfile;

use super::{
    joined::{JobProfile, JoinedCall, computing_ns, in_calls_ns, total_ns, waiting_ns},
    tuning::{AdvisedJob, Tuning},
};

/// The most rows of calls.
const MOST_CALLS: usize = 12;
/// The most rows of PEs.
const MOST_PES: usize = 8;

/// Returns the text of several jobs.
pub(super) fn of_jobs(jobs: &[AdvisedJob]) -> String {
    let texts: Vec<String> = jobs.iter().map(of_job).collect();
    texts.join("\n")
}

fn of_job(job: &AdvisedJob) -> String {
    let AdvisedJob { job: profile, tuning } = job;
    let calls: Vec<_> = profile.calls.iter().zip(tuning).collect();
    let [summary, calls, served, pes] = [
        summary(profile, tuning),
        table_of_calls(profile, &calls),
        table_of_algorithms(&calls),
        table_of_pes(profile),
    ];
    format!("{summary}\n{calls}\n{served}\n{pes}")
}

/// Returns a share in per cent.
fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns a time with its share of another one.
fn with_share(ns: f64, of_ns: f64) -> String {
    format!("{} ({})", time(ns), percent(ns / of_ns))
}

/// Returns how the PEs spent their time, and the most that could be gained in each way.
fn summary(job: &JobProfile, tuning: &[Tuning]) -> String {
    let Some(first) = job.pes.first() else { return String::new() };
    let whole_ns = job.mean_ns(total_ns);
    let name = if first.name.is_empty() { String::new() } else { format!(" `{}`", first.name) };
    let jobs = if job.jobs == 1 { "Job".to_owned() } else { format!("{} jobs", job.jobs) };
    let (count, fabric) = (first.pes, &first.fabric);
    let mut text = wrapped(&format!(
        "{jobs}{name}: {count} PEs ({fabric}) ran for {}. The mean of the PEs:",
        time(whole_ns)
    ));
    text.push('\n');
    let working_ns = |pe: &PeProfile| in_calls_ns(pe).saturating_sub(waiting_ns(pe));
    let mut rows = table(["", "time", "share"]);
    for (what, ns) in [
        ("computing, outside of calls", job.mean_ns(computing_ns)),
        ("waiting in calls", job.mean_ns(waiting_ns)),
        ("working in calls", job.mean_ns(working_ns)),
        ("waiting elsewhere: for words, requests", job.mean_ns(|pe| pe.waiting_elsewhere_ns)),
    ] {
        rows.add_row([what.to_owned(), time(ns), percent(ns / whole_ns)]);
    }
    text += &finish(rows, &[1, 2]);
    text += "\nIs it worth it?\n";
    text += &advice(job, tuning, whole_ns);
    let incomplete = job.incomplete();
    if !incomplete.is_empty() {
        let ranks: Vec<String> = incomplete.iter().map(u32::to_string).collect();
        text += &wrapped(&format!(
            "The last calls of these PEs may be missing, because their process ended before the \
             job did: {}.",
            ranks.join(", ")
        ));
    }
    text
}

/// Returns the most that even work, faster calls and tuning would save.
fn advice(job: &JobProfile, tuning: &[Tuning], whole_ns: f64) -> String {
    let by_waiting = |pe: &&PeProfile| waiting_ns(pe);
    let (Some(least), Some(most)) =
        (job.pes.iter().min_by_key(by_waiting), job.pes.iter().max_by_key(by_waiting))
    else {
        return String::new();
    };
    let uneven_ns = job.mean_ns(waiting_ns) - waiting_ns(least) as f64;
    let mut text = wrapped(&format!(
        "  More even work would save at most {}: PE {} waits for {} in calls, and PE {}, which \
         comes last, for {}.",
        with_share(uneven_ns, whole_ns),
        most.rank,
        time(waiting_ns(most) as f64),
        least.rank,
        time(waiting_ns(least) as f64),
    ));
    let fastest_ns = job.pes.iter().map(in_calls_ns).min().unwrap_or(0) as f64;
    text += &wrapped(&format!(
        "  Faster calls would save at most {}, because no PE spends less in calls.",
        with_share(fastest_ns, whole_ns)
    ));
    let saved_ns: f64 = tuning
        .iter()
        .map(|one| if let Tuning::Gain { saved_ns, .. } = one { *saved_ns } else { 0.0 })
        .sum();
    let untuned = job.calls.iter().zip(tuning).filter(|(_, one)| **one == Tuning::NotTuned);
    let untuned = untuned.filter(|(call, _)| call.all.is_blocking).map(|(call, _)| call.all.ns);
    let untuned_ns = untuned.sum::<u64>() as f64;
    let all_ns = job.mean_ns(in_calls_ns) * job.pes.len() as f64;
    if saved_ns > 0.0 {
        text += &wrapped(&format!(
            "  Tuned algorithms would save about {}: see `tuning` below.",
            with_share(saved_ns, whole_ns)
        ));
    }
    text += &wrapped(&if untuned_ns > 0.0 {
        format!(
            "  Calls that are not tuned take {} of the time in calls, and their gain is not known: \
             `consort tune` measures it.",
            percent(untuned_ns / all_ns)
        )
    } else {
        "  All calls that can be tuned are tuned.".to_owned()
    });
    text
}

/// Returns the calls with the most time: how long they took, and which PEs waited.
fn table_of_calls(job: &JobProfile, calls: &[(&JoinedCall, &Tuning)]) -> String {
    let whole_ns = job.mean_ns(total_ns) * job.pes.len() as f64;
    let mut rows = table(["#", "call", "calls", "a call", "share", "waiting", "waits most, least"]);
    for (index, (call, _)) in calls.iter().take(MOST_CALLS).enumerate() {
        let (ns, waiting_ns) = (call.all.ns as f64, call.all.waiting_ns as f64);
        let pes = call.least_and_most().filter(|_| call.all.is_blocking);
        let pes = pes.map_or_else(String::new, |[least, most]| format!("{}, {}", most.0, least.0));
        let share = |share: f64| if call.all.is_blocking { percent(share) } else { String::new() };
        rows.add_row([
            (index + 1).to_string(),
            call.all.name.clone(),
            call.count.to_string(),
            time(ns / call.all.count as f64),
            share(ns / whole_ns),
            share(waiting_ns / ns.max(1.0)),
            pes,
        ]);
    }
    let mut text = finish(rows, &[0, 2, 3, 4, 5]);
    if calls.len() > MOST_CALLS {
        text += &format!("... and {} more, which --json has\n", calls.len() - MOST_CALLS);
    }
    if calls.iter().any(|(call, _)| !call.all.is_blocking) {
        text += &wrapped(
            "The time of a call that was started is the time until it was complete, while its PE \
             did other work.",
        );
    }
    text
}

/// Returns a place without all folders but the last.
fn short(site: &str) -> &str {
    let folder = site.rfind('/').and_then(|file| site[..file].rfind('/'));
    folder.map_or(site, |folder| &site[folder + 1..])
}

/// Returns the places of the same calls, the algorithms that served them, and what tuning would
/// change.
fn table_of_algorithms(calls: &[(&JoinedCall, &Tuning)]) -> String {
    let mut rows = table(["#", "at", "algorithm", "chosen by", "tuning"]);
    for (index, (call, tuning)) in calls.iter().take(MOST_CALLS).enumerate() {
        let tuning = match tuning {
            Tuning::Tuned => "tuned".to_owned(),
            Tuning::NotTuned => "not tuned".to_owned(),
            Tuning::Gain { faster, saved_ns } => {
                format!("{} less by {}", time(*saved_ns), faster.replace(',', ", "))
            }
            Tuning::Fixed => String::new(),
        };
        rows.add_row([
            (index + 1).to_string(),
            short(&call.all.site).to_owned(),
            brief_in_words(&call.all.algorithm),
            call.all.origin.map_or("library", |origin| origin.name()).to_owned(),
            tuning,
        ]);
    }
    finish(rows, &[0])
}

/// Returns the PEs, or those that wait the most and the least if there are many.
fn table_of_pes(job: &JobProfile) -> String {
    let mut pes: Vec<&PeProfile> = job.pes.iter().collect();
    pes.sort_by_key(|pe| std::cmp::Reverse(waiting_ns(pe)));
    if pes.len() > MOST_PES {
        pes.drain(MOST_PES / 2..pes.len() - MOST_PES / 2);
    } else {
        pes.sort_by_key(|pe| pe.rank);
    }
    let mut rows =
        table(["PE", "computing", "waiting", "working", "elsewhere", "yields", "sleeps"]);
    for pe in &pes {
        let (whole_ns, in_calls_ns, waiting_ns) =
            (total_ns(pe) as f64, in_calls_ns(pe), waiting_ns(pe));
        let share = |ns: u64| percent(ns as f64 / whole_ns);
        let counted = |count: u64, ns: u64| format!("{count}: {}", time(ns as f64));
        rows.add_row([
            pe.rank.to_string(),
            share(computing_ns(pe)),
            share(waiting_ns),
            share(in_calls_ns.saturating_sub(waiting_ns)),
            share(pe.waiting_elsewhere_ns),
            counted(pe.yields, pe.yielding_ns),
            counted(pe.sleeps, pe.sleeping_ns),
        ]);
    }
    finish(rows, &[0, 1, 2, 3, 4, 5, 6])
}
