//! Teams of some of the PEs: their members, their results, and their failures.

mod failures;
mod freeing;
mod interleaving;
mod making;
mod per_team;

use consort::{Rank, Result, Team, tune::Collective};
use consort_conformance::data::affine;

use crate::{data::Call, typed::slices};

/// Returns the members' ranks in the world, in the team's order, checked in both directions.
fn members(team: &Team) -> Result<Vec<u32>> {
    let ranks: Vec<Rank> = team.ranks().map(|rank| team.world_rank(rank)).collect::<Result<_>>()?;
    for (here, &there) in team.ranks().zip(&ranks) {
        assert_eq!(team.rank_of_world(there), Some(here));
    }
    assert!(team.world_rank(Rank::new(team.size())).is_err());
    assert_eq!(team.rank_of_world(Rank(1000)), None);
    Ok(ranks.into_iter().map(|rank| rank.0).collect())
}

/// Checks that a team's results are those of its members in order, in every collective.
fn collectives(team: &Team, seed: u64) -> Result<()> {
    let (pes, me) = (team.size(), team.rank());
    for len in [0, 1, 9, 2000] {
        for collective in Collective::EVERY {
            let roots = if collective.is_rooted() { pes } else { 1 };
            for root in team.ranks().take(roots) {
                let call = Call { collective, pes, root, len, seed };
                let mut target = vec![0; call.target_len(me)];
                let source = call.source::<u64>(me);
                slices(team, collective, &source, &mut target, affine, root)?;
                let expected = call.result(me, &affine);
                assert!(
                    expected.is_none_or(|expected| target == expected),
                    "{collective} of {len}, root {root}, on PE {me} of {pes}"
                );
            }
        }
    }
    Ok(())
}
