//! Runs a model, then again with each change of the algorithm, which must fail.

use std::{fs, path::Path, sync::Arc};

use loom::model::Builder;

use crate::shared::{Change, Changes, Shared};

/// Runs a script in all interleavings, with a change if there is one. Records the possible changes.
type Model<S> = fn(S, Option<Change>, &Changes);

/// Returns a builder that runs a script. A changed algorithm runs with this number of preemptions.
/// The original takes longer: it runs with at most two, or at night (`LOOM_MAX_PREEMPTIONS` is above
/// two) with one more than this number, up to three.
pub(crate) fn explorer(preemptions: usize, change: Option<Change>) -> Builder {
    let mut builder = Builder::new();
    let is_thorough = builder.preemption_bound.is_some_and(|bound| bound > 2);
    builder.preemption_bound = Some(match change {
        None if is_thorough => (preemptions + 1).min(3),
        None => preemptions.min(2),
        Some(_) => preemptions,
    });
    builder
}

/// Explores `play` on the memory of `threads` threads, as [`Shared::new`] makes it.
pub(crate) fn explore(
    preemptions: usize,
    (threads, stores_exchange): (usize, bool),
    change: Option<Change>,
    possible: &Changes,
    play: impl Fn(Shared) + Send + Sync + 'static,
) {
    let possible = Arc::clone(possible);
    explorer(preemptions, change)
        .check(move || play(Shared::new(threads, stores_exchange, change, &possible)));
}

/// Returns whether a changed algorithm fails a script.
fn fails<S: Send + 'static>(script: S, model: Model<S>, change: Change) -> bool {
    let play = move || model(script, Some(change), &Changes::default());
    std::thread::spawn(play).join().is_err()
}

/// Returns a change as text, with its line of the source.
fn text((site, taken): Change) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(site.file());
    let source = fs::read_to_string(file).expect("a source file");
    let line = source.lines().nth(site.line() as usize - 1).expect("a line of it");
    format!("{taken:?}: {}", line.trim())
}

/// Runs all scripts with the original, then with each change. A change must fail a script, unless
/// its line is in `not_needed`.
pub(crate) fn check<S: Copy + Send + 'static>(scripts: &[S], model: Model<S>, not_needed: &[&str]) {
    let changes = Changes::default();
    scripts.iter().for_each(|script| model(*script, None, &changes));
    let changes = changes.lock().expect("no panic").clone();
    assert!(!changes.is_empty());
    let survives = |change: &Change| !scripts.iter().any(|it| fails(*it, model, *change));
    let survivors: Vec<_> = changes.into_iter().filter(survives).map(text).collect();
    assert_eq!(survivors, not_needed);
}
