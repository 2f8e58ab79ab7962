//! Draws a call as SVG: the tree of its messages, and below it the timeline of each PE.

use crate::simulation::{Conditions, Node, Program, Simulated, tree};
use consort::tune::{Collective, Query};
use consort_sim::Step;

use consort_report::{plain, ticks};

use super::svg::{Anchor, FAINT, INK, Svg};
use consort_console::output::time;

const WIDTH: f64 = 1200.0;
/// The space to the left of the rows, for the names of the PEs.
const LEFT: f64 = 60.0;
const RIGHT: f64 = WIDTH - 30.0;
/// A step narrower than this is not drawn on its own.
const LEAST_WIDTH: f64 = 0.4;

/// The classes of steps, in the order of the legend. The colours suit all kinds of colour vision
/// (Okabe and Ito 2008).
const CLASSES: [(&str, &str); 6] = [
    ("copies its own memory", "#e69f00"),
    ("sends, puts or gets", "#0072b2"),
    ("receives, and waits for it", "#56b4e9"),
    ("combines", "#cc79a7"),
    ("sets a flag", "#d55e00"),
    ("waits", FAINT),
];

/// Returns the class of a step.
fn class(step: &Step) -> usize {
    match step.what {
        "copy" | "store" | "load" => 0,
        "send" | "put" | "get" => 1,
        "receive" => 2,
        "combine" | "get and combine" => 3,
        "wait" | "attach" | "await_detached" | "credits" => 5,
        _ => 4,
    }
}

/// Draws a traced simulation.
pub(super) fn picture(conditions: &Conditions, one: &Simulated) -> String {
    let machine = &conditions.machine;
    let Program { query, candidate, root, mode, calls, .. } = &one.program;
    let Query { collective: what, pes, bytes, .. } = query;
    let mut svg = Svg::new(WIDTH);
    let sized = match what {
        Collective::Barrier => String::new(),
        _ => format!(" of {}", conditions.size(*bytes)),
    };
    let title = format!("{what}{sized} by {candidate} on {}, {pes} PEs", machine.name);
    svg.text((20.0, 30.0), 19, Anchor::Start, &title);
    let (mode, latency, how) = (mode.name(), time(one.call_ns), conditions.how());
    let subtitle = format!("{} · {mode} {latency} · calls: {calls} · {how}", machine.title);
    svg.text((20.0, 52.0), 13, Anchor::Start, &subtitle);
    // With few PEs, rows have more space.
    let row_height = if *pes <= 24 { 22.0 } else { 14.0 };
    let nodes = tree(*what, &one.trace, *pes, root.0);
    let below = draw_tree(&mut svg, *what, &nodes, 86.0, row_height);
    let below = draw_timeline(&mut svg, one, *pes, &nodes, (below + 44.0, row_height));
    svg.finish(below + 20.0)
}

/// Draws the tree from left to right, and returns its lower end.
fn draw_tree(svg: &mut Svg, what: Collective, nodes: &[Node], top: f64, row_height: f64) -> f64 {
    let heading = match what.regular() {
        Collective::Barrier => "How each PE learned that PE 0 had entered, with times in us",
        Collective::Broadcast | Collective::Scatter => {
            "The PE from which each PE first received data, with times in us"
        }
        Collective::Reduce | Collective::Gather => {
            "The PE to which each PE last sent data, with times in us"
        }
        Collective::AllGather
        | Collective::AllToAll
        | Collective::AllReduce
        | Collective::ReduceScatter
        | Collective::Scan
        | Collective::ExclusiveScan => {
            "The PE from which each PE first received data of PE 0, with times in us"
        }
        vector => unreachable!("{vector} is not regular"),
    };
    svg.text((20.0, top), 15, Anchor::Start, heading);
    let deepest = nodes.iter().map(|node| node.depth).max().unwrap_or(0);
    let column = ((RIGHT - LEFT - 40.0) / deepest.max(1) as f64).min(240.0);
    let radius = (row_height / 2.0 - 0.5).min(10.0);
    let at = |node: &Node| (LEFT + node.depth as f64 * column, top + 24.0 + node.row * row_height);
    let of = |rank: u32| nodes.iter().find(|node| node.rank == rank);
    for node in nodes {
        let Some(edge) = node.edge else { continue };
        let parent = if edge.to == node.rank { edge.from } else { edge.to };
        if let Some(parent) = of(parent) {
            svg.line(at(parent), at(node), "#888888", 1.0);
        }
    }
    for node in nodes {
        let (x, y) = at(node);
        let title = node.edge.map_or(format!("PE {}", node.rank), |edge| {
            let (from, to) = (micros(edge.from_ps), micros(edge.to_ps));
            format!("PE {} to PE {}, {} to {} us", edge.from, edge.to, plain(from), plain(to))
        });
        let ink = if node.edge.is_none() { "#f0e442" } else { "white" };
        svg.disc((x, y), radius, ink, &title);
        let digits = if radius < 8.0 { 8 } else { 10 };
        svg.text((x, y + 3.2), digits, Anchor::Middle, &node.rank.to_string());
        // In narrow columns, the time would cover the next PE.
        if let Some(edge) = node.edge.filter(|_| node.is_leaf && column > 60.0) {
            let time = format!("{:.2}", micros(edge.to_ps));
            svg.text((x + radius + 5.0, y + 3.2), digits, Anchor::Start, &time);
        }
    }
    let rows = nodes.iter().map(|node| node.row).fold(0.0, f64::max);
    top + 24.0 + rows * row_height + radius
}

