//! Teams of two PEs, which carry messages from one to the other.
//!
//! Each direction between two PEs has a team: the sender, then the receiver. Each PE joins the team
//! at its first message, without waiting for the other, and finds it by the two ranks in the world.
//! Each message is a call of this team, even if the program sends it by a method of another team.
//! So messages are received in the order in which they were sent, even if the PEs make other calls
//! in between.

use consort_fabric::Rank;

use crate::{Error, Result, Team, error::CallError};

impl Team {
    /// Returns the team that carries messages from this PE to `to`.
    pub(crate) fn messages_to(&self, to: Rank) -> Result<Self> {
        let [own, peer] = self.own_and_peer(to)?;
        self.messages(own, peer)
    }

    /// Returns the team that carries messages from `from` to this PE.
    pub(crate) fn messages_from(&self, from: Rank) -> Result<Self> {
        let [own, peer] = self.own_and_peer(from)?;
        self.messages(peer, own)
    }

    /// Returns the ranks in the world of this PE and another one.
    fn own_and_peer(&self, peer: Rank) -> Result<[Rank; 2]> {
        let ranks = [self.world_rank(self.rank())?, self.world_rank(peer)?];
        if peer == self.rank() {
            return Err(CallError::OwnMessage { rank: peer }.into());
        }
        Ok(ranks)
    }

    fn messages(&self, from: Rank, to: Rank) -> Result<Self> {
        match self.state.owner().teams.messages(from, to) {
            Some(number) => Ok(Self::new(self.state.of_team(number))),
            None => self.join_messages(from, to),
        }
    }

    /// Joins the team for this PE's first message in a direction.
    #[cold]
    fn join_messages(&self, from: Rank, to: Rank) -> Result<Self> {
        let apart = i64::from(to.0) - i64::from(from.0);
        let apart = i32::try_from(apart).expect("a job has fewer PEs");
        let joined = self.state.endpoint.join_strided(from, apart, 2);
        let part =
            joined.map_err(|reason| self.group_error(2, &reason))?.ok_or(Error::JobFailed)?;
        let teams = &self.state.owner().teams;
        let number = teams.state_for(&self.state, part);
        teams.keep_messages((from, to), number);
        Ok(Self::new(self.state.of_team(number)))
    }
}
