//! Timed runs of an application.

use consort::{Result, Team, ops::Max};

use crate::{
    recorder::Recorder,
    timeline::{Shares, Timeline},
};

/// The results of the runs.
#[derive(Clone, Debug)]
pub struct Measured<R> {
    /// The time of each run on the slowest PE.
    pub seconds: Vec<f64>,
    /// The activities of all PEs in the last run, on PE 0.
    pub timeline: Option<Timeline>,
    /// The result of the last run.
    pub result: R,
}

impl<R> Measured<R> {
    /// Returns how the PEs spent the last run, on PE 0.
    #[must_use]
    pub fn shares(&self) -> Option<Shares> {
        self.timeline.as_ref().map(Timeline::shares)
    }
}

/// Runs the application several times, at least once. `prepare` creates the input of a run outside
/// of the measured time. Collective.
///
/// # Errors
/// Those of `prepare` and `run`, and see [`Team`].
pub fn measure<T, R, E: From<consort::Error>>(
    world: &Team,
    repeat: u32,
    mut prepare: impl FnMut() -> T,
    mut run: impl FnMut(T, &Recorder) -> Result<R, E>,
) -> Result<Measured<R>, E> {
    let mut seconds = Vec::new();
    loop {
        let work = prepare();
        world.barrier()?;
        let recorder = Recorder::begin();
        let result = run(work, &recorder)?;
        let elapsed = recorder.elapsed_ns() as f64 / 1e9;
        seconds.push(world.all_reduce(elapsed, Max)?);
        if seconds.len() >= repeat as usize {
            let timeline = Timeline::gather(world, &recorder)?;
            return Ok(Measured { seconds, timeline, result });
        }
    }
}
