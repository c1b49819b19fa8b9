//! A type that is shown.

use lineup_model::layout::Layout;
use lineup_model::types::TypeId;

/// A type chosen to be shown.
pub(crate) struct Shown<'s> {
    /// The name it was chosen by: its own, or that of a typedef.
    pub(crate) name: &'s str,
    /// The struct, class or union itself.
    pub(crate) id: TypeId,
    pub(crate) layout: Layout,
}
