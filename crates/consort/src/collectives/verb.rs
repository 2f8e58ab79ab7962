//! A collective with its root and the lengths of its blocks, and their checks.

use consort_collectives::PlanError;
use consort_fabric::{CallSpec, Collective, Layout, Pod, Rank};
use consort_native::Buffer;

use super::counts::Sides;
use crate::{
    Displacements, Result, Team,
    error::{CallError, DisplacementsError},
    runtime::dispatch::Combination,
};

/// A collective with its root, and with what the program states about its blocks.
#[derive(Clone, Copy, Debug)]
pub struct Verb<'d> {
    pub(crate) collective: Collective,
    pub(crate) root: Option<Rank>,
    /// The elements of this PE's block, if the program states them.
    pub(crate) len: Option<usize>,
    /// As [`CallSpec::whole_bytes`].
    pub(crate) whole_bytes: usize,
    /// The blocks of a vector variant; none in a collective on equal blocks.
    pub(crate) sides: Sides<'d>,
}

/// The blocks of a PE in one buffer of a vector variant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held<'d> {
    /// No block: only the root uses such a buffer.
    Nothing,
    /// One block of this many elements at the start of the buffer: the PE's own.
    One(usize),
    /// A block for each PE.
    Each(&'d Displacements),
}

impl<'d> Verb<'d> {
    #[inline(always)]
    pub(crate) fn new(collective: Collective) -> Self {
        Self { collective, root: None, len: None, whole_bytes: 0, sides: Sides::default() }
    }

    #[inline(always)]
    pub(crate) fn rooted(collective: Collective, root: Rank) -> Self {
        Self { root: Some(root), ..Self::new(collective) }
    }

    /// Returns the description of a blocking call of `team` outside symmetric memory, on blocks of
    /// `len` elements; 0 in a vector variant, whose blocks differ. Callers change what differs in
    /// other calls. `N` and `T` are as in [`Team::on_slices`].
    #[inline(always)]
    pub(crate) fn spec<N, T: Pod>(
        &self,
        team: &Team,
        len: usize,
        combination: Combination<'_>,
    ) -> CallSpec {
        let len = if self.collective.is_vector() { 0 } else { len };
        let call = team.state.spec::<N, T>(self.collective, team.sync(), len, combination);
        let root = self.root.unwrap_or(Rank(0));
        CallSpec { root, whole_bytes: self.whole_bytes, ..call }
    }

    /// Returns whether `team`'s PE is the root.
    #[inline(always)]
    pub(crate) fn is_root(&self, team: &Team) -> bool {
        self.root == Some(team.rank())
    }

    /// Returns whether `team`'s PE gets a result of a collective that gives none to some PEs: a gather
    /// and a reduction give one to the root only, an exclusive scan to all PEs but PE 0.
    #[inline(always)]
    pub(crate) fn is_among_some(&self, team: &Team) -> bool {
        match self.root {
            Some(root) => team.rank() == root,
            None => team.rank() != Rank(0),
        }
    }