/// Draws a row for each PE, and returns the lower end.
fn draw_timeline(
    svg: &mut Svg,
    one: &Simulated,
    pes: u32,
    nodes: &[Node],
    (top, row_height): (f64, f64),
) -> f64 {
    let heading = "The timeline of each PE; the lines are the messages of the tree";
    svg.text((20.0, top), 15, Anchor::Start, heading);
    draw_legend(svg, one, top + 24.0);
    let top = top + 62.0;
    let bottom = top + f64::from(pes) * row_height;
    let ended_ps = one.trace.steps().iter().map(|step| step.to_ps).max().unwrap_or(0).max(1);
    let x = |ps: u64| LEFT + ps as f64 / ended_ps as f64 * (RIGHT - LEFT);
    for tick in ticks(micros(ended_ps), 14.0) {
        let at = LEFT + tick / micros(ended_ps) * (RIGHT - LEFT);
        svg.line((at, top - 4.0), (at, bottom + 4.0), FAINT, 1.0);
        let label = format!("{} us", plain(tick));
        svg.text((at, top - 8.0), 11, Anchor::Middle, &label);
        svg.text((at, bottom + 16.0), 11, Anchor::Middle, &label);
    }
    let y = |pe: u32| top + f64::from(pe) * row_height;
    for pe in 0..pes {
        let name = format!("PE {pe}");
        svg.text((LEFT - 6.0, y(pe) + row_height / 2.0 + 4.0), 11, Anchor::End, &name);
    }
    let mut drawn = vec![f64::NEG_INFINITY; pes as usize];
    for step in one.trace.steps() {
        let (from, to) = (x(step.from_ps), x(step.to_ps));
        let drawn = &mut drawn[step.pe as usize];
        if to < *drawn + LEAST_WIDTH {
            continue;
        }
        *drawn = to;
        let at = (from, y(step.pe) + 1.5);
        svg.block(at, (to - from, row_height - 3.0), CLASSES[class(step)].1, &title(step));
    }
    for edge in nodes.iter().filter_map(|node| node.edge) {
        let middle = |pe: u32| y(pe) + row_height / 2.0;
        svg.line((x(edge.from_ps), middle(edge.from)), (x(edge.to_ps), middle(edge.to)), INK, 0.6);
    }
    bottom + 16.0
}

/// Draws a legend of the classes that occur.
fn draw_legend(svg: &mut Svg, one: &Simulated, y: f64) {
    let mut x = LEFT;
    for (index, (name, ink)) in CLASSES.into_iter().enumerate() {
        if one.trace.steps().iter().any(|step| class(step) == index) {
            svg.block((x, y - 10.0), (14.0, 12.0), ink, "");
            svg.text((x + 20.0, y), 12, Anchor::Start, name);
            x += 44.0 + 6.6 * name.len() as f64;
        }
    }
}

fn title(step: &Step) -> String {
    let peer = step.peer.map_or(String::new(), |peer| format!(", PE {peer}"));
    let bytes = if step.bytes > 0 { format!(", {} B", step.bytes) } else { String::new() };
    let (from, to) = (micros(step.from_ps), micros(step.to_ps));
    format!("PE {}: {}{peer}{bytes}, {} to {} us", step.pe, step.what, plain(from), plain(to))
}

fn micros(ps: u64) -> f64 {
    ps as f64 / 1e6
}
