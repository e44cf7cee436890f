//! Aligns columns.
//!
//! This module does not know what the columns mean.

use conductor_web::visible;

use crate::out::Shown;

/// Rows under a header.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    header: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Begins a table.
    pub(crate) fn new(header: [&'static str; N]) -> Self {
        Self {
            header,
            rows: Vec::new(),
        }
    }

    /// Adds a row; what others wrote into it is made visible and stays on its line.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| visible::line(&cell)));
    }

    /// Tells whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Shows it, or says `empty` where there is nothing.
    pub(crate) fn render(&self, empty: &str) -> Shown {
        self.render_within(None, empty)
    }

    /// Shows it in so many columns, if that can be done by cutting the last cells; what was cut ends in `…`.
    pub(crate) fn render_within(&self, room: Option<usize>, empty: &str) -> Shown {
        if self.rows.is_empty() {
            return Shown::Nothing(empty.to_owned());
        }
        Shown::Data(self.text(room))
    }

    /// Its header and rows.
    pub(crate) fn text(&self, room: Option<usize>) -> String {
        let widths: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.header[column].len()]).max().unwrap_or(0)
        });
        let before: usize = widths
            .iter()
            .take(N.saturating_sub(1))
            .map(|width| width + 2)
            .sum();
        let last = room
            .map(|room| room.saturating_sub(before))
            .filter(|left| *left >= LEAST);
        let mut text = line(&self.header.map(str::to_owned), widths);
        for row in &self.rows {
            let mut row = row.clone();
            if let (Some(left), Some(cell)) = (last, row.last_mut()) {
                *cell = cut(cell, left);
            }
            text.push_str(&line(&row, widths));
        }
        text
    }
}

/// The narrowest that a last column is made; what needs less is left to the terminal.
const LEAST: usize = 8;

fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

fn line<const N: usize>(cells: &[String; N], widths: [usize; N]) -> String {
    let mut text = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        text.push_str(cell);
        text.extend(std::iter::repeat_n(
            ' ',
            width.saturating_sub(cell.chars().count()) + 2,
        ));
    }
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_breaks_out_of_its_line() {
        let mut table = Table::new(["ID", "TITLE"]);
        assert_eq!(table.render("none"), Shown::Nothing("none".into()));
        table.row(["r-1".into(), "ends\nhere\u{1b}[2J".into()]);
        table.row(["r-long".into(), "é".into()]);
        assert_eq!(
            table.text(None),
            "ID      TITLE\nr-1     ends here\u{27e8}U+001B\u{27e9}[2J\nr-long  é\n"
        );
    }

    #[test]
    fn only_the_last_column_gives_way_and_only_as_far_as_it_can() {
        let mut table = Table::new(["ID", "TITLE"]);
        table.row(["r-1".into(), "a title that is long".into()]);
        assert_eq!(table.render_within(Some(80), ""), table.render(""));
        assert_eq!(table.text(Some(14)), "ID   TITLE\nr-1  a title…\n");
        assert_eq!(table.text(Some(6)), table.text(None));
    }
}
