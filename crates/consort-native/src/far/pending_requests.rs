//! The requests that a process has sent to others, and their replies.

use std::collections::HashMap;

use consort_fabric::Rank;

/// A request whose reply has not been taken yet.
struct PendingRequest {
    /// Whether the reply may end a PE's wait.
    ends_wait: bool,
    /// The reply, if it has arrived.
    reply: Option<Vec<u64>>,
}

#[derive(Default)]
pub(super) struct PendingRequests {
    next: u64,
    pending: HashMap<u64, PendingRequest>,
    /// The last request for the words that a member of a group publishes, by group and member.
    shows: HashMap<(u64, Rank), u64>,
}

impl PendingRequests {
    /// Returns the number of a new request. `ends_wait` means that its reply may end a PE's wait.
    pub(super) fn begin(&mut self, ends_wait: bool) -> u64 {
        let id = self.next;
        self.next += 1;
        self.pending.insert(id, PendingRequest { ends_wait, reply: None });
        id
    }

    /// Returns whether a reply is awaited that may end a PE's wait.
    pub(super) fn is_any_awaited(&self) -> bool {
        self.pending.values().any(|request| request.ends_wait && request.reply.is_none())
    }

    /// Returns the number of a new request for the words that a member of a group publishes. `None`
    /// while the reply to the previous one is missing.
    pub(super) fn begin_published(&mut self, group: u64, member: Rank) -> Option<u64> {
        if let Some(&last) = self.shows.get(&(group, member))
            && self.take(last).is_none()
        {
            return None;
        }
        let id = self.begin(false);
        self.shows.insert((group, member), id);
        Some(id)
    }

    /// Drops the requests for the words that members of a group publish.
    pub(super) fn leave(&mut self, group: u64) {
        for (_, id) in self.shows.extract_if(|(of, _), _| *of == group) {
            self.pending.remove(&id);
        }
    }

    /// Keeps a reply, if it is still awaited.
    pub(super) fn keep(&mut self, id: u64, data: &[u64]) {
        if let Some(request) = self.pending.get_mut(&id) {
            request.reply = Some(data.to_vec());
        }
    }

    /// Takes the reply to a request if it has arrived.
    pub(super) fn take(&mut self, id: u64) -> Option<Vec<u64>> {
        let reply = self.pending.get_mut(&id)?.reply.take()?;
        self.pending.remove(&id);
        Some(reply)
    }

    /// Drops a request whose reply is no longer awaited.
    pub(super) fn forget(&mut self, id: u64) {
        self.pending.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_gets_one_request_until_it_replies() {
        let mut requests = PendingRequests::default();
        assert_eq!(requests.begin_published(5, Rank(1)), Some(0));
        assert_eq!(requests.begin_published(5, Rank(1)), None);
        assert_eq!(requests.begin_published(5, Rank(2)), Some(1));
        requests.keep(0, &[]);
        assert_eq!(requests.begin_published(5, Rank(1)), Some(2));
        requests.leave(5);
        requests.keep(2, &[]);
        assert!(requests.pending.is_empty());
        assert_eq!(requests.begin_published(5, Rank(1)), Some(3));
    }

    #[test]
    fn request_that_ends_no_wait_is_not_awaited() {
        let mut requests = PendingRequests::default();
        requests.begin_published(5, Rank(1));
        requests.begin(false);
        assert!(!requests.is_any_awaited());
        let id = requests.begin(true);
        assert!(requests.is_any_awaited());
        requests.keep(id, &[7]);
        assert!(!requests.is_any_awaited());
    }
}
