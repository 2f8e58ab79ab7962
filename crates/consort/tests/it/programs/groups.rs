//! The teams of a slot, and the ways to divide a team, computed from a seed.

use consort::{Grid, Rank, Result, Team};
use consort_conformance::data::Random;

/// Disjoint teams: the ranks in the world of each one's members, in order.
pub(super) type Groups = Vec<Vec<u32>>;

/// How each team of a slot is divided.
#[derive(Clone, Copy, Debug)]
pub(super) enum Division {
    Split {
        seed: u64,
    },
    Strided {
        seed: u64,
    },
    Listed {
        seed: u64,
    },
    /// Forms two slots: rows and columns.
    Grid {
        seed: u64,
    },
}

fn hash(seed: u64, member: usize) -> u64 {
    Random(seed ^ (member as u64) << 40).next_word()
}

/// Returns a number below `end`.
fn draw(seed: u64, member: usize, end: usize) -> usize {
    Random(seed ^ (member as u64) << 40).below(end)
}

/// Returns the colour and the key of a member.
fn color_and_key(seed: u64, member: usize) -> (Option<u32>, i64) {
    let hash = hash(seed, member);
    let color = [None, Some(0), Some(7), Some(7), Some(7)][(hash % 5) as usize];
    (color, i64::try_from(hash >> 8 & 3).expect("few bits") - 1)
}

/// Returns start, stride and size in a team of `size`.
fn stride(seed: u64, size: usize) -> (usize, isize, usize) {
    let hash = hash(seed, 0);
    let stride = 1 + (hash >> 8) as usize % 2;
    let most = size.div_ceil(stride);
    let members = if hash & 7 == 0 { 0 } else { 1 + (hash >> 16) as usize % most };
    let last = members.saturating_sub(1) * stride;
    let sign = isize::try_from(stride).expect("1 or 2");
    if hash & 8 == 0 { (0, sign, members) } else { (last, -sign, members) }
}

/// Returns some members, in some order.
fn listed(seed: u64, size: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by_key(|&member| hash(seed, member));
    order.truncate(1 + draw(seed, 99, size));
    order
}

fn rows(seed: u64, size: usize) -> usize {
    let divisors: Vec<_> = (1..=size).filter(|rows| size.is_multiple_of(*rows)).collect();
    divisors[draw(seed, 0, divisors.len())]
}

impl Division {
    /// Returns a division with other members, unless it is a split, for which PEs need not agree.
    pub(super) fn other(self) -> Option<Self> {
        Some(match self {
            Self::Split { .. } => return None,
            Self::Strided { seed } => Self::Strided { seed: !seed },
            Self::Listed { seed } => Self::Listed { seed: !seed },
            Self::Grid { seed } => Self::Grid { seed: !seed },
        })
    }

    /// Returns the parts of a team, by positions in it: one list, or two.
    fn parts(self, size: usize) -> Vec<Vec<Vec<usize>>> {
        match self {
            Self::Split { seed } => {
                let of = |color| {
                    let mut members: Vec<_> =
                        (0..size).filter(|&at| color_and_key(seed, at).0 == Some(color)).collect();
                    members.sort_by_key(|&at| color_and_key(seed, at).1);
                    members
                };
                vec![vec![of(0), of(7)]]
            }
            Self::Strided { seed } => {
                let (start, stride, members) = stride(seed, size);
                let at = |index: usize| start.wrapping_add_signed(index as isize * stride);
                vec![vec![(0..members).map(at).collect()]]
            }
            Self::Listed { seed } => vec![vec![listed(seed, size)]],
            Self::Grid { seed } => {
                let rows = rows(seed, size);
                let columns = size / rows;
                let row = |row| (0..columns).map(|at| row * columns + at).collect();
                let column = |column| (0..rows).map(|at| at * columns + column).collect();
                vec![(0..rows).map(row).collect(), (0..columns).map(column).collect()]
            }
        }
    }

    /// Returns the slots that result from dividing each team of one.
    pub(super) fn of(self, parents: &Groups) -> Vec<Groups> {
        let slots = if matches!(self, Self::Grid { .. }) { 2 } else { 1 };
        let mut made = vec![Groups::new(); slots];
        for parent in parents {
            for (slot, parts) in made.iter_mut().zip(self.parts(parent.len())) {
                let of = |part: Vec<usize>| part.into_iter().map(|at| parent[at]).collect();
                slot.extend(parts.into_iter().filter(|part| !part.is_empty()).map(of));
            }
        }
        made
    }

    /// Forms a PE's teams.
    pub(super) fn make(self, parent: &Team) -> Result<Vec<Option<Team>>> {
        let (me, size) = (parent.rank().index(), parent.size());
        Ok(match self {
            Self::Split { seed } => {
                let (color, key) = color_and_key(seed, me);
                vec![parent.split(color, key)?]
            }
            Self::Strided { seed } => {
                let (start, stride, members) = stride(seed, size);
                vec![parent.strided(Rank::new(start), stride, members)?]
            }
            Self::Listed { seed } => {
                let list: Vec<Rank> = listed(seed, size).into_iter().map(Rank::new).collect();
                vec![parent.subset(&list)?]
            }
            Self::Grid { seed } => {
                let Grid { row, column } = parent.cartesian(rows(seed, size))?;
                vec![Some(row), Some(column)]
            }
        })
    }
}

/// Returns the team of a slot that contains a PE.
pub(super) fn group_of(groups: &Groups, pe: u32) -> Option<&Vec<u32>> {
    groups.iter().find(|group| group.contains(&pe))
}

/// Returns the rank of a PE in a team.
pub(super) fn position(group: &[u32], pe: u32) -> usize {
    group.iter().position(|&member| member == pe).expect("a member")
}
