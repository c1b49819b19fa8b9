//! The parameters and results of functions: types of the registers before and after a call.

use crate::code::abstract_value::Origin;
use crate::code::instruction::Register;
use crate::code::variable_locations::Names;
use crate::images::image::Image;
use crate::types::catalog::{Catalog, Ty};
use foldhash::HashMap;
use lineup_model::program::{Function, Location};

/// A register that holds a pointer at a function's first instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parameter {
    /// The register.
    pub register: Register,
    /// The type it points to.
    pub target: Ty,
    /// The parameter.
    pub origin: Origin,
}

/// The parameters and results of the described functions that were executed.
#[derive(Default, Debug)]
pub(crate) struct Callees {
    /// The targets of the pointers they return, by image and link address of the entry.
    results: HashMap<(usize, u64), Ty>,
    /// The same by name.
    results_by_name: HashMap<String, Ty>,
    parameters: HashMap<(usize, u64), Vec<Parameter>>,
}

impl Callees {
    /// Reads the functions of all images.
    pub(crate) fn new(catalog: &mut Catalog<'_>, names: &mut Names, images: &[Image<'_>]) -> Self {
        let mut all = Callees::default();
        for (index, image) in images.iter().enumerate() {
            for function in &image.functions {
                all.add_result(catalog, index, function);
                let Some(entry) = function.entry() else { continue };
                let parameters = parameters(catalog, names, index, function, entry);
                if !parameters.is_empty() {
                    all.parameters.insert((index, entry), parameters);
                }
            }
        }
        all
    }

    fn add_result(&mut self, catalog: &mut Catalog<'_>, image: usize, function: &Function) {
        let Some(target) = function.returns.and_then(|id| catalog.pointee(image, id)) else { return };
        if let Some(entry) = function.entry() {
            self.results.insert((image, entry), target);
        }
        let name = function.linkage_name.as_ref().unwrap_or(&function.name);
        self.results_by_name.entry(name.clone()).or_insert(target);
    }

    /// The target of the pointer that the function at an entry returns.
    pub(crate) fn result(&self, image: usize, entry: u64) -> Option<Ty> {
        self.results.get(&(image, entry)).copied()
    }

    /// The target of the pointer that a function of this name returns.
    pub(crate) fn result_by_name(&self, name: &str) -> Option<Ty> {
        self.results_by_name.get(name).copied()
    }

    /// The pointers that the function at an entry takes in registers.
    pub(crate) fn parameters(&self, image: usize, entry: u64) -> &[Parameter] {
        self.parameters.get(&(image, entry)).map_or(&[], Vec::as_slice)
    }
}

/// Parameters of which debug info says that they are in a register when the function begins.
fn parameters(
    catalog: &mut Catalog<'_>,
    names: &mut Names,
    image: usize,
    function: &Function,
    entry: u64,
) -> Vec<Parameter> {
    let mut found = Vec::new();
    for parameter in &function.parameters {
        let mut places = parameter.places.iter();
        let at_entry = places.find(|place| place.range.as_ref().is_none_or(|range| range.contains(&entry)));
        let Some(Location::Register(register)) = at_entry.map(|place| &place.at) else { continue };
        let Some(target) = parameter.ty.and_then(|id| catalog.pointee(image, id)) else { continue };
        let name = parameter.name.as_deref().unwrap_or("(unnamed)");
        let origin = Origin::Variable(names.number(format!("{}: {name}", function.name)));
        found.push(Parameter { register: Register(*register), target, origin });
    }
    found
}
