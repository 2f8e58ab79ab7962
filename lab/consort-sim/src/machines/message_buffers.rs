//! Machines without coherent caches. Their cores access message buffers by put and get.
//!
//! The model and its parameters are those of Petrović's thesis (EPFL 2015), section 4.1: tiles on a
//! mesh with XY routing, each with the message buffers of its cores. A core moves one line at a
//! time and waits for it.

use serde::{Deserialize, Serialize};

use super::{
    Described,
    reading::{self, Flaw, ensure, product},
};

/// Cores with message buffers that all cores access by put and get, a line at a time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessageBuffers {
    /// The number of tiles from west to east.
    #[serde(deserialize_with = "reading::count")]
    pub columns: u32,
    /// The number of tiles from north to south.
    #[serde(deserialize_with = "reading::count")]
    pub rows: u32,
    /// The number of cores in a tile.
    #[serde(deserialize_with = "reading::count")]
    pub cores_per_tile: u32,
    /// Core cycles per nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub ghz: f64,
    /// Bytes in a line, the unit of transfer.
    #[serde(deserialize_with = "reading::size")]
    pub line_bytes: usize,
    /// Bytes in a core's message buffer, a whole number of lines.
    #[serde(deserialize_with = "reading::size")]
    pub buffer_bytes: usize,
    /// Bytes in a core's cache for its private memory.
    #[serde(deserialize_with = "reading::size")]
    pub cache_bytes: usize,
    /// The time of a packet through a router, `L_hop` in the model.
    #[serde(deserialize_with = "reading::not_negative")]
    pub hop_ns: f64,
    /// A core's part in moving a line from or to a message buffer, `o^mpb`.
    #[serde(deserialize_with = "reading::positive")]
    pub mpb_ns: f64,
    /// A core's part in writing a line to its memory, `o_w^mem`.
    #[serde(deserialize_with = "reading::positive")]
    pub memory_write_ns: f64,
    /// A core's part in reading a line from its memory, `o_r^mem`.
    #[serde(deserialize_with = "reading::positive")]
    pub memory_read_ns: f64,
    /// The time of a put from the core's own message buffer, excluding its lines, `o_put^mpb`.
    #[serde(deserialize_with = "reading::not_negative")]
    pub put_ns: f64,
    /// The time of a get to the core's own message buffer, excluding its lines, `o_get^mpb`.
    #[serde(deserialize_with = "reading::not_negative")]
    pub get_ns: f64,
    /// The time of a put from memory, excluding its lines, `o_put^mem`.
    #[serde(deserialize_with = "reading::not_negative")]
    pub put_memory_ns: f64,
    /// The time of a get to memory, excluding its lines, `o_get^mem`.
    #[serde(deserialize_with = "reading::not_negative")]
    pub get_memory_ns: f64,
    /// The time of reading a flag, excluding its line.
    #[serde(deserialize_with = "reading::not_negative")]
    pub flag_read_ns: f64,
    /// How long a line occupies the message buffers of a tile; a part of [`Self::mpb_ns`].
    #[serde(deserialize_with = "reading::not_negative")]
    pub serve_ns: f64,
    /// The number of read requests that a router's queue for one side holds while a tile is busy.
    #[serde(deserialize_with = "reading::count")]
    pub queued_reads: u32,
    /// The number of lines to write that the queue holds instead.
    #[serde(deserialize_with = "reading::count")]
    pub queued_writes: u32,
    /// The links between routers. Without them packets never wait for a link.
    pub link: Option<Link>,
    /// The tiles, by column and row, that have memory controllers.
    pub controllers: Vec<[u32; 2]>,
    /// The costs of an interrupt.
    pub interrupt: Interrupt,
    /// The additional time of a call. It is fitted to published results, and every use of it says
    /// so. Nothing is fitted without it.
    #[serde(default, deserialize_with = "reading::optional")]
    pub overhead_ns: Option<f64>,
}

/// A link between two routers, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// How long a flit occupies it.
    #[serde(deserialize_with = "reading::not_negative")]
    pub flit_ns: f64,
    /// The number of flits in a packet with a line. Other packets are one flit.
    #[serde(deserialize_with = "reading::count")]
    pub line_flits: u32,
}

