//! Variables that assembly, aliases and lookups find by their names.

use crate::facts::{Act, Facts, PointerPlace, Source, Value, Where};
use crate::tree::Name;
use std::collections::BTreeSet;

impl Facts {
    /// The names that assembly, aliases and lookups find.
    pub(crate) fn found_by_name(&self) -> BTreeSet<String> {
        let found = |(value, act, _): &(Value, Act, Where)| match (&value.source, act) {
            (Source::Place(PointerPlace::Variable(name)), Act::Found(_)) => {
                name.strip_prefix("c:@").filter(|name| !name.contains(' ')).map(str::to_owned)
            }
            _ => None,
        };
        self.acts.iter().filter_map(found).collect()
    }

    /// A lookup by a name that the program works out may find every variable that the linker shows.
    pub(crate) fn settle_lookups(&mut self) {
        let Some((by, at)) = self.open_lookups.first().cloned() else { return };
        let is_variable = |name: &&Name| name.strip_prefix("c:@").is_some_and(|name| !name.contains('@'));
        for name in self.defined.iter().filter(is_variable) {
            for place in [format!("{name}"), format!("{name} (defined)"), format!("{name} (behind)")] {
                let value = Value::place(PointerPlace::Variable(place.into()));
                self.acts.insert((value, Act::Found(by.clone()), at.clone()));
            }
        }
    }
}
