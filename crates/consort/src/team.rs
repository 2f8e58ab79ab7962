//! A team of PEs and its collectives.

use std::{
    any::type_name,
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
};

use consort_collectives::{Algorithm, Plan, PlanError, Setting, Visitor, flow::Flow, visit};
use consort_fabric::{
    Candidate, Collective, Kernel, Mode, Operator, OperatorClass, Pod, Query, Rank, Signature, Sync,
};
use consort_native::{Buffer, Endpoint, Operands};

use crate::{
    ChosenBy, Error, Result, Symmetric,
    cache::{Cache, Key, Prepared, Ready},
    choices::Choices,
    symmetric::Element,
};

/// What a team's PE keeps between calls.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    choices: RefCell<Choices>,
    cache: Cache,
    barrier: RefCell<Option<Rc<dyn Ready>>>,
    flow: RefCell<Flow>,
    /// Calls whose number has none of these bits begin a quarter of the window.
    quarter_mask: u64,
    synchronized: Cell<bool>,
    inside: Cell<bool>,
}

/// All PEs of a job, as one of them sees them, with the synchronization modes of its calls.
///
/// Every method is collective unless it says otherwise: all PEs of the team call it, in the same
/// order, with the same root, length, type, operator and modes.
///
/// # Errors
/// Every collective returns [`Error::PeFailed`] when a PE has failed and [`Error::Mismatched`] when
/// PEs made different calls.
#[derive(Clone, Copy)]
pub struct Team<'p> {
    state: &'p State,
    sync: Sync,
}

/// What a call is, besides its buffers.
struct Shape<'k> {
    collective: Collective,
    root: Option<Rank>,
    bytes: usize,
    symmetric: bool,
    datatype: &'static str,
    element_bytes: usize,
    kernel: Option<(Kernel<'k>, &'static str)>,
}

impl State {
    pub(crate) fn new(endpoint: Endpoint, choices: Choices) -> Self {
        let flow = Flow::new(endpoint.job().window());
        Self {
            quarter_mask: flow.quarter_mask(),
            endpoint,
            choices: RefCell::new(choices),
            cache: Cache::new(),
            barrier: RefCell::new(None),
            flow: RefCell::new(flow),
            // Nothing is under way before the first call.
            synchronized: Cell::new(true),
            inside: Cell::new(false),
        }
    }

    fn pes(&self) -> u32 {
        self.endpoint.job().config().pes
    }

