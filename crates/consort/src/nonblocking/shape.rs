//! How a nonblocking call uses the buffers of this PE.

use std::sync::Arc;

use consort_fabric::{Collective, Layout, Pod};

use crate::{
    Displacements, Result, Team,
    collectives::{
        combine::Combine,
        verb::{Held, Verb, blank, bytes_of, check_len, check_own, ensure_fits, layouts},
        widening::Widening,
    },
    runtime::plans::Ready,
};

/// The layout of a PE's blocks in a buffer of a vector variant, owned by its operation.
#[derive(Clone, Debug)]
pub(crate) enum OwnedLayout {
    /// Blocks of equal length, or one block.
    Even(Layout<'static>),
    /// Blocks at these displacements, in elements.
    Each { blocks: Displacements, element_bytes: usize },
}

impl OwnedLayout {
    pub(crate) fn of<T: Pod>(held: Held<'_>) -> Self {
        match held {
            Held::Nothing => Self::Even(Layout::whole(0)),
            Held::One(len) => Self::Even(Layout::whole(bytes_of::<T>(len))),
            Held::Each(blocks) => {
                Self::Each { blocks: blocks.clone(), element_bytes: size_of::<T>() }
            }
        }
    }

    pub(super) fn layout(&self) -> Layout<'_> {
        match self {
            Self::Even(layout) => *layout,
            Self::Each { blocks, element_bytes } => blocks.layout(*element_bytes),
        }
    }
}

/// How a call uses the buffers of this PE.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The length of a block.
    pub(super) len: usize,
    pub(super) source_len: usize,
    pub(super) target_len: usize,
    /// Whether this PE contributes the source, and receives the target.
    pub(super) uses: [bool; 2],
    pub(super) is_broadcast: bool,
    /// Whether this PE gets a result of a collective that gives none to some PEs.
    pub(super) is_among_some: bool,
    /// The layouts of a vector variant.
    pub(super) layouts: Option<[OwnedLayout; 2]>,
    /// How the call widens the elements.
    pub(super) widening: Option<Widening>,
}

impl Shape {
    /// The shape of a call without data.
    pub(super) const EMPTY: Self = Self::using([false; 2]);

    /// Returns the shape of a call that uses these buffers, without their lengths. A plan knows
    /// them, and [`Self::new`] adds them.
    pub(crate) const fn using(uses: [bool; 2]) -> Self {
        Self {
            len: 0,
            source_len: 0,
            target_len: 0,
            uses,
            is_broadcast: false,
            is_among_some: false,
            layouts: None,
            widening: None,
        }
    }

    /// Returns the shape of a call on blocks of `len` elements, or on those of `layouts`.
    pub(super) fn new<T: Pod>(
        team: &Team,
        verb: &Verb<'_>,
        combine: &impl Combine<T>,
        len: usize,
        layouts: Option<[OwnedLayout; 2]>,
    ) -> Self {
        let (contributed, received) = verb.blocks(team);
        let even = || verb.even::<T>(team, len).map(|both| both.map(OwnedLayout::Even));
        Self {
            len,
            is_broadcast: verb.collective == Collective::Broadcast,
            is_among_some: verb.is_among_some(team),
            layouts: layouts.or_else(even),
            widening: Widening::of(team, verb, combine.combination()),
            ..Self::using([contributed > 0, received > 0])
        }
    }

    /// Returns the shape of a call whose buffers have these lengths. Lengths that are not given
    /// follow from the others, and from what `verb` states.
    fn of<T: Pod>(
        team: &Team,
        verb: &Verb<'_>,
        combine: &impl Combine<T>,
        source_len: Option<usize>,
        target_len: Option<usize>,
    ) -> Result<Self> {
        let collective = verb.collective;
        let (contributed, received) = verb.blocks(team);
        let shape = |len, source_len, target_len, layouts| Self {
            source_len,
            target_len,
            ..Self::new(team, verb, combine, len, layouts)
        };
        let own = if collective == Collective::ScatterVector { target_len } else { source_len };
        if let Some([given, received]) = verb.held(team, verb.len.or(own).unwrap_or(0))? {
            let source_len = source_len.unwrap_or(given.extent());
            let target_len = target_len.unwrap_or(received.extent());
            ensure_fits::<T>(collective, source_len)?;
            ensure_fits::<T>(collective, target_len)?;
            layouts::<T>(team, (source_len, given), (target_len, received))?;
            let layouts = [given, received].map(OwnedLayout::of::<T>);
            return Ok(shape(0, source_len, target_len, Some(layouts)));
        }
        // One of the buffers that this PE uses determines the length of a block.
        let (used_len, blocks) =
            if contributed > 0 { (source_len, contributed) } else { (target_len, received) };
        if collective == Collective::Broadcast {
            let used_len = used_len.or(source_len);
            used_len.map_or(Ok(()), |used_len| verb.check_stated(used_len))?;
            let len = verb.len.or(used_len).unwrap_or(0);
            let (source_len, target_len) = (source_len.unwrap_or(len), target_len.unwrap_or(len));
            if contributed > 0 {
                check_own(source_len, target_len)?;
            }
            ensure_fits::<T>(collective, len)?;
            return Ok(shape(len, source_len, target_len, None));
        }
        let len = verb.len.unwrap_or(used_len.unwrap_or(0) / blocks.max(1) as usize);
        // A length that overflows matches no blocks.
        let of = |blocks: u32| len.saturating_mul(blocks as usize);
        let source_len = source_len.unwrap_or(of(contributed));
        let target_len = target_len.unwrap_or(of(received));
        let blocks = (contributed, received);
        check_len(collective, blocks, team.size(), len, source_len, target_len)?;
        ensure_fits::<T>(collective, source_len)?;
        ensure_fits::<T>(collective, target_len)?;
        Ok(shape(len, source_len, target_len, None))
    }

    /// Returns source and target of a call on one vector: the vector is the source, or the target
    /// of a PE that receives a broadcast.
    pub(super) fn place<T: Pod>(&self, data: Vec<T>) -> (Vec<T>, Vec<T>) {
        match (self.is_broadcast, self.uses) {
            (true, [true, _]) => (data, Vec::new()),
            (true, [false, _]) => (Vec::new(), data),
            (false, [true, _]) => (data, blank(self.target_len)),
            (false, [false, _]) => (Vec::new(), blank(self.target_len)),
        }
    }

    /// Returns the result of a call on one vector.
    pub(super) fn result<T>(&self, source: Vec<T>, target: Vec<T>) -> Vec<T> {
        if self.is_broadcasting() { source } else { target }
    }

    /// Returns whether this PE broadcasts its data.
    pub(super) fn is_broadcasting(&self) -> bool {
        self.is_broadcast && self.uses[0]
    }
}

impl Team {
    /// Returns the shape of a call, and its plan.
    pub(super) fn shape_and_plan<T: Pod>(
        &self,
        verb: &Verb<'_>,
        combine: &impl Combine<T>,
        source_len: Option<usize>,
        target_len: Option<usize>,
    ) -> Result<(Shape, Arc<dyn Ready>)> {
        let shape = Shape::of::<T>(self, verb, combine, source_len, target_len)?;
        let ready = self.nonblocking_plan::<T>(verb, &shape, false, combine.combination())?;
        Ok((shape, ready))
    }
}
