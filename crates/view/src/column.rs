//! Columns, and which of them fit.

/// A column beside the first, which has the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// Its width in characters.
    pub width: u16,
}

/// Names get at least so many characters; columns give way before that.
const LEAST_NAME: u16 = 16;

/// How the columns of a list lie on a terminal of some width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Characters for names.
    pub name: u16,
    /// How many of the other columns are shown, from the first.
    pub shown: usize,
}

impl Fit {
    /// As many columns as leave room for names; each has a space before it.
    pub fn of(columns: &[Column], width: u16) -> Fit {
        let needed = |shown: usize| columns[..shown].iter().map(|column| column.width + 1).sum::<u16>();
        let mut shown = columns.len();
        while shown > 0 && needed(shown).saturating_add(LEAST_NAME) > width {
            shown -= 1;
        }
        Fit { name: width.saturating_sub(needed(shown)), shown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column { title: "a", width: 6 }, Column { title: "b", width: 8 }, Column { title: "c", width: 10 }];

    #[test]
    fn the_last_columns_give_way_first_and_names_get_the_rest() {
        assert_eq!(Fit::of(&COLUMNS, 100), Fit { name: 73, shown: 3 });
        assert_eq!(Fit::of(&COLUMNS, 40), Fit { name: 24, shown: 2 });
        assert_eq!(Fit::of(&COLUMNS, 23), Fit { name: 16, shown: 1 });
        assert_eq!(Fit::of(&COLUMNS, 22), Fit { name: 22, shown: 0 });
        assert_eq!(Fit::of(&COLUMNS, 0), Fit { name: 0, shown: 0 });
    }
}
