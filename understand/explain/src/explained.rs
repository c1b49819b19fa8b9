//! The explanation of one program's recording, with the program's debug info.

use crate::explanation::{Explanation, ImageUsage};
use crate::recorded::Survey;
use lineup_debuginfo::DebugInfo;
use lineup_model::abi::Abi;
use lineup_model::program::{Location, Variable};
use lineup_model::region::RegionId;
use lineup_model::types::{TypeId, Types};
use lineup_model::usage::VariableRef;
use lineup_recording::{Header, Mode};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

/// A recording, explained, and the one of its images that is the program in question.
pub struct Explained {
    /// Everything of the recording but its calls.
    pub survey: Survey,
    /// The memory that the recorded calls touched.
    pub explanation: Explanation,
    debug: Option<DebugInfo>,
    program: usize,
}

impl Explained {
    /// `program` is the program's position among the survey's images, `debug` its debug info; `None` when it could not
    /// be read.
    pub fn new(
        survey: Survey,
        explanation: Explanation,
        program: usize,
        debug: Option<DebugInfo>,
    ) -> Explained {
        Explained { survey, explanation, debug, program }
    }

    /// Position of the program among the images.
    pub fn program(&self) -> usize {
        self.program
    }

    /// The program's debug info; `None` when it could not be read.
    pub fn debug(&self) -> Option<&DebugInfo> {
        self.debug.as_ref()
    }

    /// The types of the program.
    pub fn types(&self) -> &Types {
        static NONE: LazyLock<Types> = LazyLock::new(Types::new);
        self.debug.as_ref().map_or(&NONE, DebugInfo::types)
    }

    /// The program's machine and data model.
    pub fn abi(&self) -> Abi {
        self.survey.header.abi
    }

    /// True when a whole system was recorded.
    pub fn is_kernel(&self) -> bool {
        self.survey.header.mode == Mode::System
    }

    /// The emulator, as it names itself.
    pub fn emulator(&self) -> &str {
        &self.survey.header.emulator
    }

    /// Calls of a region that the program made in all.
    pub fn calls_made(&self, region: RegionId) -> Option<u64> {
        Some(self.survey.summary.as_ref()?.regions.get(usize::from(region.0))?.seen)
    }

    /// Uses of the program's own types and variables by regions.
    pub fn own_usage(&self) -> Option<&ImageUsage> {
        self.explanation.usage.iter().find(|usage| usage.index == self.program)
    }

    /// Objects of the program's types: type and address.
    pub fn objects(&self) -> &[(TypeId, u64)] {
        self.own_usage().map(|own| own.objects.as_slice()).unwrap_or_default()
    }

    /// The recording's header.
    pub fn header(&self) -> &Header {
        &self.survey.header
    }

    /// Types of which most objects that calls used lay on a stack.
    pub fn stack_types(&self) -> BTreeSet<TypeId> {
        let mut counts: BTreeMap<TypeId, (u64, u64)> = BTreeMap::new();
        for (ty, address) in self.objects() {
            let (all, on_stack) = counts.entry(*ty).or_default();
            *all += 1;
            let is_on = self.survey.stacks.iter().any(|stack| (stack.start..stack.end).contains(address));
            *on_stack += u64::from(is_on);
        }
        counts.into_iter().filter(|(_, (all, on_stack))| on_stack * 2 > *all).map(|(ty, _)| ty).collect()
    }

    /// The range where Linux puts the variables of which every CPU has a copy.
    pub fn per_cpu(&self) -> Option<Range<u64>> {
        let sections = self.debug.as_ref()?.sections();
        Some(sections.iter().find(|section| section.name == ".data..percpu")?.addresses.clone())
    }

    /// All variables of the program that have a fixed place.
    pub fn variables(&self) -> Vec<VariableRef> {
        let Some(debug) = &self.debug else { return Vec::new() };
        let place = |variable: &Variable| {
            let address = variable.places.iter().find_map(|place| match place.at {
                Location::Address(address) => Some(address),
                _ => None,
            })?;
            let size_bytes = debug.types().size_bytes(variable.ty?)?;
            Some(VariableRef { name: variable.name.as_deref()?.to_owned(), address, size_bytes })
        };
        debug.globals().iter().filter_map(place).collect()
    }
}
