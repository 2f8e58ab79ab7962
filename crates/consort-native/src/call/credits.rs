//! Flow control between calls: credits from PE to PE.

use std::future::{Future, ready};

use consort_fabric::{Credit, Credits, Op, Rank};

use super::view::Call;

impl Credits for Call<'_> {
    #[inline(always)]
    fn credit(&self, to: Rank, credit: Credit, quarter: u64) -> impl Future<Output = Op> {
        // Release: pairs with the acquire in `await_credits`.
        let word = word(credit);
        self.group.credits(to, self.rank).publish_at(word, quarter + 1);
        self.tell(to, self.group.credits_at(to, self.rank) + word, 1);
        ready(Ok(()))
    }

    #[inline(always)]
    async fn await_credits(
        &self,
        from: impl Iterator<Item = Rank> + Clone + Unpin,
        credit: Credit,
        quarter: u64,
    ) -> Op {
        let (group, me) = (self.group, self.rank);
        let has_given = move |peer| group.credits(me, peer).word_at(word(credit)) > quarter;
        self.when(move || from.clone().all(has_given).then_some(())).await
    }
}

/// The word of such credits, in the line that one PE has for another's.
const fn word(credit: Credit) -> usize {
    match credit {
        Credit::Own => 0,
        Credit::Group => 1,
    }
}
