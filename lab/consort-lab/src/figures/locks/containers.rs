//! Queues and stacks under a lock or a scheme, and without one, on a simulated machine.

use std::cell::{Cell, OnceCell};

use anyhow::Result;
use consort_machine::{Line, Machine as _};
use consort_sim::SimulatedThread;
use consort_sync::{
    delegation::{Scheme, ServerScheme},
    objects::{Clusters, Container, Lcrq, Object, Queue, Sequential, Stack, Treiber},
};

use super::run::{Point, Setting, Subject};

/// The number of cells of a ring of LCRQ. They are few enough that all are used before the
/// measurement starts.
const RING_CELLS: usize = 1 << 10;

/// Sequential code under one scheme or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contained {
    Stack,
    Queue,
    QueueOfTwo,
}

/// Puts and takes in turn. The container is empty at the start.
async fn in_turn<C: Container>(setting: &Setting, m: &SimulatedThread, container: &C) {
    let (local, takes) = (C::Local::default(), Cell::new(true));
    let operation = async || {
        takes.set(!takes.get());
        if takes.get() {
            let Ok(_) = container.take(m, &local).await;
        } else {
            let Ok(()) = container.put(m, &local, 1).await;
        }
    };
    setting.repeat(m, operation).await;
}

fn alone<C: Container>(setting: &Setting, make: impl Fn(&SimulatedThread) -> C) -> Result<Point> {
    let container = OnceCell::new();
    let outcome = setting.simulate(async |m: SimulatedThread| {
        in_turn(setting, &m, container.get_or_init(|| make(&m))).await;
    })?;
    Ok(setting.point(outcome, 0))
}

/// Runs threads. The first ones are the servers of the parts.
fn served<S: ServerScheme, D: Sequential>(
    setting: &Setting,
    make: impl Fn(&SimulatedThread) -> Object<S, D>,
    lines: impl Fn(&S) -> &[Line],
) -> Result<Point>
where
    Object<S, D>: Container,
{
    let object = OnceCell::new();
    let outcome = setting.simulate(async |m: SimulatedThread| {
        let object = object.get_or_init(|| make(&m));
        if let Some(&part) = object.parts().get(m.thread().0 as usize) {
            m.announce(lines(object.scheme(part)));
            let Ok(()) = object.run(&m, part).await;
        } else {
            in_turn(setting, &m, object).await;
        }
    })?;
    Ok(setting.point(outcome, object.get().map_or(0, |object| object.parts().len())))
}

impl Subject for Contained {
    /// Two schemes share the nodes of a queue.
    fn is_private(&self) -> bool {
        *self != Self::QueueOfTwo
    }

    fn apply<S: Scheme>(&self, setting: &Setting, scheme: impl Fn() -> S) -> Result<Point> {
        match self {
            Self::Stack => alone(setting, |_| Stack::new(scheme())),
            Self::Queue => alone(setting, |m| Queue::new(m, scheme())),
            Self::QueueOfTwo => alone(setting, |m| Queue::with_two(m, scheme(), scheme())),
        }
    }

    fn serve<S: ServerScheme>(
        &self,
        setting: &Setting,
        scheme: impl Fn() -> S,
        lines: impl Fn(&S) -> &[Line],
    ) -> Result<Point> {
        match self {
            Self::Stack => served(setting, |_| Stack::new(scheme()), lines),
            Self::Queue => served(setting, |m| Queue::new(m, scheme()), lines),
            Self::QueueOfTwo => served(setting, |m| Queue::with_two(m, scheme(), scheme()), lines),
        }
    }
}

/// Runs Treiber's stack.
pub(super) fn treiber(setting: &Setting) -> Result<Point> {
    alone(setting, |_| Treiber::new())
}

/// Runs LCRQ.
pub(super) fn lcrq(setting: &Setting) -> Result<Point> {
    alone(setting, |m| Lcrq::new(m, RING_CELLS))
}

/// Runs LCRQ+H.
pub(super) fn lcrq_of_clusters(setting: &Setting, clusters: Clusters) -> Result<Point> {
    alone(setting, |m| Lcrq::new(m, RING_CELLS).with_clusters(clusters))
}
