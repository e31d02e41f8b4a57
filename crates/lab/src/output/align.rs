//! Tables in plain text: columns aligned to the left or to the right.

/// On which side the cells of a column line up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    side: Side,
    head: Vec<String>,
    cells: Vec<String>,
    width: usize,
}

impl Column {
    /// `cells` under the lines of `head`.
    pub fn new(side: Side, head: Vec<String>, cells: Vec<String>) -> Column {
        let width = width(head.iter().chain(&cells));
        Column { side, head, cells, width }
    }

    /// The width of the widest line, in characters.
    pub fn width(&self) -> usize {
        self.width
    }

    /// `text` as wide as the column.
    fn padded(&self, text: &str) -> String {
        match self.side {
            Side::Left => format!("{text:<width$}", width = self.width),
            Side::Right => format!("{text:>width$}", width = self.width),
        }
    }

    /// The head's line `line` of `lines`: shorter heads stand at the bottom.
    fn head_line(&self, line: usize, lines: usize) -> &str {
        let above = lines - self.head.len();
        line.checked_sub(above).map_or("", |line| &self.head[line])
    }
}

/// The width of the widest of `texts`, in characters.
pub fn width<'a>(texts: impl IntoIterator<Item = &'a String>) -> usize {
    texts.into_iter().map(|text| text.chars().count()).max().unwrap_or(0)
}

/// Numbers with blanks after them, so that their points stand below each other where they line up
/// to the right.
pub fn at_points<'a>(numbers: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let decimals =
        |number: &str| number.split_once('.').map_or(0, |(_, decimals)| decimals.len() + 1);
    let most = numbers.clone().map(decimals).max().unwrap_or(0);
    let pad = |number: &str| format!("{number}{:1$}", "", most - decimals(number));
    numbers.map(pad).collect()
}

/// The lines of a table: the heads, then the cells, with `gap` blanks between columns and none at
/// the end of a line. Cells that a column lacks are empty.
pub fn lines(columns: &[&Column], gap: usize) -> Vec<String> {
    let longest = |of: fn(&Column) -> usize| columns.iter().map(|&it| of(it)).max().unwrap_or(0);
    let (heads, rows) = (longest(|column| column.head.len()), longest(|it| it.cells.len()));
    let gap = " ".repeat(gap);
    let line = |cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns.iter().map(|&column| cell(column)).collect();
        cells.join(&gap).trim_end().to_string()
    };
    let heads = (0..heads).map(|at| line(&|column| column.padded(column.head_line(at, heads))));
    let cell = |column: &Column, row: usize| {
        column.padded(column.cells.get(row).map_or("", String::as_str))
    };
    heads.chain((0..rows).map(|row| line(&|column| cell(column, row)))).collect()
}

/// The text of a table, given line by line with its heads: the first `left` columns to the left,
/// the others to the right.
pub fn rows<R: AsRef<[String]>>(rows: &[R], left: usize) -> String {
    let count = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let column = |at: usize| {
        let cells = rows.iter().map(|row| row.as_ref().get(at).cloned().unwrap_or_default());
        let side = if at < left { Side::Left } else { Side::Right };
        Column::new(side, Vec::new(), cells.collect())
    };
    let columns: Vec<Column> = (0..count).map(column).collect();
    text(&lines(&columns.iter().collect::<Vec<_>>(), GAP))
}

/// `lines`, each with its end.
pub fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Blanks between the columns of most tables.
pub const GAP: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| text.to_string()).collect()
    }

    #[test]
    fn heads_stand_on_the_cells_and_widths_count_characters() {
        let names = Column::new(Side::Left, owned(&["policy"]), owned(&["rr †", "µ"]));
        let means = Column::new(Side::Right, owned(&["time", "mean, µs"]), owned(&["1.5", ""]));
        assert_eq!((names.width(), means.width()), (6, 8));
        assert_eq!(
            lines(&[&names, &means], 3),
            ["             time", "policy   mean, µs", "rr †          1.5", "µ"]
        );
    }

    #[test]
    fn points_stand_below_each_other() {
        assert_eq!(
            at_points(["1.5", "12", "-", "0.25"].into_iter()),
            ["1.5 ", "12   ", "-   ", "0.25"]
        );
        assert_eq!(at_points(["1", "12"].into_iter()), ["1", "12"]);
    }

    #[test]
    fn rows_may_be_of_different_lengths() {
        let all = [owned(&["a", "1"]), owned(&["long", "22", "x"]), owned(&[])];
        assert_eq!(rows(&all, 1), "a      1\nlong  22  x\n\n");
        assert_eq!(rows(&all, 2), "a     1\nlong  22  x\n\n");
        assert_eq!(rows::<Vec<String>>(&[], 1), "");
    }
}
