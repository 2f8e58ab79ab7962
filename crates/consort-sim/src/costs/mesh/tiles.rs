//! The message buffers of tiles, and how routers pass on requests to them.
//!
//! A tile serves one line at a time. Requests that find it busy queue in the routers on their way
//! (first along the row, then along the column): a router passes on one request from each of its
//! sides in turn. A core far away shares its side with many others, and gets less.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
};

use crate::engine::{Engine, Time};

/// All tiles of a mesh.
pub(super) struct Tiles {
    tiles: Vec<Tile>,
    /// What a waiting core is to do, by core.
    orders: Vec<Cell<Option<Order>>>,
}

/// What a core that waits is told.
#[derive(Clone, Copy)]
enum Order {
    /// Go on: it is served.
    Served,
    /// Say who is next whenever the tile becomes free.
    Decide,
}

/// One tile's buffers.
struct Tile {
    busy_until: Cell<Time>,
    queue: RefCell<Queue>,
}

/// Requests for one tile that wait.
struct Queue {
    to: usize,
    columns: usize,
    routers: Vec<Router>,
    /// The cores of all that wait, in no order.
    cores: Vec<u32>,
}

/// What waits at a router.
#[derive(Default)]
struct Router {
    /// Here and behind it.
    waiting: u32,
    /// The side that comes next.
    turn: usize,
    /// Cores of its own tile.
    own: VecDeque<u32>,
}

/// Sides of a router: its own tile, west, east, north and south.
const SIDES: usize = 5;

impl Tiles {
    pub(super) fn new(columns: usize, rows: usize, cores: u32) -> Self {
        let count = columns * rows;
        let tile = |to| {
            let routers = (0..count).map(|_| Router::default()).collect();
            let queue = Queue { to, columns, routers, cores: Vec::new() };
            Tile { busy_until: Cell::new(0), queue: RefCell::new(queue) }
        };
        Self {
            tiles: (0..count).map(tile).collect(),
            orders: (0..cores).map(|_| Cell::new(None)).collect(),
        }
    }

    /// Waits until tile `to` serves a request of `core` from tile `from`: from then on it is busy
    /// for `time`.
    pub(super) async fn serve(
        &self,
        engine: &Engine,
        core: u32,
        from: usize,
        to: usize,
        time: Time,
    ) {
        let Tile { busy_until, queue } = &self.tiles[to];
        let is_first = queue.borrow().cores.is_empty();
        if is_first && engine.now() >= busy_until.get() {
            busy_until.set(engine.now() + time);
            return;
        }
        queue.borrow_mut().enter(core, from);
        let order = if is_first {
            Order::Decide
        } else {
            engine.wait(|| self.orders[core as usize].take()).await
        };
        if matches!(order, Order::Served) {
            return;
        }
        loop {
            engine.sleep_until(busy_until.get()).await;
            busy_until.set(engine.now() + time);
            let next = queue.borrow_mut().leave();
            let tell = |core: u32, order| {
                self.orders[core as usize].set(Some(order));
                engine.wake(core);
            };
            if next != core {
                tell(next, Order::Served);
                continue;
            }
            if let Some(&heir) = queue.borrow().cores.first() {
                tell(heir, Order::Decide);
            }
            return;
        }
    }
}

impl Queue {
    /// The router that passes on to `self.to` what has come to `at`.
    fn onwards(&self, at: usize) -> usize {
        let (column, to_column) = (at % self.columns, self.to % self.columns);
        match column.cmp(&to_column) {
            std::cmp::Ordering::Less => at + 1,
            std::cmp::Ordering::Greater => at - 1,
            std::cmp::Ordering::Equal if at < self.to => at + self.columns,
            std::cmp::Ordering::Equal => at - self.columns,
        }
    }

    /// The router on a side from which requests come to `at`, if there is one.
    fn side(&self, at: usize, side: usize) -> Option<usize> {
        let column = at % self.columns;
        let from = match side {
            1 if column > 0 => at - 1,
            2 if column + 1 < self.columns => at + 1,
            3 => at.checked_sub(self.columns)?,
            4 if at + self.columns < self.routers.len() => at + self.columns,
            _ => return None,
        };
        (from != self.to && self.onwards(from) == at).then_some(from)
    }

    fn enter(&mut self, core: u32, from: usize) {
        self.cores.push(core);
        self.routers[from].own.push_back(core);
        let mut at = from;
        self.routers[at].waiting += 1;
        while at != self.to {
            at = self.onwards(at);
            self.routers[at].waiting += 1;
        }
    }

    /// Takes out the core whose turn it is.
    fn leave(&mut self) -> u32 {
        let mut at = self.to;
        loop {
            self.routers[at].waiting -= 1;
            let first = self.routers[at].turn;
            let waits = |side: usize| match side {
                0 => !self.routers[at].own.is_empty(),
                _ => self.side(at, side).is_some_and(|from| self.routers[from].waiting > 0),
            };
            let sides = (0..SIDES).map(|side| (first + side) % SIDES);
            let side = sides.into_iter().find(|&side| waits(side)).unwrap_or(0);
            self.routers[at].turn = (side + 1) % SIDES;
            match self.side(at, side) {
                Some(from) => at = from,
                None => break,
            }
        }
        let core = self.routers[at].own.pop_front().expect("a router counts what waits");
        self.cores.retain(|&other| other != core);
        core
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        let Tiles { mut tiles, .. } = Tiles::new(3, 2, 12);
        tiles.remove(0).queue.into_inner()
    }

    /// Tiles 0 1 2 / 3 4 5; requests for tile 0. Those of tile 5 go along their row to 3, then up.
    #[test]
    fn requests_go_along_the_row_first() {
        let queue = queue();
        assert_eq!([5, 4, 3].map(|at| queue.onwards(at)), [4, 3, 0]);
        assert_eq!(queue.side(0, 4), Some(3), "from the south");
        assert_eq!(queue.side(0, 2), Some(1), "from the east");
        assert_eq!(queue.side(1, 4), None, "nothing of tile 4 comes through 1");
    }

    /// Of tile 1 waits one core, of tile 3 one, of tile 5 two: the south side has three.
    #[test]
    fn each_side_has_its_turn() {
        let mut queue = queue();
        for (core, from) in [(10, 5), (11, 5), (6, 3), (2, 1), (0, 0)] {
            queue.enter(core, from);
        }
        let order: Vec<u32> = (0..5).map(|_| queue.leave()).collect();
        assert_eq!(order, [0, 2, 6, 10, 11]);
        assert!(queue.cores.is_empty());
    }
}