/// The costs of an interrupt from core to core, in core cycles.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// The time from the interrupt to the handler of one receiver.
    #[serde(deserialize_with = "reading::positive")]
    pub latency_cycles: f64,
    /// How long a receiver occupies the status registers.
    #[serde(deserialize_with = "reading::not_negative")]
    pub status_read_cycles: f64,
    /// The number of receivers that the status registers serve at a time. 1 by default.
    #[serde(default = "one", deserialize_with = "reading::count")]
    pub reads_at_once: u32,
    /// The time until the program's handler runs, in nanoseconds. It is fitted to published results
    /// like [`MessageBuffers::overhead_ns`], and used together with it.
    #[serde(default, deserialize_with = "reading::optional")]
    pub signal_ns: Option<f64>,
}

const fn one() -> u32 {
    1
}

impl Described for MessageBuffers {
    fn complete(self) -> Result<Self, Flaw> {
        let Self { columns, rows, buffer_bytes, line_bytes, mpb_ns, serve_ns, .. } = self;
        product("columns", &[columns, rows, self.cores_per_tile])?;
        ensure(
            buffer_bytes.is_multiple_of(line_bytes),
            "buffer_bytes",
            format!("expected a whole number of lines of {line_bytes} bytes, found {buffer_bytes}"),
        )?;
        ensure(
            serve_ns <= mpb_ns,
            "serve_ns",
            format!("expected at most {mpb_ns}, because it is a part of mpb_ns, found {serve_ns}"),
        )?;
        ensure(
            !self.controllers.is_empty(),
            "controllers",
            "expected at least one memory controller, found none",
        )?;
        for (index, [x, y]) in self.controllers.iter().enumerate() {
            ensure(
                *x < columns && *y < rows,
                format!("controllers.{index}"),
                format!("expected a tile of the {columns} x {rows} mesh, found [{x}, {y}]"),
            )?;
        }
        Ok(self)
    }
}

impl MessageBuffers {
    /// Returns the number of cores.
    pub fn cores(&self) -> u32 {
        self.columns * self.rows * self.cores_per_tile
    }

    /// Returns the column and row of a core's tile. Cores of a tile, and tiles of a row, have
    /// consecutive numbers.
    pub fn tile(&self, core: u32) -> (u32, u32) {
        let tile = core / self.cores_per_tile;
        (tile % self.columns, tile / self.columns)
    }

    /// Returns the number of routers that a packet passes between two cores, which is 1 on the same
    /// tile.
    pub fn distance(&self, a: u32, b: u32) -> u32 {
        routers(self.tile(a), self.tile(b))
    }

    /// Returns the tile of the memory controller that serves a core. It is the nearest one; if
    /// several are equally near, the first of them.
    ///
    /// # Panics
    /// When there are no controllers, which a valid description excludes.
    pub fn controller(&self, core: u32) -> (u32, u32) {
        let tile = self.tile(core);
        let tiles = self.controllers.iter().map(|&[x, y]| (x, y));
        tiles.min_by_key(|&to| routers(tile, to)).expect("a description has controllers")
    }

    /// Returns the number of routers that a packet passes between a core and its memory controller.
    ///
    /// # Panics
    /// When there are no controllers, which a valid description excludes.
    pub fn memory_distance(&self, core: u32) -> u32 {
        routers(self.tile(core), self.controller(core))
    }
}

/// Returns the number of routers that a packet passes under XY routing, including both ends.
fn routers((ax, ay): (u32, u32), (bx, by): (u32, u32)) -> u32 {
    1 + ax.abs_diff(bx) + ay.abs_diff(by)
}

impl Interrupt {
    /// Returns the time from the interrupt to the handler of one receiver, in nanoseconds.
    pub fn latency_ns(&self, ghz: f64) -> f64 {
        self.latency_cycles / ghz
    }

    /// Returns how long a receiver occupies the status registers, in nanoseconds.
    pub fn status_read_ns(&self, ghz: f64) -> f64 {
        self.status_read_cycles / ghz
    }
}
