//! A time line for a terminal of 80 columns.

use super::Timeline;
use crate::recorder::Activity;

/// Columns of a bar.
const COLUMNS: u64 = 60;

fn mark(activity: Activity) -> char {
    match activity {
        Activity::Compute => '#',
        Activity::Communicate => '+',
        Activity::Wait => '.',
    }
}

impl Timeline {
    /// Returns a bar of characters for each PE. Each column shows the activity that takes most of
    /// its time.
    #[must_use]
    pub fn text(&self) -> String {
        let end = self.end_ns();
        let mut text = String::new();
        for (rank, spans) in self.pes.iter().enumerate() {
            let bar: String = (0..COLUMNS)
                .map(|column| {
                    let (from, to) = (end * column / COLUMNS, end * (column + 1) / COLUMNS);
                    let first = spans.partition_point(|span| span.to_ns <= from);
                    let mut times = [0; 3];
                    for span in spans[first..].iter().take_while(|span| span.from_ns < to) {
                        let shared = span.to_ns.min(to) - span.from_ns.max(from);
                        times[span.activity as usize] += shared;
                    }
                    let idle = (to - from).saturating_sub(times.iter().sum());
                    let most = Activity::ALL.into_iter().max_by_key(|it| times[*it as usize]);
                    most.filter(|it| times[*it as usize] > idle).map_or(' ', mark)
                })
                .collect();
            text += &format!("PE {rank:>4} |{bar}|\n");
        }
        let legend =
            Activity::ALL.map(|activity| format!("{} {}", mark(activity), activity.name()));
        text + &format!("{:>8} {}; {:.3} ms\n", "", legend.join(", "), end as f64 / 1e6)
    }
}
