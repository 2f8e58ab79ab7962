//! A panel as a PE of any row and column of the grid needs it, and one whose broadcasts are under
//! way.

use std::ops::Range;

use consort::{Rank, Request, Result};
use consort_apps_kernels::{dense::View, matrix::Matrix, recorder::Recorder};

use crate::{Cholesky, pack};

/// A panel below its diagonal block.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    step: usize,
    width: usize,
    /// Its own rows.
    pub(crate) rows: Vec<f64>,
    /// Its blocks whose numbers are those of own columns, by the row of the grid that has them. The
    /// blocks follow each other.
    pub(crate) facing: Vec<Vec<f64>>,
}

impl Panel {
    /// The own rows of a panel, which only its column of the grid fills.
    pub(crate) fn own_rows(cholesky: &Cholesky<'_>, a: &Matrix, step: usize) -> Self {
        let (width, below) = (cholesky.rows.width(step), cholesky.below(step));
        let mut rows = vec![0.0; below.len() * width];
        if cholesky.columns.owns(step) {
            pack(a.view().part(below, cholesky.columns.range(step)), &mut rows);
        }
        let facing = vec![Vec::new(); cholesky.rows.parts as usize];
        Self { step, width, rows, facing }
    }

    /// The blocks that face own columns and lie in this row of the grid.
    fn facing_in<'c>(
        &self,
        cholesky: &'c Cholesky<'_>,
        root: Rank,
    ) -> impl Iterator<Item = usize> + use<'c> {
        let blocks = cholesky.columns.own_blocks(self.step + 1);
        blocks.filter(move |&block| cholesky.rows.owner(block) == root)
    }

    /// What the column of the grid has to broadcast: the roots and their blocks, which only they
    /// fill.
    pub(crate) fn pieces(&self, cholesky: &Cholesky<'_>) -> Vec<(Rank, Vec<f64>)> {
        let piece = |root| {
            let lines: usize =
                self.facing_in(cholesky, root).map(|block| cholesky.rows.width(block)).sum();
            let mut piece = vec![0.0; lines * self.width];
            let mut rest = &mut *piece;
            if cholesky.rows.own == root {
                for block in self.facing_in(cholesky, root) {
                    let lines = cholesky.rows.range(block);
                    let (part, others) = rest.split_at_mut(lines.len() * self.width);
                    pack(self.rows(cholesky, lines), part);
                    rest = others;
                }
            }
            (root, piece)
        };
        let roots = (0..cholesky.rows.parts).map(Rank);
        roots.map(piece).filter(|(_, piece)| !piece.is_empty()).collect()
    }

    /// Some own rows, by their place among all own rows.
    pub(crate) fn rows(&self, cholesky: &Cholesky<'_>, rows: Range<usize>) -> View<'_> {
        let below = cholesky.below(self.step);
        let all = View::new(&self.rows, (below.len(), self.width), below.len());
        all.part(rows.start - below.start..rows.end - below.start, 0..self.width)
    }

    /// The block that faces an own column.
    pub(crate) fn facing(&self, cholesky: &Cholesky<'_>, block: usize) -> View<'_> {
        let root = cholesky.rows.owner(block);
        let before = self.facing_in(cholesky, root).take_while(|&other| other < block);
        let start: usize = before.map(|other| cholesky.rows.width(other) * self.width).sum();
        let lines = cholesky.rows.width(block);
        View::new(&self.facing[root.index()][start..], (lines, self.width), lines)
    }
}

/// A panel that is broadcast while its PE computes.
pub(crate) enum Ahead<'p> {
    /// Along the rows of the grid.
    Rows(Panel, Request<'p, Vec<f64>>),
    /// Along the columns.
    Columns(Panel, Vec<(Rank, Request<'p, Vec<f64>>)>),
}

impl<'p> Ahead<'p> {
    /// Starts to broadcast a panel, which its column of the grid has factored.
    pub(crate) fn start(
        cholesky: &Cholesky<'p>,
        a: &Matrix,
        step: usize,
        recorder: &Recorder,
    ) -> Result<Self> {
        recorder.communicate(|| {
            let mut panel = Panel::own_rows(cholesky, a, step);
            if panel.rows.is_empty() {
                return Self::on_columns(cholesky, panel);
            }
            let (rows, root) = (std::mem::take(&mut panel.rows), cholesky.columns.owner(step));
            Ok(Self::Rows(panel, cholesky.grid.row.start_broadcast(rows, root)?))
        })
    }

    /// Starts to broadcast along the columns of the grid what has come along its rows.
    fn on_columns(cholesky: &Cholesky<'p>, panel: Panel) -> Result<Self> {
        let start = |(root, piece)| Ok((root, cholesky.grid.column.start_broadcast(piece, root)?));
        let requests = panel.pieces(cholesky).into_iter().map(start).collect::<Result<_>>()?;
        Ok(Self::Columns(panel, requests))
    }

    /// Lets the broadcasts progress, and starts those that can be.
    pub(crate) fn progress(self, cholesky: &Cholesky<'p>) -> Result<Self> {
        match self {
            Self::Rows(panel, mut rows) => {
                if !rows.test()? {
                    return Ok(Self::Rows(panel, rows));
                }
                Self::on_columns(cholesky, Panel { rows: rows.wait()?, ..panel })
            }
            Self::Columns(..) => {
                cholesky.world.progress()?;
                Ok(self)
            }
        }
    }

    /// Waits until the panel is here.
    pub(crate) fn wait(self, cholesky: &Cholesky<'p>, recorder: &Recorder) -> Result<Panel> {
        match self {
            Self::Rows(panel, rows) => {
                let rows = recorder.wait(|| rows.wait())?;
                let panel = Panel { rows, ..panel };
                let ahead = recorder.communicate(|| Self::on_columns(cholesky, panel))?;
                ahead.wait(cholesky, recorder)
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
