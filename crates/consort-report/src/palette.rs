//! The marks that distinguish series: colour, marker and dashes, never colour alone.
//!
//! The colours are those of Okabe and Ito (2008), for all kinds of colour vision. The style sheet
//! defines them for light and dark mode.

/// The number of colours, as in the style sheet.
pub(crate) const COLOURS: usize = 7;
/// The dashes of lines, in the order of the series.
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// The marks of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) colour: usize,
    marker: usize,
    dash: usize,
}

impl Marks {
    /// Returns the marks of series number `series`: no two of the first 28 are alike.
    pub(crate) fn of(series: usize) -> Self {
        let round = series / COLOURS;
        Self {
            colour: series % COLOURS,
            marker: (series + round) % COLOURS,
            dash: round % DASHES.len(),
        }
    }

    /// Returns the dashes of its line, as an attribute.
    pub(crate) fn dashes(self) -> String {
        match DASHES[self.dash] {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        }
    }

    /// Returns the path of its marker around a point.
    pub(crate) fn marker(self, (x, y): (f64, f64), size: f64) -> String {
        let corners = |corners: &[(f64, f64)]| {
            let corner =
                |(dx, dy): &(f64, f64)| format!("{:.1} {:.1}", x + size * dx, y + size * dy);
            format!("M{}Z", corners.iter().map(corner).collect::<Vec<_>>().join("L"))
        };
        match self.marker {
            0 => format!(
                "M{:.1} {y:.1}a{size} {size} 0 1 0 {w} 0a{size} {size} 0 1 0 -{w} 0Z",
                x - size,
                w = 2.0 * size
            ),
            1 => corners(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => corners(&[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
            3 => corners(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            4 => corners(&[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)]),
            5 => corners(&[
                (-0.35, -1.2),
                (0.35, -1.2),
                (0.35, -0.35),
                (1.2, -0.35),
                (1.2, 0.35),
                (0.35, 0.35),
                (0.35, 1.2),
                (-0.35, 1.2),
                (-0.35, 0.35),
                (-1.2, 0.35),
                (-1.2, -0.35),
                (-0.35, -0.35),
            ]),
            _ => corners(&[
                (0.0, -0.5),
                (0.8, -1.2),
                (1.2, -0.8),
                (0.5, 0.0),
                (1.2, 0.8),
                (0.8, 1.2),
                (0.0, 0.5),
                (-0.8, 1.2),
                (-1.2, 0.8),
                (-0.5, 0.0),
                (-1.2, -0.8),
                (-0.8, -1.2),
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_series_look_alike() {
        let all: Vec<Marks> = (0..28).map(Marks::of).collect();
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one), "{index}");
        }
        let markers: Vec<String> =
            (0..COLOURS).map(|one| Marks::of(one).marker((5.0, 5.0), 4.0)).collect();
        for (index, one) in markers.iter().enumerate() {
            assert!(one.starts_with('M') && one.ends_with('Z'), "{one}");
            assert!(!markers[..index].contains(one), "{index}");
        }
    }
}
