//! The names by which the source calls a type.

use lineup_model::types::{SourceLocation, TypeId, Types};

/// The source's names of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spelling {
    /// The name that finds the declaration.
    pub(crate) name: String,
    /// All names without namespaces: tag and typedefs.
    pub(crate) names: Vec<String>,
    pub(crate) declared_at: Option<SourceLocation>,
}

/// The names of an aggregate: its own, and those of typedefs that stand for it.
pub(crate) fn spelling(types: &Types, id: TypeId) -> Option<Spelling> {
    let ty = types.get(id)?;
    let own = ty.name.as_deref().map(str::to_string);
    let typedefs = types.typedefs_of(id).iter().filter_map(|&typedef| types.get(typedef));
    let typedefs: Vec<String> =
        typedefs.filter_map(|typedef| Some(typedef.name.as_deref()?.to_string())).collect();
    let name = own.clone().or_else(|| typedefs.first().cloned())?;
    let mut names: Vec<String> =
        own.into_iter().chain(typedefs).map(|name| bare(&name).to_string()).collect();
    names.sort();
    names.dedup();
    Some(Spelling { name, names, declared_at: ty.declared_at.clone() })
}

/// A name without namespaces and template arguments.
pub(crate) fn bare(name: &str) -> &str {
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}
