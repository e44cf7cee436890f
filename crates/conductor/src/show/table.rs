//! Aligns columns.
//!
//! This module does not know what the columns mean.

use conductor_web::visible;

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

    /// Renders it, or `empty` where there is nothing.
    pub(crate) fn render(&self, empty: &str) -> String {
        if self.rows.is_empty() {
            return format!("{empty}\n");
        }
        let widths: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.header[column].len()]).max().unwrap_or(0)
        });
        let mut text = line(&self.header.map(str::to_owned), widths);
        for row in &self.rows {
            text.push_str(&line(row, widths));
        }
        text
    }
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
        assert_eq!(table.render("none"), "none\n");
        table.row(["r-1".into(), "ends\nhere\u{1b}[2J".into()]);
        table.row(["r-long".into(), "é".into()]);
        assert_eq!(
            table.render("none"),
            "ID      TITLE\nr-1     ends here\u{27e8}U+001B\u{27e9}[2J\nr-long  é\n"
        );
    }
}
