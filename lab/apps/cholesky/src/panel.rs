//! A panel as each PE of the grid needs it, and a panel whose broadcasts are in progress.

use std::ops::Range;

use consort::{Rank, Result, nonblocking::Request};
use consort_apps_kernels::{dense::View, matrix::Matrix, recorder::Recorder};

use crate::checkerboard::Checkerboard;

/// A panel below its diagonal block.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    step: usize,
    width: usize,
    /// The rows that this PE owns.
    pub(crate) rows: Vec<f64>,
    /// The blocks that correspond to this PE's columns, by the row of the grid that has them. The
    /// blocks follow each other.
    pub(crate) facing: Vec<Vec<f64>>,
}

impl Panel {
    /// Returns this PE's rows of a panel. Only the PEs in its column of the grid fill them. Reuses
    /// the memory of an old panel.
    pub(crate) fn own_rows(
        checkerboard: &Checkerboard,
        a: &Matrix,
        step: usize,
        spare: Self,
    ) -> Self {
        let (width, below) = (checkerboard.rows.width(step), checkerboard.below(step));
        let Self { mut rows, mut facing, .. } = spare;
        rows.resize(below.len() * width, 0.0);
        if checkerboard.columns.owns(step) {
            a.view().part(below, checkerboard.columns.range(step)).copy_to(&mut rows);
        }
        facing.resize(checkerboard.rows.parts, Vec::new());
        Self { step, width, rows, facing }
    }

    /// Returns the blocks that correspond to this PE's columns and that this row of the grid has.
    fn facing_in<'c>(
        &self,
        checkerboard: &'c Checkerboard,
        root: Rank,
    ) -> impl Iterator<Item = usize> + use<'c> {
        let blocks = checkerboard.columns.own_blocks(self.step + 1);
        blocks.filter(move |&block| checkerboard.rows.owner(block) == root)
    }

    /// Returns the roots and blocks that the column of the grid has to broadcast. Only the roots
    /// fill their blocks.
    pub(crate) fn for_columns(&mut self, checkerboard: &Checkerboard) -> Vec<(Rank, Vec<f64>)> {
        let blocks = |root: Rank| {
            let lines: usize = self
                .facing_in(checkerboard, root)
                .map(|block| checkerboard.rows.width(block))
                .sum();
            let mut blocks = std::mem::take(&mut self.facing[root.index()]);
            blocks.resize(lines * self.width, 0.0);
            let mut rest = &mut *blocks;
            if checkerboard.rows.own == root {
                for block in self.facing_in(checkerboard, root) {
                    let lines = checkerboard.rows.range(block);
                    let (part, others) = rest.split_at_mut(lines.len() * self.width);
                    self.rows(checkerboard, lines).copy_to(part);
                    rest = others;
                }
            }
            (root, blocks)
        };
        let roots = (0..checkerboard.rows.parts).map(Rank::new);
        roots.map(blocks).filter(|(_, blocks)| !blocks.is_empty()).collect()
    }

    /// Returns some of this PE's rows, by their position among all of its rows.
    pub(crate) fn rows(&self, checkerboard: &Checkerboard, rows: Range<usize>) -> View<'_> {
        let below = checkerboard.below(self.step);
        let all = View::new(&self.rows, (below.len(), self.width), below.len());
        all.part(rows.start - below.start..rows.end - below.start, 0..self.width)
    }

    /// Returns the block that corresponds to one of this PE's columns.
    pub(crate) fn facing(&self, checkerboard: &Checkerboard, block: usize) -> View<'_> {
        let root = checkerboard.rows.owner(block);
        let before = self.facing_in(checkerboard, root).take_while(|&other| other < block);
        let start: usize = before.map(|other| checkerboard.rows.width(other) * self.width).sum();
        let lines = checkerboard.rows.width(block);
        View::new(&self.facing[root.index()][start..], (lines, self.width), lines)
    }
}

/// A panel that is broadcast while its PE computes.
pub(crate) enum Ahead {
    /// Along the rows of the grid.
    Rows(Panel, Request<Vec<f64>>),
    /// Along the columns.
    Columns(Panel, Vec<(Rank, Request<Vec<f64>>)>),
}

impl Ahead {
    /// Starts to broadcast a panel that its column of the grid has factored. Reuses the memory of
    /// an old panel.
    pub(crate) fn start(
        checkerboard: &Checkerboard,
        a: &Matrix,
        step: usize,
        spare: Panel,
        recorder: &Recorder,
    ) -> Result<Self> {
        recorder.communicate(|| {
            let mut panel = Panel::own_rows(checkerboard, a, step, spare);
            if panel.rows.is_empty() {
                return Self::on_columns(checkerboard, panel);
            }
            let (rows, root) = (std::mem::take(&mut panel.rows), checkerboard.columns.owner(step));
            Ok(Self::Rows(panel, checkerboard.grid.row.start(rows).broadcast(root)?))
        })
    }

    /// Starts to broadcast along the columns of the grid the data that arrived along its rows.
    fn on_columns(checkerboard: &Checkerboard, mut panel: Panel) -> Result<Self> {
        let start =
            |(root, blocks)| Ok((root, checkerboard.grid.column.start(blocks).broadcast(root)?));
        let requests =
            panel.for_columns(checkerboard).into_iter().map(start).collect::<Result<_>>()?;
        Ok(Self::Columns(panel, requests))
    }

    /// Progresses the broadcasts, and starts those whose data is complete.
    pub(crate) fn progress(self, checkerboard: &Checkerboard) -> Result<Self> {
        match self {
            Self::Rows(panel, mut rows) => {
                if !rows.test()? {
                    return Ok(Self::Rows(panel, rows));
                }
                Self::on_columns(checkerboard, Panel { rows: rows.wait()?, ..panel })
            }
            Self::Columns(..) => {
                checkerboard.world.progress()?;
                Ok(self)
            }
        }
    }

    /// Waits until the panel has arrived.
    pub(crate) fn wait(self, checkerboard: &Checkerboard, recorder: &Recorder) -> Result<Panel> {
        match self {
            Self::Rows(panel, rows) => {
                let rows = recorder.wait(|| rows.wait())?;
                let panel = Panel { rows, ..panel };
                let ahead = recorder.communicate(|| Self::on_columns(checkerboard, panel))?;
                ahead.wait(checkerboard, recorder)
            }
            Self::Columns(mut panel, requests) => recorder.wait(|| {
                for (root, request) in requests {
                    panel.facing[root.index()] = request.wait()?;
                }
                Ok(panel)
            }),
        }
    }
}
