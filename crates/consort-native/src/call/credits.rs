//! Flow control between calls: credits from PE to PE.

use std::future::{Future, ready};

use consort_fabric::{Credit, Credits, Op, Rank};

use super::view::CallView;

impl Credits for CallView<'_> {
    #[inline(always)]
    fn credit(&self, to: Rank, credit: Credit, quarter: u64) -> impl Future<Output = Op> {
        let at = self.group.store_credit(to, credit, quarter);
        self.notify(to, at, 1);
        ready(Ok(()))
    }

    #[inline(always)]
    fn await_credits(
        &self,
        from: impl Iterator<Item = Rank> + Clone + Unpin,
        credit: Credit,
        quarter: u64,
    ) -> impl Future<Output = Op> {
        let group = self.group;
        let has_given = move |peer| group.has_credit(peer, credit, quarter);
        self.when(move || from.clone().all(has_given).then_some(()))
    }
}
