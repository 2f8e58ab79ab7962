//! Random times. They give random schedules, to find schedules under which an algorithm fails.
//!
//! Every operation takes a random time, and occasionally a very long one. A message may overtake an
//! earlier one. A put lands long after it has returned, unless a fence follows. The seed determines
//! the whole schedule, so a failing schedule can be repeated.

use consort_fabric::{Capabilities, Levels, Nodes, Rank};

use super::{Site, Where};
use crate::{account::Cause, engine::Time};

/// The usual upper limit of a random time, in picoseconds.
const USUAL: u64 = 100_000;
/// One time in this many is much longer...
const RARE: u64 = 8;
/// ... up to this many times the usual limit.
const LONGER: u64 = 100;

/// Random costs, from a seed.
pub(crate) struct Chaos {
    /// How the PEs are placed on nodes, as reported to the program.
    pub(crate) nodes: Nodes,
    /// How nodes are divided and grouped, as reported to the program.
    pub(crate) levels: Levels,
}

impl Chaos {
    fn time(site: Site<'_>) -> Time {
        let longest = if site.engine.roll_below(RARE) == 0 { USUAL * LONGER } else { USUAL };
        site.engine.roll_below(longest)
    }

    async fn pause(site: Site<'_>) {
        site.spend(Cause::Compute, Self::time(site)).await;
    }

    pub(super) fn capabilities(&self, pes: u32) -> Capabilities {
        Capabilities {
            inbox_channels: (4 * pes).max(256),
            scratch_bytes: 16 << 10,
            buffer_bytes: 64 << 10,
            exposes: true,
            buffered: true,
            pairwise_bytes: consort_fabric::PAIRWISE_BYTES,
            counts: true,
            vendor: consort_fabric::Vendor::NONE,
            nodes: self.nodes,
            levels: self.levels,
        }
    }

    pub(super) async fn begin(&self, site: Site<'_>) {
        Self::pause(site).await;
    }

    pub(super) async fn transfer(&self, site: Site<'_>, _: Where, to: Where, _: usize) -> Time {
        Self::pause(site).await;
        let late = if to.pe.0 == site.me { 0 } else { Self::time(site) };
        site.engine.now() + late
    }

    pub(super) async fn combine(&self, site: Site<'_>, _: usize) {
        Self::pause(site).await;
    }

    pub(super) async fn signal(&self, site: Site<'_>, _: Rank) -> Time {
        Self::pause(site).await;
        site.engine.now() + Self::time(site)
    }

    pub(super) async fn observe(&self, site: Site<'_>, _: Time, _: Option<Rank>) {
        Self::pause(site).await;
    }

    pub(super) async fn send(&self, site: Site<'_>, to: Rank, _: Where, _: usize) -> Time {
        self.signal(site, to).await
    }

    pub(super) async fn receive(
        &self,
        site: Site<'_>,
        _: Time,
        _: Rank,
        _: Where,
        _: usize,
    ) -> Time {
        Self::pause(site).await;
        site.engine.now()
    }

    pub(super) async fn handed_over(&self, site: Site<'_>, _: Time) {
        Self::pause(site).await;
    }

    pub(super) async fn reach_word(&self, site: Site<'_>, _: Rank) {
        Self::pause(site).await;
    }
}