    /// Fails if the program states another length than that of a vector with one block.
    pub(crate) fn check_stated(&self, source_len: usize) -> Result<()> {
        match self.len {
            Some(target_len) if target_len != source_len => {
                Err(CallError::Lengths { source_len, target_len }.into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the numbers of blocks that `team`'s PE contributes and receives.
    #[inline(always)]
    pub(crate) fn blocks(&self, team: &Team) -> (u32, u32) {
        let (pes, is_root) = (team.pes(), self.is_root(team));
        (self.collective.source_blocks(pes, is_root), self.collective.target_blocks(pes, is_root))
    }

    /// Returns the length of a block in symmetric memory, and the elements of source and target
    /// that a call uses. Every PE checks the root's lengths, because all parts have the same
    /// length.
    #[inline(always)]
    pub(crate) fn symmetric_lens(
        &self,
        team: &Team,
        source_len: usize,
        target_len: usize,
    ) -> Result<(usize, usize, usize)> {
        let (collective, pes) = (self.collective, team.pes());
        let blocks = match collective {
            Collective::Broadcast => (1, 1), // one memory, which some read and others write
            _ => (collective.source_blocks(pes, true), collective.target_blocks(pes, true)),
        };
        let Some(len) = self.len else {
            let lens = (source_len, target_len);
            let len = block_len(collective, blocks, team.size(), lens)?;
            return Ok((len, source_len, target_len));
        };
        let used = [(blocks.0, source_len), (blocks.1, target_len)].map(|(blocks, len_there)| {
            let end = len.saturating_mul(blocks as usize);
            let beyond = CallError::OutOfBounds { first: 0, end, len: len_there };
            if end <= len_there { Ok(end) } else { Err(beyond) }
        });
        let [source_used, target_used] = used;
        Ok((len, source_used?, target_used?))
    }

    /// Returns the blocks that `team`'s PE contributes and receives in a vector variant; `None` in
    /// a collective on equal blocks. `own` is the length of this PE's block. Fails if the program
    /// states that length although both sides have counts.
    #[inline(always)]
    pub(crate) fn held(&self, team: &Team, own: usize) -> Result<Option<[Held<'d>; 2]>> {
        let Sides { given, received } = self.sides;
        match (given, received, self.len) {
            (None, None, _) => return Ok(None),
            (Some(_), Some(_), Some(len @ 1..)) => {
                return Err(CallError::LengthWithCounts { len }.into());
            }
            _ => {}
        }
        let of = |side: Option<&'d Displacements>| match side {
            None => Held::One(own),
            Some(_) if self.root.is_some() && !self.is_root(team) => Held::Nothing,
            Some(blocks) => Held::Each(blocks),
        };
        Ok(Some([of(given), of(received)]))
    }

    /// Returns the layouts of a call on equal blocks, if it is a vector variant.
    #[inline(always)]
    pub(crate) fn even<T>(&self, team: &Team, len: usize) -> Option<[Layout<'static>; 2]> {
        Layout::of_blocks(self.collective, team.pes(), self.is_root(team), bytes_of::<T>(len))
    }
}

impl Held<'_> {
    /// Returns the elements of a buffer that holds just these blocks.
    pub(crate) fn extent(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(len) => *len,
            Self::Each(blocks) => blocks.extent(),
        }
    }

    /// Returns the length of the block for the PE of this rank, which is the PE with the buffer.
    fn own(&self, rank: Rank) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::One(len) => Some(*len),
            Self::Each(blocks) => Some(blocks.range(rank).len()),
        }
    }
}

/// Returns the source and the target that a PE passes to a call in symmetric memory, blocking or
/// not. In a broadcast, the memory is the source of the root and the target of all other PEs. In
/// any other collective, a PE passes both buffers: the offset of one that it does not use tells where
/// the root's is.
#[inline(always)]
pub(crate) fn brought<'b>(
    is_broadcast: bool,
    is_root: bool,
    source: Buffer<'b>,
    target: Buffer<'b>,
) -> [Buffer<'b>; 2] {
    match (is_broadcast, is_root) {
        (true, true) => [source, Buffer::ABSENT],
        (true, false) => [Buffer::ABSENT, target],
        _ => [source, target],
    }
}

