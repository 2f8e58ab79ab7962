//! G9 (sections 3.6 and 5.4, table 2): the time to tune one size of a broadcast, and the time and
//! memory of a look-up in the result.
//!
//! Tuning a size here is one launch in which each candidate is measured at least once, in turn.
//! Candidates that do the same on this number of PEs count as one. The paper does not say how often
//! it measured each candidate. In place of its broadcasts of 4 and 32 769 bytes, there are
//! broadcasts of 8 and 32 768 bytes here.

use std::time::{Duration, Instant};

use anyhow::Result;
use consort::{
    sync_modes::SyncModes,
    tune::{Collective, Query},
};
use consort_tuner::{Catalog, Race, distinct};

use super::{
    experiment::{Experiment, Outcome},
    figure::Figure,
    look_up::{self, LookUps},
    networks::{CRAY, RANGER},
    quantity::Quantity,
};
use consort_bench::{
    harness::NativeWorkbench,
    page::Page,
    query_json::sums,
    units::{ratio, size, time},
};

figures! { pub FIGURES of "G9", "section 5.4, table 2": "ms":
    // The first size is 4 B in the paper, and the last one is printed as 32 769.
    TUNING["tuning a broadcast of ", " B";
        8 => (RANGER == 12.165, CRAY == 36.255),
        128 => (RANGER == 13.965, CRAY == 37.965),
        2048 => (RANGER == 17.625, CRAY == 47.925),
        32768 => (RANGER == 87.345, CRAY == 108.84),
    ]
    "ratio":
    GROWTH("tuning a broadcast of 32768 B over one of 8 B", RANGER == 7.18, CRAY == 3.002)
    // "negligible", which is taken as at most a tenth.
    LOOK_UP("look-up over a broadcast of 8 B", RANGER <= 0.1)
    "B":
    // "about 48 bytes".
    ENTRY("an entry of the table", RANGER ~ 48.0)
}

/// One size.
struct Tuned {
    figure: &'static Figure,
    candidates: usize,
    took_ns: f64,
    /// The time of a call with the candidate that was best in tuning, over the time with the best
    /// one.
    loss: f64,
    /// The time of a call with the best candidate.
    best_ns: f64,
}

/// Runs the experiment and judges the claim.
///
/// # Errors
/// When a job fails, or there is no configuration directory.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.team_size();
    let budget = experiment.budget / 5;
    let mut bench = NativeWorkbench::new(experiment.fabric, None);
    let mut all = Vec::new();
    for figure in &TUNING {
        let query = sums(Collective::Broadcast, SyncModes::MINE, pes, figure.at as usize, false);
        all.extend(tuned(&mut bench, &query, figure, budget)?);
    }
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Ok(Outcome::unmeasured("the machine changed in every block"));
    };
    let LookUps { entries, bytes, ns: look_up_ns } =
        look_up::measure(pes, budget, experiment.stop)?;
    let entry_bytes = bytes as f64 / entries.max(1) as f64;

    let mut quantities = Vec::new();
    for Tuned { figure, took_ns, loss, .. } in &all {
        for machine in [RANGER, CRAY] {
            quantities.push(figure.on(machine).native(took_ns / 1e6));
        }
        let what = format!("broadcast of {} B, what tuning chose over the best", figure.at);
        quantities.push(Quantity::new(RANGER, what, "ratio").with_pes(pes).native(*loss));
    }
    for machine in [RANGER, CRAY] {
        quantities.push(GROWTH.on(machine).native(last.took_ns / first.took_ns));
    }
    let share = look_up_ns / first.best_ns;
    quantities.push(LOOK_UP.on(RANGER).native(share));
    quantities.push(ENTRY.on(RANGER).native(entry_bytes));

    let mut page = Page::default();
    page.paragraph(experiment.placement(pes));
    let row = |one: &Tuned| {
        let Tuned { figure, candidates, took_ns, loss, best_ns } = one;
        let (bytes, candidates) = (size(figure.at.into()), candidates.to_string());
        vec![bytes, candidates, time(*took_ns), time(*best_ns), ratio(*loss)]
    };
    let header = vec!["broadcast", "candidates", "tuning", "best call", "chosen over best"];
    page.table(header, all.iter().map(row).collect(), vec![1, 2, 3, 4]);
    page.lines("\n");
    page.paragraph(format!(
        "A look-up takes {}, and an entry {entry_bytes:.0} bytes.",
        time(look_up_ns)
    ));
    page.paragraph(
        "The paper, for 4 B to 32 KiB: 12 to 87 ms on the Sun Constellation, 36 to 109 ms on the \
         Cray XT4, growing with the size; a look-up is negligible, an entry takes about 48 bytes.",
    );
    let verdict = format!(
        "{pes} PEs: a size of broadcast is tuned in {} to {}; a look-up takes {:.1} % of the call",
        time(first.took_ns),
        time(last.took_ns),
        100.0 * share
    );
    Ok(Outcome { verdict, page, quantities })
}

/// Tunes one size, and then measures the value of the choice for `budget`. Returns nothing if no
/// candidate could be measured.
fn tuned(
    bench: &mut NativeWorkbench,
    query: &Query,
    figure: &'static Figure,
    budget: Duration,
) -> Result<Option<Tuned>> {
    let field: Vec<_> = distinct(bench, query, bench.candidates(query)).collect();
    let (candidates, begun) = (field.len(), Instant::now());
    let mut once = Race::new(field);
    once.run(bench, query, 1, Duration::ZERO)?;
    let took_ns = begun.elapsed().as_secs_f64() * 1e9;
    let mut long = Race::new(once.field().to_vec());
    long.run(bench, query, 4, budget)?;
    let (chosen, ranking) = (once.ranking(), long.ranking());
    let (Some((chosen, _)), Some((_, best))) = (chosen.first(), ranking.first()) else {
        return Ok(None);
    };
    let of_chosen = ranking.iter().find(|(candidate, _)| candidate == chosen);
    let Some((_, of_chosen)) = of_chosen else { return Ok(None) };
    let loss = of_chosen.median_ns / best.median_ns;
    Ok(Some(Tuned { figure, candidates, took_ns, loss, best_ns: best.median_ns }))
}
