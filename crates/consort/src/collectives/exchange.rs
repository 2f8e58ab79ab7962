//! A block from everyone to everyone: MPI's all-to-all.

use consort_fabric::{Collective, Pod};

use super::{Held, blank};
#[cfg(doc)]
use crate::Error;
use crate::{Pieces, Result, Symmetric, Team, symmetric::element::Element};

impl Team<'_> {
    /// Gives value `i` to PE `i`, and returns what each PE gave to this one, in the order of their
    /// ranks. Values are copied into the call, so it may be Loose.
    ///
    /// # Errors
    /// [`Error::Blocks`] unless there is a value for each PE, and see [`Team`].
    ///
    /// ```
    /// # use consort::Pes;
    /// let all = Pes::threads(2).run(|pe| {
    ///     let me = pe.world().rank().0;
    ///     pe.world().exchange(&[10 * me, 10 * me + 1]) // for PE 0, for PE 1
    /// })?;
    /// assert_eq!(all[1].1, [1, 11]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn exchange<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = blank(values.len());
        self.on_slices(Collective::Exchange, None, None, values, &mut all)?;
        Ok(all)
    }

    /// Copies block `i` of PE `j`'s `source` into PE `i`'s `target` as its block `j`. Both are as
    /// many blocks of equal length as there are PEs.
    ///
    /// # Errors
    /// [`Error::Blocks`], [`Error::BorrowedSlice`] with exit mode None, and see [`Team`].
    pub fn exchange_slice<T: Pod>(&self, source: &[T], target: &mut [T]) -> Result<()> {
        self.refuse_loans()?;
        self.on_slices(Collective::Exchange, None, None, source, target)
    }

    /// Copies block `i` of PE `j`'s `data` into PE `i`'s `data` as its block `j`. The data is
    /// copied before, since peers may read it while others' comes.
    ///
    /// # Errors
    /// As [`Team::exchange_slice`].
    pub fn exchange_in_place<T: Pod>(&self, data: &mut [T]) -> Result<()> {
        let source = data.to_vec();
        self.exchange_slice(&source, data)
    }

    /// Copies block `i` of PE `j`'s part of `source` into PE `i`'s part of `target` as its block
    /// `j`.
    ///
    /// # Errors
    /// [`Error::Blocks`], [`Error::InPlace`], and see [`Team`].
    pub fn exchange_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
    ) -> Result<()> {
        self.on_symmetric(Collective::Exchange, None, None, source, target)
    }

    /// Gives piece `i` of `values` to PE `i`, and returns what each PE gave to this one, in the
    /// order of their ranks, and where that is. PEs are told how long the pieces are by an exchange
    /// before. Exit mode None is as Mine.
    ///
    /// # Errors
    /// [`Error::Pieces`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Pes, Pieces, Rank};
    /// let all = Pes::threads(2).run(|pe| {
    ///     let given = match pe.world().rank() {
    ///         Rank(0) => Pieces::new(&[1, 2])?, // one for PE 0, two for PE 1
    ///         _ => Pieces::new(&[3, 0])?,
    ///     };
    ///     pe.world().exchange_v(&[7, 8, 9], &given)
    /// })?;
    /// assert_eq!(all[0].1.0, [7, 7, 8, 9]);
    /// assert_eq!(all[1].1.0, [8, 9]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn exchange_v<T: Pod>(&self, values: &[T], given: &Pieces) -> Result<(Vec<T>, Pieces)> {
        let team = self.keeping();
        given.check_source(team.size(), values.len())?;
        let received = Pieces::new(&team.exchange(&given.counts())?)?;
        let mut all = blank(received.extent());
        team.exchange_v_slice(values, given, &mut all, &received)?;
        Ok((all, received))
    }

    /// Copies piece `i` of PE `j`'s `source` into PE `i`'s `target` as its piece `j`, which is as
    /// long.
    ///
    /// # Errors
    /// [`Error::Pieces`], [`Error::BorrowedSlice`] with exit mode None, [`Error::Mismatched`] when
    /// PEs do not say the same of a piece's length, and see [`Team`].
    pub fn exchange_v_slice<T: Pod>(
        &self,
        source: &[T],
        given: &Pieces,
        target: &mut [T],
        received: &Pieces,
    ) -> Result<()> {
        let (given, received) = (Held::Each(given), Held::Each(received));
        self.on_pieces(Collective::ExchangeV, None, (source, given), (target, received))
    }

    /// Copies piece `i` of PE `j`'s part of `source` into PE `i`'s part of `target` as its piece
    /// `j`, which is as long.
    ///
    /// Exit mode None is as Mine: nobody leaves before what it lends is back.
    ///
    /// # Errors
    /// [`Error::Pieces`], [`Error::InPlace`], [`Error::Mismatched`] when PEs do not say the same of
    /// a piece's length, and see [`Team`].
    pub fn exchange_v_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        given: &Pieces,
        target: &Symmetric<T>,
        received: &Pieces,
    ) -> Result<()> {
        let (given, received) = ((source, Held::Each(given)), (target, Held::Each(received)));
        self.on_symmetric_pieces(Collective::ExchangeV, None, given, received)
    }
}
