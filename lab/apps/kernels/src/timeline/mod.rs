//! Records when all PEs compute, communicate and wait, and draws pictures of it.
//!
//! Each PE counts time from the barrier before the run. PEs of different machines leave that
//! barrier at different times, so their bars are shifted by the difference.

mod svg;
mod text;

use consort::{Rank, Result, Team};

use crate::recorder::{Activity, Recorder, Span};

/// The spans of all PEs, in the order of their ranks.
#[derive(Clone, Debug)]
pub struct Timeline {
    pes: Vec<Vec<Span>>,
}

/// The shares of a run's time, added up over all PEs.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Shares {
    /// Computing.
    pub compute: f64,
    /// Communicating.
    pub communicate: f64,
    /// Waiting.
    pub wait: f64,
}

impl Timeline {
    /// Gathers the records of all PEs. PE 0 gets the time line, the others get `None`. Collective.
    ///
    /// # Errors
    /// See [`Team`].
    pub fn gather(world: &Team, recorder: &Recorder) -> Result<Option<Self>> {
        let packed = |span: Span| [span.activity as u64, span.from_ns, span.to_ns];
        let own: Vec<[u64; 3]> = recorder.spans().into_iter().map(packed).collect();
        let unpacked = |&[activity, from_ns, to_ns]: &[u64; 3]| {
            let is_it = |it: &Activity| *it as u64 == activity;
            let activity = Activity::ALL.into_iter().find(is_it).expect("a packed activity");
            Span { activity, from_ns, to_ns }
        };
        let gathered = world.values(&own).uneven().gather(Rank(0))?;
        Ok(gathered.map(|(all, places)| {
            let of = |rank| all[places.range(rank)].iter().map(unpacked).collect();
            Self { pes: world.ranks().map(of).collect() }
        }))
    }

    /// Returns the end of the last span.
    fn end_ns(&self) -> u64 {
        self.pes.iter().flatten().map(|span| span.to_ns).max().unwrap_or(0).max(1)
    }

    /// Returns the shares of the time from the start to the end of the last span.
    #[must_use]
    pub fn shares(&self) -> Shares {
        let whole = self.end_ns() as f64 * self.pes.len() as f64;
        let of = |activity| {
            let spans = self.pes.iter().flatten().filter(|span| span.activity == activity);
            spans.map(|span| span.to_ns - span.from_ns).sum::<u64>() as f64 / whole
        };
        let [compute, communicate, wait] = Activity::ALL.map(of);
        Shares { compute, communicate, wait }
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, Span, Timeline};

    fn timeline() -> Timeline {
        let span = |activity, from_ns, to_ns| Span { activity, from_ns, to_ns };
        let first = vec![span(Activity::Compute, 0, 50), span(Activity::Wait, 50, 100)];
        Timeline { pes: vec![first, vec![span(Activity::Communicate, 20, 60)]] }
    }

    #[test]
    fn shares_are_of_all_pes() {
        let shares = timeline().shares();
        assert_eq!((shares.compute, shares.communicate, shares.wait), (0.25, 0.2, 0.25));
    }

    #[test]
    fn pictures_have_a_bar_for_each_pe() {
        let text = timeline().text();
        let bars: Vec<_> = text.lines().filter(|line| line.contains('|')).collect();
        assert_eq!(bars.len(), 2, "{text}");
        assert!(bars[0].contains("##..") && bars[1].contains(" ++"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let svg = timeline().svg("a < b");
        assert_eq!(svg.matches("<rect").count(), 3 + 3, "spans and legend: {svg}");
        assert!(svg.contains("a &lt; b") && svg.contains(">PE 1<"), "{svg}");
    }
}
