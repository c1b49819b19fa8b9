//! What functions return.

use crate::catalog::{Catalog, Ty};
use crate::image::Image;
use foldhash::HashMap;

/// By image and link address of the entry, and by name.
pub(crate) type Results = (HashMap<(usize, u64), Ty>, HashMap<String, Ty>);

/// What every described function returns a pointer to.
pub(crate) fn results(catalog: &mut Catalog<'_>, images: &[Image<'_>]) -> Results {
    let mut by_entry = HashMap::default();
    let mut by_name = HashMap::default();
    for (index, image) in images.iter().enumerate() {
        for function in &image.functions {
            let Some(target) = function.returns.and_then(|id| catalog.pointee(index, id)) else { continue };
            if let Some(entry) = function.entry() {
                by_entry.insert((index, entry), target);
            }
            let name = function.linkage_name.as_ref().unwrap_or(&function.name);
            by_name.entry(name.clone()).or_insert(target);
        }
    }
    (by_entry, by_name)
}
