//! The states of the teams that a PE has formed.

use std::cell::{Cell, OnceCell, RefCell};

use consort_fabric::Rank;
use consort_native::Group;

use super::state::State;

/// The states of the teams that a PE has formed, at fixed addresses. They form a binary tree: the
/// bits of a team's number, from the lowest, are the path to its state.
#[derive(Default)]
pub(crate) struct Teams {
    root: Node,
    count: Cell<usize>,
    /// The numbers of states whose teams are freed.
    spare: RefCell<Vec<usize>>,
    /// The numbers of the states for messages, in the order of the world ranks of the sender and
    /// the receiver, one of which is this PE.
    messages: RefCell<Vec<(Pair, usize)>>,
}

/// The sender and the receiver of messages.
type Pair = (Rank, Rank);

#[derive(Default)]
struct Node {
    state: OnceCell<State>,
    next: [OnceCell<Box<Self>>; 2],
}

impl Teams {
    /// Returns the number of the state for a PE's part in a team formed from `parent`: that of a
    /// freed team, or a new one, which lives as long as the PE.
    pub(crate) fn state_for(&self, parent: &State, part: Group) -> usize {
        let spare = self.spare.borrow_mut().pop();
        if let Some(state) = spare.and_then(|number| self.state(number)) {
            state.reuse_for(parent, part);
            return state.number();
        }
        let number = self.count.replace(self.count.get() + 1) + 1;
        self.node(number).state.get_or_init(|| parent.of_part(number, part)).number()
    }

    /// Returns whether the PE has never formed a team.
    pub(super) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    /// Returns the number of the state for messages from one PE to another, if this PE has joined
    /// their team.
    pub(crate) fn messages(&self, from: Rank, to: Rank) -> Option<usize> {
        let messages = self.messages.borrow();
        let at = messages.binary_search_by_key(&(from, to), |(pair, _)| *pair).ok()?;
        Some(messages[at].1)
    }

    /// Stores the number of the state for messages from one PE to another.
    pub(crate) fn keep_messages(&self, pair: Pair, number: usize) {
        let mut messages = self.messages.borrow_mut();
        match messages.binary_search_by_key(&pair, |(pair, _)| *pair) {
            Ok(at) => messages[at].1 = number,
            Err(at) => messages.insert(at, (pair, number)),
        }
    }

    /// Returns whether there are states for messages.
    pub(crate) fn have_messages(&self) -> bool {
        !self.messages.borrow().is_empty()
    }

    /// Returns the states for messages that PE `from` sends.
    pub(crate) fn messages_of(&self, from: Rank) -> Vec<&State> {
        let messages = self.messages.borrow();
        let sent = messages.iter().filter(|((sender, _), _)| *sender == from);
        sent.filter_map(|(_, number)| self.state(*number)).collect()
    }

    /// Returns the state of this number, if there is one.
    pub(crate) fn state(&self, number: usize) -> Option<&State> {
        self.node(number.max(1)).state.get()
    }

    /// Returns the node of a number, from 1 on. The path ends at the number's highest bit.
    fn node(&self, mut number: usize) -> &Node {
        let mut node = &self.root;
        while number > 1 {
            node = node.next[number & 1].get_or_init(Box::default);
            number >>= 1;
        }
        node
    }

    /// Makes the state of a freed team available to other teams.
    pub(crate) fn spare(&self, state: &State) {
        self.spare.borrow_mut().push(state.number());
        self.messages.borrow_mut().retain(|(_, number)| *number != state.number());
    }

    /// Returns all states, including those of freed teams.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &State> {
        (1..=self.count.get()).filter_map(|number| self.state(number))
    }
}
