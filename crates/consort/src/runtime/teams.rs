//! Where a PE keeps the states of the teams that it has made.

use std::cell::{Cell, OnceCell, RefCell};

use consort_native::Group;

use super::state::State;

/// The states of the teams that a PE has made, which stay where they are: a binary tree, in which
/// the number of a team leads to it, bit by bit from the lowest.
#[derive(Default)]
pub(crate) struct Teams {
    root: Node,
    count: Cell<usize>,
    /// The numbers of states whose teams are freed.
    spare: RefCell<Vec<usize>>,
}

#[derive(Default)]
struct Node {
    state: OnceCell<State>,
    next: [OnceCell<Box<Self>>; 2],
}

impl Teams {
    /// The state for a PE's part in a team that is made of `parent`: that of a team that was freed,
    /// or a new one, which is kept for as long as the PE lives.
    pub(crate) fn state_for(&self, parent: &State, part: Group) -> &State {
        let spare = self.spare.borrow_mut().pop();
        if let Some(state) = spare.and_then(|number| self.node(number).state.get()) {
            state.serve_again(parent, part);
            return state;
        }
        let number = self.count.replace(self.count.get() + 1) + 1;
        self.node(number).state.get_or_init(|| parent.of_part(number, part))
    }

    /// The node of a number, from 1 on: its highest bit says where it ends.
    fn node(&self, mut number: usize) -> &Node {
        let mut node = &self.root;
        while number > 1 {
            node = node.next[number & 1].get_or_init(Box::default);
            number >>= 1;
        }
        node
    }

    /// Has the state of a team that is freed serve others.
    pub(crate) fn spare(&self, state: &State) {
        self.spare.borrow_mut().push(state.number());
    }

    /// All states.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &State> {
        let mut nodes = vec![&self.root];
        std::iter::from_fn(move || {
            let node = nodes.pop()?;
            nodes.extend(node.next.iter().filter_map(OnceCell::get).map(|next| &**next));
            Some(node.state.get())
        })
        .flatten()
    }
}
