//! The waits of a server's clients for their answers, and a search for the best interval.

/// How a client waits for its answer.
///
/// A client that checks all the time takes its line from the server, which has prefetched it for
/// writing: the collision of spinning and prefetching (Petrović 2015, section 7.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Checks all the time.
    Spins,
    /// Checks once in this number of cycles.
    Every(u64),
    /// Checks at the interval that the server finds to be best while it runs.
    Tuned,
}

/// The intervals that a server tries, in cycles.
const INTERVALS: [u64; 8] = [0, 125, 250, 500, 1000, 2000, 4000, 8000];
/// Requests per slot at the beginning of a window, which are not timed.
const SETTLING: u64 = 4;
/// Requests per slot in a window.
const WINDOW: u64 = 16;
/// The smallest number of requests in a window, if there are few slots.
const FEWEST: u64 = 64;
/// The number of windows between two searches. It begins with the first value, and doubles up to
/// the second while searches find the same interval.
const RESTS: [u32; 2] = [128, 4096];

/// A search for the interval with which a server executes the most requests. It tries each for a
/// window, keeps the best, and searches again later: sooner if the best has changed.
#[derive(Debug)]
pub(super) struct IntervalSearch {
    /// The index in `INTERVALS` that is being tried. The server rests if it is past the end.
    tried: usize,
    /// The shortest window so far in nanoseconds, and the index with which it was measured.
    best: (u64, usize),
    /// The result of the last search.
    found: usize,
    /// Windows of the current rest, and how many of them are left.
    rest: u32,
    left: u32,
    requests: u64,
    began_ns: u64,
    /// The requests of a window that are not timed, and all of them.
    settling: u64,
    window: u64,
}

impl IntervalSearch {
    /// Creates a search for a server with this number of slots. It begins with the first interval.
    pub(super) fn new(slots: usize) -> Self {
        let slots = slots as u64;
        Self {
            tried: 0,
            best: (u64::MAX, 0),
            found: 0,
            rest: RESTS[0],
            left: 0,
            requests: 0,
            began_ns: 0,
            settling: (slots * SETTLING).max(FEWEST / 2),
            window: (slots * WINDOW).max(FEWEST),
        }
    }

    /// Discards the window, because the server had nothing to do.
    pub(super) fn forget_window(&mut self) {
        self.requests = 0;
    }

    /// Records that a scan has found `requests` requests. Returns the new interval for clients in
    /// cycles, if it changes.
    pub(super) fn note(&mut self, requests: u64, now_ns: impl FnOnce() -> u64) -> Option<u64> {
        let before = self.requests;
        self.requests += requests;
        if before < self.settling && self.requests >= self.settling {
            self.began_ns = now_ns();
        } else if self.requests >= self.window {
            self.requests = 0;
            return self.next(now_ns() - self.began_ns);
        }
        None
    }

    /// Ends a window of `ns` nanoseconds.
    fn next(&mut self, ns: u64) -> Option<u64> {
        if self.tried < INTERVALS.len() {
            self.best = self.best.min((ns, self.tried));
            self.tried += 1;
            if self.tried == INTERVALS.len() {
                let (_, best) = self.best;
                let same = best == self.found;
                self.rest = if same { (self.rest * 2).min(RESTS[1]) } else { RESTS[0] };
                (self.found, self.left) = (best, self.rest);
                return Some(INTERVALS[best]);
            }
        } else if self.left > 0 {
            self.left -= 1;
            return None;
        } else {
            (self.tried, self.best) = (0, (u64::MAX, 0));
        }
        Some(INTERVALS[self.tried])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates requests to a server that takes `ns(interval)` nanoseconds per request. Returns
    /// how many requests it executed with each interval, and the last interval.
    fn run(
        search: &mut IntervalSearch,
        clock: &mut u64,
        requests: u64,
        ns: impl Fn(u64) -> u64,
    ) -> ([u64; 8], u64) {
        let (mut used, mut cycles) = ([0; 8], INTERVALS[search.found]);
        for _ in 0..requests {
            used[INTERVALS.iter().position(|&tried| tried == cycles).unwrap()] += 1;
            *clock += ns(cycles);
            cycles = search.note(1, || *clock).unwrap_or(cycles);
        }
        (used, cycles)
    }

    #[test]
    fn best_interval_is_found_and_used_nearly_all_the_time() {
        for best in INTERVALS {
            let mut search = IntervalSearch::new(10);
            let (used, _) = run(&mut search, &mut 0, 200_000, |cycles| 10 + cycles.abs_diff(best));
            let place = INTERVALS.iter().position(|&tried| tried == best).unwrap();
            assert!(used[place] > 190_000, "{best}: {used:?}");
            assert!(used.iter().all(|&used| used > 0), "{used:?}");
        }
    }

    #[test]
    fn change_of_the_best_interval_is_found() {
        let mut search = IntervalSearch::new(10);
        let mut clock = 0;
        let (_, cycles) = run(&mut search, &mut clock, 20_000, |cycles| 10 + cycles);
        assert_eq!(cycles, 0);
        let (used, _) = run(&mut search, &mut clock, 400_000, |cycles| 10 + cycles.abs_diff(1000));
        assert!(used[4] > 200_000, "{used:?}");
    }

    #[test]
    fn idle_time_of_a_server_does_not_count() {
        let mut search = IntervalSearch::new(10);
        let mut clock = 0;
        let mut cycles = 0_u64;
        for request in 0..50_000 {
            if request % 700 == 699 {
                clock += if cycles == 500 { 1_000_000 } else { 0 };
                search.forget_window();
            }
            clock += 10 + cycles.abs_diff(500);
            cycles = search.note(1, || clock).unwrap_or(cycles);
        }
        assert_eq!(search.found, 3);
    }
}