    /// Makes the call, inside the team's window of calls.
    #[inline]
    fn run(&self, ready: &dyn Ready, operands: &Operands<'_>) -> Result<()> {
        let _inside = self.enter()?;
        if self.endpoint.job().is_poisoned() {
            return Err(Error::of_job(self.endpoint.job()));
        }
        if self.endpoint.calls() & self.quarter_mask == 0 {
            self.turn()?;
        }
        match ready.call(&self.endpoint, &self.synchronized, operands) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::of_job(self.endpoint.job())),
        }
    }

    /// Refuses calls from within a call.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Inside<'_>> {
        if self.inside.replace(true) {
            return Err(Error::Reentrant);
        }
        Ok(Inside(&self.inside))
    }

    #[cold]
    fn turn(&self) -> Result<()> {
        let turn = self.flow.borrow_mut().turn(self.synchronized.take());
        // SAFETY: `turn` alone drives the view, to its end, and `run` refuses calls from within a
        // call.
        #[expect(unsafe_code, reason = "makes a view for giving and awaiting credits")]
        let view = unsafe { self.endpoint.one_sided(&Operands::NONE) };
        self.endpoint
            .block_on(&view, turn.run(&view))
            .map_err(|_| Error::of_job(self.endpoint.job()))
    }

    /// Which candidate serves a call of this shape, and the barrier that brackets it.
    fn choose(&self, shape: &Shape<'_>, sync: Sync) -> (Candidate, ChosenBy, Candidate) {
        let class = shape.kernel.map_or(OperatorClass::Commutative, |(kernel, _)| kernel.class());
        let capabilities = self.endpoint.job().capabilities();
        let query = Query {
            collective: shape.collective,
            sync,
            pes: self.pes(),
            bytes: shape.bytes as u64,
            operator: class,
            symmetric: shape.symmetric,
        };
        let choices = self.choices.borrow();
        let (candidate, by) = choices.choose(&query, shape.element_bytes, capabilities);
        let (barrier, _) = choices.choose(&barrier_query(self.pes()), 1, capabilities);
        (candidate, by, barrier)
    }

    /// Plans a call of this shape.
    #[cold]
    fn prepare(&self, shape: &Shape<'_>, sync: Sync) -> Result<Rc<dyn Ready>> {
        let (candidate, _, barrier) = self.choose(shape, sync);
        let signature = Signature {
            collective: shape.collective,
            sync,
            bytes: shape.bytes as u64,
            root: shape.root,
            datatype: shape.datatype,
            operator: shape.kernel.map(|(_, name)| name),
        };
        let synchronizes = shape.collective == Collective::Barrier
            || sync.entry == Mode::All
            || sync.exit == Mode::All;
        let memory = if shape.symmetric { " in symmetric memory" } else { "" };
        let bracket = if synchronizes { format!(" within {barrier}") } else { String::new() };
        let fingerprint = self
            .endpoint
            .job()
            .fingerprint(&format!("{signature}{memory} by {candidate}{bracket}"));
        let setting = Setting {
            rank: self.endpoint.rank(),
            pes: self.pes(),
            root: shape.root.unwrap_or(Rank(0)),
            bytes: shape.bytes,
            element_bytes: shape.element_bytes,
            operator: shape.kernel.map_or(OperatorClass::Commutative, |(kernel, _)| kernel.class()),
            sync,
            symmetric: shape.symmetric,
            capabilities: self.endpoint.job().capabilities(),
            first_slot: Setting::first_slot(shape.collective, self.pes()),
            beside: false,
            counter: 1,
        };
        let maker = Maker {
            collective: shape.collective,
            setting: &setting,
            candidate: &candidate,
            barrier: &barrier,
            fingerprint,
            synchronizes,
        };
        Ok(visit(shape.collective, &candidate.algorithm, maker)??)
    }
}

/// Clears the mark that a call is under way.
pub(crate) struct Inside<'s>(&'s Cell<bool>);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// What a barrier is asked as.
pub(crate) fn barrier_query(pes: u32) -> Query {
    Query {
        collective: Collective::Barrier,
        sync: Sync::STRICT,
        pes,
        bytes: 0,
        operator: OperatorClass::Commutative,
        symmetric: false,
    }
}

/// Makes a plan for an algorithm that is known by name.
struct Maker<'m> {
    collective: Collective,
    setting: &'m Setting,
    candidate: &'m Candidate,
    barrier: &'m Candidate,
    fingerprint: u64,
    synchronizes: bool,
}

impl Visitor for Maker<'_> {
    type Output = Result<Rc<dyn Ready>, PlanError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        Ok(Rc::new(Prepared::<A> {
            plan: Plan::new(self.collective, self.setting, self.candidate, self.barrier)?,
            fingerprint: self.fingerprint,
            synchronizes: self.synchronizes,
            candidate: self.candidate.clone(),
        }))
    }
}

impl<'p> Team<'p> {
    pub(crate) fn new(state: &'p State) -> Self {
        Self { state, sync: Sync::default() }
    }

