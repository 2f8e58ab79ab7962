//! A time line as a picture.

use super::Timeline;
use crate::recorder::{Activity, Span};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 60.0;
const PITCH: f64 = 22.0;
const BAR: f64 = 18.0;

/// Spans that are closer than this are drawn as one.
const NEAR: f64 = 0.25;

fn colour(activity: Activity) -> &'static str {
    match activity {
        Activity::Compute => "#4477aa",
        Activity::Communicate => "#ee6677",
        Activity::Wait => "#ccbb44",
    }
}

fn text((x, y): (f64, f64), text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\">{escaped}</text>\n")
}

fn bar((x, y): (f64, f64), width: f64, activity: Activity) -> String {
    let (colour, name) = (colour(activity), activity.name());
    format!(
        "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{BAR}\" \
         fill=\"{colour}\"><title>{name}</title></rect>\n"
    )
}

/// Returns the spans. Neighbouring spans of one activity that the picture cannot tell apart are
/// merged.
fn joined(spans: &[Span], near_ns: f64) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last)
                if last.activity == span.activity
                    && ((span.from_ns - last.to_ns) as f64) < near_ns =>
            {
                last.to_ns = span.to_ns;
            }
            _ => joined.push(*span),
        }
    }
    joined
}

impl Timeline {
    /// Returns a picture in SVG with a bar for each PE.
    #[must_use]
    pub fn svg(&self, title: &str) -> String {
        let (end, inner) = (self.end_ns() as f64, WIDTH - LEFT - 10.0);
        let height = TOP + PITCH * self.pes.len() as f64 + 30.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n"
        );
        svg += &text((LEFT, 20.0), title);
        for (activity, x) in Activity::ALL.into_iter().zip([LEFT, LEFT + 120.0, LEFT + 240.0]) {
            svg += &bar((x, 28.0), BAR, activity);
            svg += &text((x + 24.0, 42.0), activity.name());
        }
        for (rank, spans) in self.pes.iter().enumerate() {
            let y = TOP + PITCH * rank as f64;
            svg += &text((4.0, y + 13.0), &format!("PE {rank}"));
            for span in joined(spans, NEAR * end / inner) {
                let x = |ns| LEFT + ns as f64 / end * inner;
                let (from, to) = (x(span.from_ns), x(span.to_ns));
                svg += &bar((from, y), to - from, span.activity);
            }
        }
        let bottom = height - 10.0;
        svg += &text((LEFT, bottom), "0");
        svg += &text((WIDTH - 90.0, bottom), &format!("{:.3} ms", end / 1e6));
        svg + "</svg>\n"
    }
}
