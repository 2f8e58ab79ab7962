//! The message buffers of tiles, and the queues of requests in the routers.
//!
//! A tile serves one line at a time. Requests that find it busy queue in the routers on their way
//! (first along the row, then along the column). A router has a queue for each of its sides and
//! serves the sides in turn. If a queue is full, a request waits in the previous router. So a core
//! that shares its side with many others gets a smaller part. The fewer requests the queues hold,
//! the larger the difference. Queues hold fewer lines to write than requests to read.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
};

use crate::engine::{Engine, Time};

/// All tiles of a mesh.
pub(super) struct Tiles {
    tiles: Vec<Tile>,
    /// The order for each waiting core.
    orders: Vec<Cell<Option<Order>>>,
}

/// The next step of a waiting core.
#[derive(Clone, Copy)]
enum Order {
    /// Continue: its request is served.
    Served,
    /// Choose the next request whenever the tile becomes free.
    Decide,
}

/// One tile's buffers.
struct Tile {
    busy_until: Cell<Time>,
    queue: RefCell<Queue>,
}

/// The waiting requests for one tile.
struct Queue {
    to: usize,
    columns: usize,
    room: u32,
    routers: Vec<Router>,
    /// The cores with waiting requests, in any order.
    cores: Vec<u32>,
}

/// The waiting requests at a router.
#[derive(Default)]
struct Router {
    /// The side that has the next turn.
    turn: usize,
    /// The queues, by side.
    queues: [VecDeque<Request>; SIDES],
}

#[derive(Clone, Copy)]
struct Request {
    core: u32,
    /// The room that it takes in a queue.
    size: u32,
}

/// Sides of a router: its own tile, west, east, north and south.
const SIDES: usize = 5;

impl Tiles {
    /// Returns tiles with routers. Each of their queues has this much room for requests.
    pub(super) fn new(columns: usize, rows: usize, cores: u32, room: u32) -> Self {
        let count = columns * rows;
        let tile = |to| {
            let routers = (0..count).map(|_| Router::default()).collect();
            let queue = Queue { to, columns, room, routers, cores: Vec::new() };
            Tile { busy_until: Cell::new(0), queue: RefCell::new(queue) }
        };
        Self {
            tiles: (0..count).map(tile).collect(),
            orders: (0..cores).map(|_| Cell::new(None)).collect(),
        }
    }

    /// Waits until tile `to` serves a request of this size from `core`, which is on tile `from`.
    /// The tile is then busy for `time`.
    pub(super) async fn serve(
        &self,
        engine: &Engine,
        (core, from): (u32, usize),
        to: usize,
        size: u32,
        time: Time,
    ) {
        let Tile { busy_until, queue } = &self.tiles[to];
        let is_first = queue.borrow().cores.is_empty();
        if is_first && engine.now() >= busy_until.get() {
            busy_until.set(engine.now() + time);
            return;
        }
        queue.borrow_mut().enter(Request { core, size }, from);
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
    /// Returns the next router on the way from `at` to `self.to`.
    fn onwards(&self, at: usize) -> usize {
        let (column, to_column) = (at % self.columns, self.to % self.columns);
        match column.cmp(&to_column) {
            std::cmp::Ordering::Less => at + 1,
            std::cmp::Ordering::Greater => at - 1,
            std::cmp::Ordering::Equal if at < self.to => at + self.columns,
            std::cmp::Ordering::Equal => at - self.columns,
        }
    }

    /// Returns the router at a side of `at` from which requests come, if there is one.
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

    /// Returns the side from which requests come to router `at` from router `from`.
    fn side_of(&self, at: usize, from: usize) -> usize {
        (1..SIDES).find(|&side| self.side(at, side) == Some(from)).unwrap_or(0)
    }

    fn has_room(&self, at: usize, side: usize, request: Request) -> bool {
        let queue = &self.routers[at].queues[side];
        queue.iter().map(|other| other.size).sum::<u32>() + request.size <= self.room
    }

    /// Enters a request at a core's tile, and moves it forward as far as there is room.
    fn enter(&mut self, request: Request, from: usize) {
        self.cores.push(request.core);
        let (mut at, mut side) = (from, 0);
        while at != self.to && self.routers[at].queues.iter().all(VecDeque::is_empty) {
            let next = self.onwards(at);
            let next_side = self.side_of(next, at);
            if !self.has_room(next, next_side, request) {
                break;
            }
            (at, side) = (next, next_side);
        }
        self.routers[at].queues[side].push_back(request);
    }

    /// Removes the request whose turn it is, and returns its core.
    fn leave(&mut self) -> u32 {
        let request = self.pass_on(self.to).expect("a request waits");
        self.cores.retain(|&other| other != request.core);
        request.core
    }

    /// Removes the request whose turn it is at a router, and refills the freed room.
    fn pass_on(&mut self, at: usize) -> Option<Request> {
        let router = &mut self.routers[at];
        let mut sides = (0..SIDES).map(|side| (router.turn + side) % SIDES);
        let side = sides.find(|&side| !router.queues[side].is_empty())?;
        router.turn = (side + 1) % SIDES;
        let request = router.queues[side].pop_front()?;
        if let Some(before) = self.side(at, side) {
            while let Some(next) = self.whose_turn(before)
                && self.has_room(at, side, next)
            {
                let moved = self.pass_on(before)?;
                self.routers[at].queues[side].push_back(moved);
            }
        }
        Some(request)
    }

    /// Returns the request that a router passes on next.
    fn whose_turn(&self, at: usize) -> Option<Request> {
        let router = &self.routers[at];
        let mut sides = (0..SIDES).map(|side| (router.turn + side) % SIDES);
        sides.find_map(|side| router.queues[side].front().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        let Tiles { mut tiles, .. } = Tiles::new(3, 2, 12, 24);
        tiles.remove(0).queue.into_inner()
    }

    /// Tiles 0 1 2 / 3 4 5, with requests for tile 0. Requests of tile 5 go along their row to 3,
    /// then up.
    #[test]
    fn requests_go_along_the_row_first() {
        let queue = queue();
        assert_eq!([5, 4, 3].map(|at| queue.onwards(at)), [4, 3, 0]);
        assert_eq!(queue.side(0, 4), Some(3), "from the south");
        assert_eq!(queue.side(0, 2), Some(1), "from the east");
        assert_eq!(queue.side(1, 4), None, "nothing of tile 4 comes through 1");
    }

    fn served(size: u32) -> Vec<u32> {
        let mut queue = queue();
        for (core, from) in [(10, 5), (11, 5), (8, 4), (6, 3), (2, 1), (0, 0)] {
            queue.enter(Request { core, size }, from);
        }
        let order = (0..6).map(|_| queue.leave()).collect();
        assert!(queue.cores.is_empty());
        order
    }

    /// Core 0 waits on tile 0 and core 2 on tile 1. Core 6 and others come from the south.
    #[test]
    fn router_serves_each_side_in_turn() {
        assert_eq!(served(1), [0, 2, 10, 11, 8, 6], "the south in the order in which they came");
    }

    /// Each queue has room for one request: 10 is in the queue of tile 0, 11 in that of tile 3, and
    /// 8 in that of its own tile. Tile 3 passes on 6, its own, before the request from the east.
    #[test]
    fn blocked_request_waits_in_the_previous_router() {
        assert_eq!(served(24), [0, 2, 10, 6, 11, 8]);
    }
}