    pub(crate) fn state(&self) -> &'p State {
        self.state
    }

    /// The caller's rank. Local.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.state.endpoint.rank()
    }

    /// The number of PEs. Local.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.state.pes()
    }

    /// The PE before this one, the last before the first. Local.
    #[must_use]
    pub fn left(&self) -> Rank {
        self.rank().plus(u64::from(self.size()) - 1, self.size())
    }

    /// The PE after this one, the first after the last. Local.
    #[must_use]
    pub fn right(&self) -> Rank {
        self.rank().plus(1, self.size())
    }

    /// The same team, its calls in other synchronization modes. Local.
    ///
    /// ```
    /// # use consort::{Pes, Rank, Sync};
    /// Pes::threads(2).run(|pe| {
    ///     let strict = pe.world().with(Sync::STRICT);
    ///     strict.broadcast(7, Rank(0)) // nobody returns before all have the 7
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[must_use]
    pub fn with(self, sync: Sync) -> Self {
        Self { sync, ..self }
    }

    /// The modes of this team's calls. Local.
    #[must_use]
    pub fn sync(&self) -> Sync {
        self.sync
    }

    /// Returns when all PEs of the team have called it. Modes do not matter.
    ///
    /// # Errors
    /// See [`Team`].
    #[inline]
    pub fn barrier(&self) -> Result<()> {
        let state = self.state;
        if let Some(ready) = &*state.barrier.borrow() {
            return state.run(&**ready, &Operands::NONE);
        }
        self.first_barrier()
    }

    /// Plans the barrier, and makes it.
    #[cold]
    fn first_barrier(&self) -> Result<()> {
        let ready = self.state.prepare(&Shape::barrier(), Sync::STRICT)?;
        *self.state.barrier.borrow_mut() = Some(Rc::clone(&ready));
        self.state.run(&*ready, &Operands::NONE)
    }

    /// Returns the root's `value` on every PE. A value is copied into the call, so it may be Loose.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Pes, Rank};
    /// let all = Pes::threads(3).run(|pe| {
    ///     let mine = pe.world().rank().0;
    ///     pe.world().broadcast(mine, Rank(2))
    /// })?;
    /// assert!(all.iter().all(|&(_, value)| value == 2));
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    pub fn broadcast<T: Pod>(&self, mut value: T, root: Rank) -> Result<T> {
        self.broadcast_from(std::slice::from_mut(&mut value), root)?;
        Ok(value)
    }

    /// Copies the root's `data` into everyone's `data`, any number of elements.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[inline]
    pub fn broadcast_slice<T: Pod>(&self, data: &mut [T], root: Rank) -> Result<()> {
        self.refuse_loans()?;
        self.broadcast_from(data, root)
    }

    #[inline]
    fn broadcast_from<T: Pod>(&self, data: &mut [T], root: Rank) -> Result<()> {
        let len = data.len();
        let (source, target) = if self.rank() == root {
            (Buffer::source(data), Buffer::ABSENT)
        } else {
            (Buffer::ABSENT, Buffer::target(data))
        };
        let operands = Operands { kernel: None, source, target };
        self.call::<T>(Collective::Broadcast, Some(root), len, false, &operands, "")
    }

    /// Copies the root's part of `data` into everyone's part. With Loose modes a PE may return, and
    /// call again, while data still moves.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], and see [`Team`].
    #[inline]
    pub fn broadcast_symmetric<T: Element>(&self, data: &Symmetric<T>, root: Rank) -> Result<()> {
        let buffer = data.buffer(self.state);
        let (source, target) =
            if self.rank() == root { (buffer, Buffer::ABSENT) } else { (Buffer::ABSENT, buffer) };
        let operands = Operands { kernel: None, source, target };
        self.call::<T>(Collective::Broadcast, Some(root), data.len(), true, &operands, "")
    }

    /// Combines everyone's `value` in the order of the ranks; the result is on the root, `None`
    /// elsewhere.
    ///
    /// The operator is one of [`Sum`](crate::Sum), [`Product`](crate::Product),
    /// [`Min`](crate::Min),
    /// [`Max`](crate::Max), the bitwise ones, or an associative closure; see [`Operator`].
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Pes, Rank};
    /// let longest = |a: [u32; 2], b: [u32; 2]| if b[1] > a[1] { b } else { a };
    /// let all = Pes::threads(3).run(|pe| {
    ///     let rank = pe.world().rank().0;
    ///     pe.world().reduce([rank, 10 - rank], longest, Rank(0))
    /// })?;
    /// assert_eq!(all[0].1, Some([0, 10]));
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    pub fn reduce<T: Pod, O: Operator<T>>(
        &self,
        value: T,
        operator: O,
        root: Rank,
    ) -> Result<Option<T>> {
        let mut result = value;
        let source = std::slice::from_ref(&value);
        self.reduce_from(source, std::slice::from_mut(&mut result), &operator, root)?;
        Ok((self.rank() == root).then_some(result))
    }

    /// Combines everyone's `source`, element by element and in the order of the ranks, into the
    /// root's `target`. Elsewhere `target` is not touched, and may be empty.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Lengths`] on the root, [`Error::BorrowedSlice`] with
    /// exit mode None, and see [`Team`].
    #[inline]
    pub fn reduce_slice<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: O,
        root: Rank,
    ) -> Result<()> {
        self.refuse_loans()?;
        self.reduce_from(source, target, &operator, root)
    }

    #[inline]
    fn reduce_from<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: &O,
        root: Rank,
    ) -> Result<()> {
        let is_root = self.rank() == root;
        if is_root {
            same_length(source.len(), target.len())?;
        }
        let operands = Operands {
            kernel: Some(Kernel::new::<T, O>(operator)),
            source: Buffer::source(source),
            target: if is_root { Buffer::target(target) } else { Buffer::ABSENT },
        };
        self.call::<T>(Collective::Reduce, Some(root), source.len(), false, &operands, O::NAME)
    }

    /// Combines everyone's part of `source` into the root's part of `target`. With Loose modes a PE
    /// may return, and call again, while data still moves.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Lengths`] if the two differ, [`Error::InPlace`], and see
    /// [`Team`].
    #[inline]
    pub fn reduce_symmetric<T: Element, O: Operator<T>>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
        root: Rank,
    ) -> Result<()> {
        same_length(source.len(), target.len())?;
        if source.is(target) {
            return Err(Error::InPlace);
        }
        let is_root = self.rank() == root;
        let operands = Operands {
            kernel: Some(Kernel::new::<T, O>(&operator)),
            source: source.buffer(self.state),
            target: if is_root { target.buffer(self.state) } else { Buffer::ABSENT },
        };
        self.call::<T>(Collective::Reduce, Some(root), source.len(), true, &operands, O::NAME)
    }

    /// Combines everyone's `value` in the order of the ranks; everyone gets the result. A value is
    /// copied into the call, so it may be Loose. Operators are those of [`Team::reduce`].
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Pes, Sum};
    /// let all = Pes::threads(3).run(|pe| {
    ///     let residual = f64::from(pe.world().rank().0);
    ///     pe.world().all_reduce(residual, Sum)
    /// })?;
    /// assert!(all.iter().all(|&(_, sum)| sum == 3.0));
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    pub fn all_reduce<T: Pod, O: Operator<T>>(&self, value: T, operator: O) -> Result<T> {
        let mut result = value;
        let source = std::slice::from_ref(&value);
        self.all_reduce_from(source, std::slice::from_mut(&mut result), &operator)?;
        Ok(result)
    }

    /// Combines everyone's `source`, element by element and in the order of the ranks, into
    /// everyone's `target`.
    ///
    /// # Errors
    /// [`Error::Lengths`] if the two differ, [`Error::BorrowedSlice`] with exit mode None, and see
    /// [`Team`].
    #[inline]
    pub fn all_reduce_slice<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.refuse_loans()?;
        self.all_reduce_from(source, target, &operator)
    }

    /// Combines everyone's `data`, element by element and in the order of the ranks, into
    /// everyone's `data`. Peers may still read what a PE contributes while it has the first
    /// results: so the data is copied before.
    ///
    /// # Errors
    /// [`Error::BorrowedSlice`] with exit mode None, and see [`Team`].
    pub fn all_reduce_in_place<T: Pod, O: Operator<T>>(
        &self,
        data: &mut [T],
        operator: O,
    ) -> Result<()> {
        let source = data.to_vec();
        self.all_reduce_slice(&source, data, operator)
    }

    #[inline]
    fn all_reduce_from<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: &O,
    ) -> Result<()> {
        same_length(source.len(), target.len())?;
        let operands = Operands {
            kernel: Some(Kernel::new::<T, O>(operator)),
            source: Buffer::source(source),
            target: Buffer::target(target),
        };
        self.call::<T>(Collective::AllReduce, None, source.len(), false, &operands, O::NAME)
    }

    /// Combines everyone's part of `source` into everyone's part of `target`.
    ///
    /// # Errors
    /// [`Error::Lengths`] if the two differ, [`Error::InPlace`], and see [`Team`].
    #[inline]
    pub fn all_reduce_symmetric<T: Element, O: Operator<T>>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
    ) -> Result<()> {
        same_length(source.len(), target.len())?;
        if source.is(target) {
            return Err(Error::InPlace);
        }
        let operands = Operands {
            kernel: Some(Kernel::new::<T, O>(&operator)),
            source: source.buffer(self.state),
            target: target.buffer(self.state),
        };
        self.call::<T>(Collective::AllReduce, None, source.len(), true, &operands, O::NAME)
    }

    /// Allocates `len` elements of zero in every PE's symmetric memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is not so much left or lengths differ, and see [`Team`].
    pub fn symmetric<T: Element>(&self, len: usize) -> Result<Symmetric<'p, T>> {
        Symmetric::allocate(*self, len)
    }

    /// The algorithm that serves a call like `broadcast_slice` or `reduce_slice` (with a
    /// commutative operator) of `bytes`, and where that choice came from. Local.
    #[must_use]
    pub fn choice(&self, collective: Collective, bytes: usize) -> (Candidate, ChosenBy) {
        let shape = Shape { bytes, collective, ..Shape::barrier() };
        let sync = if collective == Collective::Barrier { Sync::STRICT } else { self.sync };
        let (candidate, by, _) = self.state.choose(&shape, sync);
        (candidate, by)
    }

    /// Has all later calls of `collective` served by `candidate`, or chosen again with `None`. All
    /// PEs of the team must say the same before their next call.
    pub fn force(&self, collective: Collective, candidate: Option<Candidate>) {
        self.state.choices.borrow_mut().force(collective, candidate);
        self.state.cache.clear();
        self.state.barrier.borrow_mut().take();
    }

    /// The algorithm of the plan that was made last for `collective`. Local.
    #[must_use]
    pub fn served_by(&self, collective: Collective) -> Option<Candidate> {
        match collective {
            Collective::Barrier => {
                self.state.barrier.borrow().as_ref().map(|ready| ready.candidate().clone())
            }
            _ => self.state.cache.latest(collective),
        }
    }

    fn refuse_loans(&self) -> Result<()> {
        if self.sync.exit == Mode::None {
            return Err(Error::BorrowedSlice(self.sync));
        }
        Ok(())
    }

    /// Makes a call on `len` elements, by the plan that is kept for it or by a new one.
    #[inline]
    fn call<T: Pod>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        len: usize,
        symmetric: bool,
        operands: &Operands<'_>,
        operator: &'static str,
    ) -> Result<()> {
        let bytes = len * size_of::<T>();
        let datatype = type_name::<T>();
        let key = Key {
            call: Key::pack(collective, self.sync, root.unwrap_or(Rank(0)), symmetric),
            bytes,
            datatype: datatype.as_ptr().addr(),
            kernel: operands.kernel.as_ref().map_or(0, Kernel::identity),
        };
        let ready = match self.state.cache.find(&key) {
            Some(ready) => ready,
            None => {
                let kernel = operands.kernel.map(|kernel| (kernel, operator));
                let element_bytes = size_of::<T>();
                let shape =
                    Shape { collective, root, bytes, symmetric, datatype, element_bytes, kernel };
                self.plan(key, &shape)?
            }
        };
        self.state.run(&*ready, operands)
    }

    /// Makes and keeps a plan.
    #[cold]
    fn plan(&self, key: Key, shape: &Shape<'_>) -> Result<Rc<dyn Ready>> {
        let (state, pes) = (self.state, self.size());
        if let Some(root) = shape.root.filter(|root| root.0 >= pes) {
            return Err(Error::RootOutOfRange { root, pes });
        }
        let ready = state.prepare(shape, self.sync)?;
        state.cache.keep(shape.collective, key, &ready);
        Ok(ready)
    }
}

#[inline]
fn same_length(source_len: usize, target_len: usize) -> Result<()> {
    if source_len == target_len { Ok(()) } else { Err(Error::Lengths { source_len, target_len }) }
}

impl Shape<'_> {
    fn barrier() -> Self {
        Self {
            collective: Collective::Barrier,
            root: None,
            bytes: 0,
            symmetric: false,
            datatype: "",
            element_bytes: 1,
            kernel: None,
        }
    }
}

impl fmt::Debug for Team<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("sync", &self.sync)
            .finish()
    }
}
