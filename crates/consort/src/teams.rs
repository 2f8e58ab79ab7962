//! Forms teams of some of a team's PEs, and finds the place where a PE stores the state of a new
//! team.
//!
//! All PEs of the parent make one call, whose name describes the new teams. Each PE then knows the
//! members of its team. It computes them from the arguments, which are the same on all PEs, or, in
//! a split, from the colours and keys of all PEs.

use consort_fabric::Rank;
use consort_native::{Group, GroupError};

use crate::{
    Error, Result, Team,
    error::{CallError, TeamError},
};

/// The colour that a PE without a colour contributes to a split.
const NO_COLOR: i64 = -1;

/// A PE's two teams in a grid; from [`Team::cartesian`].
#[derive(Clone, Debug)]
pub struct Grid {
    /// The PEs of its row, by column.
    pub row: Team,
    /// The PEs of its column, by row.
    pub column: Team,
}

/// # Teams
impl Team {
    /// Forms teams of the PEs that give the same `color`, ordered by `key` and then by rank.
    /// Returns `None` on a PE that gives no colour.
    ///
    /// A team takes memory until it is freed; see [`Team::free`]. It inherits the forced algorithms
    /// and the modes of its parent.
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let sums = Job::threads(5).run(|pe| {
    ///     let me = pe.world().rank().0;
    ///     let parity = pe.world().split(Some(me % 2), 0)?;
    ///     parity.map(|team| team.all_reduce(me, Sum)).transpose()
    /// })?;
    /// assert_eq!(sums[0], Some(0 + 2 + 4));
    /// assert_eq!(sums[3], Some(1 + 3));
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>> {
        let own_color = color.map_or(NO_COLOR, i64::from);
        let all = self.all_gather_named("split()", [own_color, key])?;
        let mut members: Vec<(i64, Rank)> = (0..)
            .map(Rank)
            .zip(all)
            .filter(|(_, [its_color, _])| color.is_some() && *its_color == own_color)
            .map(|(rank, [_, key])| (key, rank))
            .collect();
        members.sort_unstable();
        let members: Vec<Rank> = members.into_iter().map(|(_, rank)| rank).collect();
        self.join(color.unwrap_or(0), &members)
    }

    /// Forms a team of `size` PEs: `start`, `start + stride` and so on, in this order. Returns
    /// `None` on the other PEs. A stride may be negative; a size of 0 forms no team.
    ///
    /// # Errors
    /// [`TeamError::Outside`], [`TeamError::Twice`], and see [`Team`].
    #[track_caller]
    pub fn strided(&self, start: Rank, stride: isize, size: usize) -> Result<Option<Self>> {
        let (pes, stride) = (self.size(), stride as i64);
        let mut members = Vec::new();
        // If there are more members than PEs, one of these is outside or listed twice.
        for index in (0..).take(size.min(pes + 1)) {
            let rank = i64::from(start.0).saturating_add(stride.saturating_mul(index));
            let inside = u32::try_from(rank).ok().filter(|&rank| rank < self.pes());
            let outside = || TeamError::Outside { rank, pes };
            members.push(Rank(inside.ok_or_else(outside)?));
        }
        self.made_of(&members, &format!("strided({start}, {stride}, {size})"))
    }

    /// Forms a team of the PEs in a list, in its order. The list is the same on all PEs. Returns
    /// `None` on PEs that are not in it.
    ///
    /// # Errors
    /// [`TeamError::Outside`], [`TeamError::Twice`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let ranks = Job::threads(4).run(|pe| {
    ///     let team = pe.world().subset(&[Rank(3), Rank(0)])?;
    ///     Ok(team.map(|team| team.rank()))
    /// })?;
    /// assert_eq!(ranks, [Some(Rank(1)), None, None, Some(Rank(0))]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn subset(&self, members: &[Rank]) -> Result<Option<Self>> {
        let list: Vec<String> = members.iter().map(Rank::to_string).collect();
        self.made_of(members, &format!("subset({})", list.join(", ")))
    }

    #[track_caller]
    fn made_of(&self, members: &[Rank], what: &str) -> Result<Option<Self>> {
        let pes = self.size();
        let mut listed = vec![false; pes];
        for &rank in members {
            let outside = || TeamError::Outside { rank: rank.0.into(), pes };
            let seen = listed.get_mut(rank.index()).ok_or_else(outside)?;
            if std::mem::replace(seen, true) {
                return Err(TeamError::Twice { rank }.into());
            }
        }
        self.state.agree(what)?;
        self.join(0, members)
    }

    /// Forms two teams for each PE: the PEs of its row and those of its column, in a grid of `rows`
    /// rows that is filled row by row.
    ///
    /// # Errors
    /// [`TeamError::Rows`] when `rows` does not divide the team's size, and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let sums = Job::threads(6).run(|pe| {
    ///     let grid = pe.world().cartesian(2)?;
    ///     let me = pe.world().rank().0;
    ///     Ok((grid.row.all_reduce(me, Sum)?, grid.column.all_reduce(me, Sum)?))
    /// })?;
    /// assert_eq!(sums[1], (0 + 1 + 2, 1 + 4));
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn cartesian(&self, rows: usize) -> Result<Grid> {
        let pes = self.size();
        if rows == 0 || !pes.is_multiple_of(rows) {
            return Err(TeamError::Rows { rows, pes }.into());
        }
        self.state.agree(&format!("cartesian({rows})"))?;
        let columns = pes / rows;
        let (row, column) = (self.rank().index() / columns, self.rank().index() % columns);
        let row_members: Vec<Rank> = (0..columns).map(|at| Rank::new(row * columns + at)).collect();
        let column_members: Vec<Rank> =
            (0..rows).map(|at| Rank::new(at * columns + column)).collect();
        // Joins both, even if there is no memory for the first, so that all PEs number their teams
        // in the same way.
        let parts = [(row, row_members), (column, column_members)]
            .map(|(color, members)| self.part(Rank::new(color).0, &members));
        let [row, column] = parts;
        let (Some(row), Some(column)) = (row?, column?) else {
            unreachable!("a PE is in its own row and column")
        };
        Ok(Grid { row: self.team_of(row), column: self.team_of(column) })
    }

    /// Returns the new team of these PEs, if this PE is among them.
    pub(crate) fn join(&self, color: u32, members: &[Rank]) -> Result<Option<Self>> {
        Ok(self.part(color, members)?.map(|part| self.team_of(part)))
    }

    /// Returns this PE's part in the new team of these PEs, if it is among them.
    fn part(&self, color: u32, members: &[Rank]) -> Result<Option<Group>> {
        let joined = self.state.endpoint.join(color, members);
        joined.map_err(|reason| self.group_error(members.len(), &reason))
    }

    /// Returns the error for a team of `pes` that cannot be created.
    pub(crate) fn group_error(&self, pes: usize, reason: &GroupError) -> Error {
        let error = || TeamError::Memory { pes, reason: reason.to_string() }.into();
        self.state.ensure_sound().err().unwrap_or_else(error)
    }

    /// Returns the team of this part, with this team's modes.
    pub(crate) fn team_of(&self, part: Group) -> Self {
        let number = self.state.owner().teams.state_for(&self.state, part);
        Self::new(self.state.of_team(number)).with_sync(self.sync())
    }

    /// Frees a team once all its PEs have called this and its nonblocking calls are complete. From
    /// then on, the calls of all its clones and the operations of its symmetric memory return
    /// [`CallError::Freed`]. Teams that were formed from it remain.
    ///
    /// # Errors
    /// [`TeamError::World`] for the team of all PEs, and see [`Team`].
    #[track_caller]
    pub fn free(self) -> Result<()> {
        if self.state.endpoint.group().is_world() {
            return Err(TeamError::World.into());
        }
        self.state.ensure_alive()?;
        self.state.drain()?;
        self.state.agree("free()")?;
        self.state.free()
    }

    /// Returns the rank in the world of a PE of this team. Local.
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::Freed`].
    pub fn world_rank(&self, rank: Rank) -> Result<Rank> {
        self.state.ensure_alive()?;
        let (pes, ranks) = (self.size(), self.state.endpoint.group().ranks());
        ranks.get(rank.index()).copied().ok_or(Error::Call(CallError::RankOutOfRange { rank, pes }))
    }

    /// Returns the rank in this team of a PE of the world; `None` if it is not in this team, or
    /// this team is freed. Local.
    #[must_use]
    pub fn rank_of_world(&self, rank: Rank) -> Option<Rank> {
        self.state.ensure_alive().ok()?;
        let ranks = self.state.endpoint.group().ranks();
        let at = ranks.iter().position(|&member| member == rank)?;
        u32::try_from(at).ok().map(Rank)
    }
}