/// Returns the layouts of the blocks that a PE contributes and receives in a vector variant, in
/// buffers of these lengths.
pub(crate) fn layouts<'l, T: Pod>(
    team: &Team,
    (source_len, given): (usize, Held<'l>),
    (target_len, received): (usize, Held<'l>),
) -> Result<[Layout<'l>; 2]> {
    let of =
        |held,
         buffer_len,
         check: fn(&Displacements, u32, usize) -> Result<(), DisplacementsError>| {
            Ok(match held {
                Held::Nothing => Layout::whole(0),
                Held::One(end) if end > buffer_len => {
                    let beyond = CallError::OutOfBounds { first: 0, end, len: buffer_len };
                    return Err(crate::Error::from(beyond));
                }
                Held::One(len) => Layout::whole(bytes_of::<T>(len)),
                Held::Each(blocks) => {
                    check(blocks, team.pes(), buffer_len)?;
                    blocks.layout(size_of::<T>())
                }
            })
        };
    let layouts = [
        of(given, source_len, Displacements::check_source)?,
        of(received, target_len, Displacements::check_target)?,
    ];
    let rank = team.rank();
    if let (Some(given), Some(received)) = (given.own(rank), received.own(rank))
        && given != received
    {
        return Err(DisplacementsError::Own { rank, given, received }.into());
    }
    Ok(layouts)
}

/// Returns the length of a block, from the lengths of the buffers that this PE uses. Fails unless
/// they consist of blocks of one length.
#[inline(always)]
pub(crate) fn block_len(
    collective: Collective,
    blocks: (u32, u32),
    pes: usize,
    (source_len, target_len): (usize, usize),
) -> Result<usize> {
    let len = match blocks {
        (0, 0) => 0,
        (0, 1) => target_len,
        (1, _) => source_len,
        (0, received) => target_len / received as usize,
        (contributed, _) => source_len / contributed as usize,
    };
    check_len(collective, blocks, pes, len, source_len, target_len)?;
    Ok(len)
}

/// Fails unless the buffers that this PE uses consist of blocks of `len` elements.
#[inline(always)]
pub(crate) fn check_len(
    collective: Collective,
    (contributed, received): (u32, u32),
    pes: usize,
    len: usize,
    source_len: usize,
    target_len: usize,
) -> Result<()> {
    let [contributed, received] = [contributed, received].map(|blocks| blocks as usize);
    // The product overflows only for zero-sized elements, and for lengths that no buffer has.
    let fits = |blocks: usize, given| blocks == 0 || blocks.checked_mul(len) == Some(given);
    if fits(contributed, source_len) && fits(received, target_len) {
        return Ok(());
    }
    Err(if contributed == 1 && received == 1 {
        CallError::Lengths { source_len, target_len }.into()
    } else {
        CallError::Blocks { collective, pes, contributed, received, source_len, target_len }.into()
    })
}

/// Returns the bytes of `len` elements. If the product overflows, returns the largest number, which
/// is more than any memory has.
#[inline(always)]
pub(crate) const fn bytes_of<T>(len: usize) -> usize {
    len.saturating_mul(size_of::<T>())
}

/// Returns a vector of zeros, for a result.
pub(crate) fn blank<T: Pod>(len: usize) -> Vec<T> {
    vec![T::zeroed(); len]
}

/// Fails if a vector of `len` elements would have more than `isize::MAX` bytes, which no vector has.
pub(crate) fn ensure_fits<T>(collective: Collective, len: usize) -> Result<()> {
    let bytes = len.checked_mul(size_of::<T>());
    if bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()) {
        return Ok(());
    }
    let (algorithm, why) = (collective.name(), "no memory holds its data".into());
    Err(PlanError::Incapable { algorithm, why }.into())
}

/// Fails if the root of a broadcast cannot copy its source to its own target, which may be empty.
#[inline(always)]
pub(crate) fn check_own(source_len: usize, target_len: usize) -> Result<()> {
    if target_len != 0 && target_len != source_len {
        return Err(CallError::Lengths { source_len, target_len }.into());
    }
    Ok(())
}

/// Copies what this PE has broadcast to its own target, unless that is empty.
#[inline(always)]
pub(crate) fn copy_own<T: Pod>(source: &[T], target: &mut [T]) {
    if !target.is_empty() {
        target.copy_from_slice(source);
    }
}

/// Returns a copy of what this PE contributes to a call in place. Peers may read the copy while the
/// PE's data is overwritten.
pub(crate) fn contribution_in_place<T: Pod>(verb: &Verb<'_>, team: &Team, data: &[T]) -> Vec<T> {
    match verb.collective {
        Collective::AllGather => {
            let len = data.len() / team.size();
            data[team.rank().index() * len..][..len].to_vec()
        }
        _ => data.to_vec(),
    }
}
