//! A panel as a PE of any row and column of the grid needs it, and one whose broadcasts are under
//! way.

use std::ops::Range;

use consort::{Rank, Request, Result};
use consort_apps_kernels::{dense::View, matrix::Matrix, recorder::Recorder};

use crate::board::Board;

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
    pub(crate) fn own_rows(board: &Board<'_>, a: &Matrix, step: usize) -> Self {
        let (width, below) = (board.rows.width(step), board.below(step));
        let mut rows = vec![0.0; below.len() * width];
        if board.columns.owns(step) {
            a.view().part(below, board.columns.range(step)).copy_to(&mut rows);
        }
        let facing = vec![Vec::new(); board.rows.parts as usize];
        Self { step, width, rows, facing }
    }

    /// The blocks that face own columns and lie in this row of the grid.
    fn facing_in<'c>(
        &self,
        board: &'c Board<'_>,
        root: Rank,
    ) -> impl Iterator<Item = usize> + use<'c> {
        let blocks = board.columns.own_blocks(self.step + 1);
        blocks.filter(move |&block| board.rows.owner(block) == root)
    }

    /// What the column of the grid has to broadcast: the roots and their blocks, which only they
    /// fill.
    pub(crate) fn pieces(&self, board: &Board<'_>) -> Vec<(Rank, Vec<f64>)> {
        let piece = |root| {
            let lines: usize =
                self.facing_in(board, root).map(|block| board.rows.width(block)).sum();
            let mut piece = vec![0.0; lines * self.width];
            let mut rest = &mut *piece;
            if board.rows.own == root {
                for block in self.facing_in(board, root) {
                    let lines = board.rows.range(block);
                    let (part, others) = rest.split_at_mut(lines.len() * self.width);
                    self.rows(board, lines).copy_to(part);
                    rest = others;
                }
            }
            (root, piece)
        };
        let roots = (0..board.rows.parts).map(Rank);
        roots.map(piece).filter(|(_, piece)| !piece.is_empty()).collect()
    }

    /// Some own rows, by their place among all own rows.
    pub(crate) fn rows(&self, board: &Board<'_>, rows: Range<usize>) -> View<'_> {
        let below = board.below(self.step);
        let all = View::new(&self.rows, (below.len(), self.width), below.len());
        all.part(rows.start - below.start..rows.end - below.start, 0..self.width)
    }

    /// The block that faces an own column.
    pub(crate) fn facing(&self, board: &Board<'_>, block: usize) -> View<'_> {
        let root = board.rows.owner(block);
        let before = self.facing_in(board, root).take_while(|&other| other < block);
        let start: usize = before.map(|other| board.rows.width(other) * self.width).sum();
        let lines = board.rows.width(block);
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
        board: &Board<'p>,
        a: &Matrix,
        step: usize,
        recorder: &Recorder,
    ) -> Result<Self> {
        recorder.communicate(|| {
            let mut panel = Panel::own_rows(board, a, step);
            if panel.rows.is_empty() {
                return Self::on_columns(board, panel);
            }
            let (rows, root) = (std::mem::take(&mut panel.rows), board.columns.owner(step));
            Ok(Self::Rows(panel, board.grid.row.start_broadcast(rows, root)?))
        })
    }

    /// Starts to broadcast along the columns of the grid what has come along its rows.
    fn on_columns(board: &Board<'p>, panel: Panel) -> Result<Self> {
        let start = |(root, piece)| Ok((root, board.grid.column.start_broadcast(piece, root)?));
        let requests = panel.pieces(board).into_iter().map(start).collect::<Result<_>>()?;
        Ok(Self::Columns(panel, requests))
    }

    /// Lets the broadcasts progress, and starts those that can be.
    pub(crate) fn progress(self, board: &Board<'p>) -> Result<Self> {
        match self {
            Self::Rows(panel, mut rows) => {
                if !rows.test()? {
                    return Ok(Self::Rows(panel, rows));
                }
                Self::on_columns(board, Panel { rows: rows.wait()?, ..panel })
            }
            Self::Columns(..) => {
                board.world.progress()?;
                Ok(self)
            }
        }
    }

    /// Waits until the panel is here.
    pub(crate) fn wait(self, board: &Board<'p>, recorder: &Recorder) -> Result<Panel> {
        match self {
            Self::Rows(panel, rows) => {
                let rows = recorder.wait(|| rows.wait())?;
                let panel = Panel { rows, ..panel };
                let ahead = recorder.communicate(|| Self::on_columns(board, panel))?;
                ahead.wait(board, recorder)
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
