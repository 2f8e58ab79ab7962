//! Flow control between calls: credits from PE to PE.

use std::future::{Future, ready};

use consort_fabric::{Credits, Local, Op, Rank};

use super::view::Call;

impl Credits for Call<'_> {
    #[inline(always)]
    fn credit(&self, to: Rank, quarter: u64) -> impl Future<Output = Op> {
        // Release: pairs with the acquire in `await_credits`.
        self.group.credits(to, self.rank).publish_at(0, quarter + 1);
        self.tell(to, self.group.credits_at(to, self.rank), 1);
        ready(Ok(()))
    }

    #[inline(always)]
    fn await_credits(&self, quarter: u64) -> impl Future<Output = Op> {
        let (group, me) = (self.group, self.rank);
        let others = (0..self.size()).map(Rank).filter(move |&peer| peer != me);
        self.when(move || {
            others.clone().all(|peer| group.credits(me, peer).word_at(0) > quarter).then_some(())
        })
    }
}
