//! What the sources mean to a compiler, as far as it limits the order of members. The reader of the sources fills it
//! in; here it is data.

use crate::constraint::Binding;

/// What is known of the types of a program.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Meaning {
    /// Types of which something is asked.
    pub types: Vec<TypeMeaning>,
}

/// What is asked of one type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeMeaning {
    /// Tag and typedef names.
    pub names: Vec<String>,
    /// The file that declares it, relative to the source folder; empty when any file will do.
    pub path: String,
    /// What holds its members.
    pub holds: Vec<Hold>,
}

/// One use of the type, and what it does to an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// How it is reported. Its names are the members that are held.
    pub binding: Binding,
    /// What the members may not do.
    pub effect: Effect,
}

/// What a use forbids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Any change.
    Forbid,
    /// Another member in the first place.
    First,
    /// Another offset of the named members.
    Keep,
    /// A move across the named member, which stays where it is between them.
    Boundary,
    /// Another member in the last place.
    Last,
    /// Another order among the named members.
    Relative,
    /// Another offset of the named members, unless the edit names them in the initialiser at that place.
    Named,
}

impl Meaning {
    /// Both.
    pub fn and(mut self, other: Meaning) -> Meaning {
        self.types.extend(other.types);
        self
    }

    /// The holds on a type that has one of these names and is declared in this file.
    pub(crate) fn holds<'m>(&'m self, names: &[String], path: &str) -> impl Iterator<Item = &'m Hold> {
        let is_it = move |ty: &&TypeMeaning| {
            let is_named = ty.names.iter().any(|name| names.iter().any(|known| known == name));
            is_named && (ty.path.is_empty() || ty.path == path || ty.path.ends_with(&format!("/{path}")))
        };
        self.types.iter().filter(is_it).flat_map(|ty| &ty.holds)
    }
}
