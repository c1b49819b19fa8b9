//! The accesses of each instruction of a function, derived without running it.
//!
//! Forward over the control-flow graph: debug info gives the pointers in registers at each place; moves, sums, loads
//! from typed memory, stack slots and call results pass them on.

use crate::code::abstract_value::{AbstractValue, Number, Origin, SymbolicId};
use crate::code::access_sites::{AccessTarget, LocalSpot, Site};
use crate::code::callees::{Callees, Parameter};
use crate::code::fixpoint::{MAX_VISITS, fixpoint};
use crate::code::flow_graph::Graph;
use crate::code::instruction::{
    Address, CallTarget, Convention, Expression, Flow, Instruction, InstructionSet, Register, decode,
};
use crate::code::refinement::refine;
use crate::code::transfer::{State, Surroundings, fresh};
use crate::code::variable_locations::{Located, Names, RegisterFact, Slot};
use crate::error::ExplainError;
use crate::images::globals::Globals;
use crate::images::image::{Image, meant};
use crate::images::percpu_variables::PerCpu;
use crate::images::thread_blocks::ThreadBlocks;
use crate::memory::containers::{self, Holders};
use crate::types::catalog::{Catalog, Ty};
use crate::types::congruence::Congruence;
use foldhash::HashMap;
use lineup_debuginfo::Region;
use lineup_model::program::{FrameBase, Function, SymbolKind};

/// The function that traceable functions call first, on x86. The call is a placeholder, and changes nothing.
const TRACED_ENTRY: &str = "__fentry__";

/// The images and the facts learned of all of them.
pub(crate) struct World<'w, 'a> {
    /// The images.
    pub images: &'w [Image<'a>],
    /// Types of all images.
    pub catalog: &'w mut Catalog<'a>,
    /// Variables, per image.
    pub globals: &'w [Globals],
    /// The program's thread-local variables.
    pub(crate) blocks: &'w ThreadBlocks,
    /// Texts.
    pub names: &'w mut Names,
    /// The variables of which every CPU has a copy.
    pub(crate) percpu: &'w PerCpu,
    /// The parameters and results of functions.
    pub callees: &'w Callees,
    /// The types that have certain members.
    pub(crate) holders: &'w mut Holders,
}

/// The interpretation of a pointer into the middle of an object that debug info identifies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum View {
    /// A pointer into the object.
    OfWhole,
    /// A pointer to the member there: where one path knows the object and another, which follows the links of a list,
    /// knows the member alone, both know that.
    OfMember,
}

/// The sites of a function's instructions, by link address.
///
/// # Errors
/// When the disassembler fails.
pub(crate) fn analyse(
    world: &mut World<'_, '_>,
    image: usize,
    function: &Function,
) -> Result<HashMap<u64, Vec<Site>>, ExplainError> {
    let Some(described) = world.images.get(image) else { return Ok(HashMap::default()) };
    let Some(graph) = Graph::of(described, function)? else { return Ok(HashMap::default()) };
    let pointer_bytes = u64::from(graph.convention.pointer_bytes);
    let located = Located::of(world.catalog, world.names, image, function, pointer_bytes);
    let facts = facts_by_instruction(&graph, &located);
    let mut pass = Pass {
        world,
        image,
        function,
        graph: &graph,
        located: &located,
        facts,
        view: View::OfWhole,
        popped: HashMap::default(),
    };
    let mut sites = pass.look();
    if located.registers.iter().any(|fact| fact.offset.exact().is_some_and(|offset| offset > 0))
        && sites.values().flatten().any(|site| site.place == AccessTarget::Unknown)
    {
        pass.view = View::OfMember;
        add_unknown(&mut sites, pass.look());
    }
    let block_of = |pc: u64| {
        let index = graph.instructions.partition_point(|instruction| instruction.address < pc);
        graph.blocks.partition_point(|block| block.range.end <= index)
    };
    containers::resolve((world.catalog, world.holders), image, (&located.pointees, &block_of), &mut sites);
    Ok(sites)
}

/// Takes over the places found for operands that had none.
fn add_unknown(sites: &mut HashMap<u64, Vec<Site>>, others: HashMap<u64, Vec<Site>>) {
    for (pc, others) in others {
        for (site, other) in sites.get_mut(&pc).into_iter().flatten().zip(others) {
            if site.place == AccessTarget::Unknown {
                site.place = other.place;
            }
        }
    }
}

/// The facts that hold before each instruction, by index.
fn facts_by_instruction(graph: &Graph, located: &Located) -> Vec<Vec<u32>> {
    let mut by_instruction = vec![Vec::new(); graph.instructions.len()];
    for (number, fact) in located.registers.iter().enumerate() {
        let from = graph.instructions.partition_point(|instruction| instruction.address < fact.range.start);
        let covered = graph.instructions.iter().enumerate().skip(from);
        for (index, _) in covered.take_while(|(_, instruction)| instruction.address < fact.range.end) {
            if let Some(facts) = by_instruction.get_mut(index) {
                facts.push(number as u32);
            }
        }
    }
    by_instruction
}

/// A pointer into an object as a pointer to the member there.
fn of_member(catalog: &mut Catalog<'_>, fact: &RegisterFact) -> Option<RegisterFact> {
    let offset = fact.offset.exact().and_then(|offset| u64::try_from(offset).ok()).filter(|at| *at > 0)?;
    let target = containers::member_at(catalog, fact.target, offset)?;
    Some(RegisterFact { target, offset: Congruence::exactly(0), ..fact.clone() })
}

struct Pass<'p, 'w, 'a> {
    world: &'p mut World<'w, 'a>,
    image: usize,
    function: &'p Function,
    graph: &'p Graph,
    located: &'p Located,
    facts: Vec<Vec<u32>>,
    view: View,
    /// Bytes that functions called from here take off the stack, by entry.
    popped: HashMap<u64, i64>,
}

impl Pass<'_, '_, '_> {
    fn look(&mut self) -> HashMap<u64, Vec<Site>> {
        let entries = self.settle();
        self.sites(&entries)
    }

    /// The state at the start of each block. If the analysis does not converge, only the facts from debug info at each
    /// place are kept.
    fn settle(&mut self) -> Vec<State> {
        let convention = self.graph.convention;
        let unknown = vec![State::nothing(&convention); self.graph.blocks.len()];
        let first = self.function.entry().and_then(|entry| self.graph.entry_block(entry));
        let mut entries = unknown.clone();
        if let Some(entry) = first.and_then(|first| entries.get_mut(first)) {
            *entry = self.at_entry();
        }
        let graph = self.graph;
        let settled = fixpoint(&graph.blocks, first, entries, MAX_VISITS, |block, state| {
            for index in graph.blocks.get(block).map_or(0..0, |block| block.range.clone()) {
                self.locate(index, state);
                if let Some(instruction) = graph.instructions.get(index) {
                    self.step(state, instruction);
                }
            }
        });
        settled.unwrap_or(unknown)
    }

    fn step(&mut self, state: &mut State, instruction: &Instruction) {
        let convention = self.graph.convention;
        state.step(instruction, &convention, self);
    }

    /// Only the stack pointer is known for certain: the compiler may have changed what a local function is passed, so
    /// parameters are taken from debug info's locations, and from their uses in the function.
    fn at_entry(&self) -> State {
        let convention = self.graph.convention;
        let mut state = State::nothing(&convention);
        let abi = self.world.images.get(self.image).and_then(Image::abi);
        let arguments = abi.map_or(&[][..], |abi| abi.machine.description().argument_registers);
        for register in arguments {
            // Instructions, whose addresses the other symbols are, do not lie here.
            let symbol = SymbolicId(u64::MAX - u64::from(*register));
            state.set(Register(*register), AbstractValue::Untyped(symbol));
        }
        let below = Congruence::exactly(-convention.frame_above_stack_bytes);
        state.set(convention.stack_pointer, AbstractValue::Stack(below));
        state
    }

    /// Applies the facts from debug info that hold before an instruction.
    fn locate(&mut self, index: usize, state: &mut State) {
        let Some(facts) = self.facts.get(index) else { return };
        for number in facts {
            if let Some(fact) = self.located.registers.get(*number as usize) {
                let catalog = &mut *self.world.catalog;
                let of_member = if self.view == View::OfMember { of_member(catalog, fact) } else { None };
                let refined =
                    refine(catalog, state.register(fact.register), of_member.as_ref().unwrap_or(fact));
                state.learn(fact.register, refined);
            }
        }
    }

    /// Walks once more, noting the place that every operand accesses.
    fn sites(&mut self, entries: &[State]) -> HashMap<u64, Vec<Site>> {
        let mut sites = HashMap::default();
        for (block, entry) in self.graph.blocks.iter().zip(entries) {
            let mut state = entry.clone();
            for index in block.range.clone() {
                self.locate(index, &mut state);
                let Some(instruction) = self.graph.instructions.get(index) else { continue };
                if !instruction.touches.is_empty() {
                    let found = instruction
                        .touches
                        .iter()
                        .map(|touch| Site {
                            kind: touch.kind,
                            size_bytes: touch.size_bytes,
                            place: self.place(instruction.address, touch.at, &state),
                        })
                        .collect();
                    sites.insert(instruction.address, found);
                }
                self.step(&mut state, instruction);
            }
        }
        sites
    }

    fn place(&mut self, pc: u64, at: Address, state: &State) -> AccessTarget {
        match state.sum(at) {
            AbstractValue::Pointer(pointer) => AccessTarget::Object(pointer),
            AbstractValue::Stack(distance) => AccessTarget::Stack(self.local_at(pc, distance, state)),
            AbstractValue::Thread(offset) => AccessTarget::Thread(offset),
            AbstractValue::Number(number)
                if at.base.is_none() && at.index.is_none() || self.is_global(number) =>
            {
                AccessTarget::Fixed
            }
            _ => AccessTarget::Unknown,
        }
    }

    fn is_global(&self, number: Number) -> bool {
        let link = number.constant as u64;
        self.world.globals.get(self.image_of(link)).is_some_and(|globals| globals.at(link).is_some())
    }

    fn image_of(&self, link: u64) -> usize {
        meant(self.world.images, self.image, link)
    }

    /// The image of a function that is called.
    fn called(&self, entry: u64) -> Option<&Image<'_>> {
        self.world.images.get(self.image_of(entry))
    }

    /// The local variable at a distance from the canonical frame address.
    fn local_at(&self, pc: u64, distance: Congruence, state: &State) -> Option<LocalSpot> {
        let distance = distance.residue;
        let covering =
            self.located.locals.iter().filter(|local| local.range.contains(&pc)).filter_map(|local| {
                let start = self.slot_distance(local.slot, state)?;
                let above = u64::try_from(distance.checked_sub(start)?).ok()?;
                let offset = local.bytes.start.checked_add(above)?;
                (offset < local.bytes.end).then_some((local, offset))
            });
        let (local, offset) = covering.min_by_key(|(local, _)| local.range.end - local.range.start)?;
        Some(LocalSpot { variable: local.variable, ty: local.ty, offset })
    }

    fn slot_distance(&self, slot: Slot, state: &State) -> Option<i64> {
        let above = |register: Register, offset: i64| match state.register(register) {
            AbstractValue::Stack(distance) => distance.exact()?.checked_add(offset),
            _ => None,
        };
        match (slot, self.function.frame_base) {
            (Slot::Above(register, offset), _) => above(register, offset),
            (Slot::FrameBase(offset), Some(FrameBase::CanonicalFrameAddress)) => Some(offset),
            (Slot::FrameBase(offset), Some(FrameBase::Register(register))) => {
                above(Register(register), offset)
            }
            (Slot::FrameBase(_), None) => None,
        }
    }

    /// The value of a pointer stored in a type when it is loaded.
    fn pointer_in(
        &mut self,
        ty: Ty,
        distance: Congruence,
        size_bytes: u32,
        origin: Option<Origin>,
    ) -> Option<AbstractValue> {
        let pointer_bytes = self.graph.convention.pointer_bytes;
        if size_bytes != pointer_bytes {
            return None;
        }
        let spot = self.world.catalog.spot(ty, distance, u64::from(pointer_bytes))?;
        let target = self.world.catalog.pointee_at(ty, spot.offset, u64::from(pointer_bytes))?;
        let step = self.world.catalog.step_at(ty, spot.offset, u64::from(pointer_bytes), target);
        let to_first = fresh(target, origin.unwrap_or(Origin::Member(ty, spot.offset)));
        Some(to_first.plus(Number::any(SymbolicId(0)).times(step as i64)))
    }
}

impl Surroundings for Pass<'_, '_, '_> {
    fn loaded(&mut self, pc: u64, at: AbstractValue, size_bytes: u32, state: &State) -> AbstractValue {
        let pointer_bytes = self.graph.convention.pointer_bytes;
        let number = AbstractValue::Number(Number::any(SymbolicId(pc)));
        let untyped = AbstractValue::Untyped(SymbolicId(pc));
        let unknown = if size_bytes == pointer_bytes { untyped } else { number };
        match at {
            AbstractValue::Pointer(pointer) => {
                let origin = (!self.world.catalog.is_aggregate(pointer.target)).then_some(pointer.origin);
                self.pointer_in(pointer.target, pointer.offset, size_bytes, origin).unwrap_or(number)
            }
            AbstractValue::Stack(distance) => self
                .local_at(pc, distance, state)
                .and_then(|local| {
                    let origin = (local.offset == 0).then_some(Origin::Variable(local.variable));
                    self.pointer_in(local.ty, Congruence::exactly(local.offset as i64), size_bytes, origin)
                })
                .unwrap_or(unknown),
            AbstractValue::Number(address) => self.loaded_fixed(address, size_bytes).unwrap_or(unknown),
            AbstractValue::Thread(offset)
                if self.world.percpu.is_of(self.image_of(offset as u64), offset) =>
            {
                self.loaded_of_cpu(offset as u64, size_bytes).unwrap_or(unknown)
            }
            AbstractValue::Thread(0) if self.graph.convention.base_holds_itself => at,
            AbstractValue::Thread(offset) => self.loaded_thread_local(offset, size_bytes).unwrap_or(unknown),
            _ => unknown,
        }
    }

    fn return_address_in(&mut self, target: CallTarget) -> Option<Register> {
        let CallTarget::Direct(entry) = target else { return None };
        let name = self.called(entry)?.callee_name(entry)?;
        let registers = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
        let register = name.strip_prefix("__x86.get_pc_thunk.")?;
        let number = registers.iter().position(|known| *known == register)?;
        Some(Register(number as u16))
    }

    fn kernel_task(&mut self) -> AbstractValue {
        let task = self.world.catalog.defined(self.image, "task_struct");
        task.map_or(AbstractValue::Nothing, |task| fresh(task, Origin::Unknown))
    }

    fn keeps_registers(&mut self, target: CallTarget) -> bool {
        let CallTarget::Direct(entry) = target else { return false };
        self.called(entry).and_then(|image| image.callee_name(entry)) == Some(TRACED_ENTRY)
    }

    fn passed(&mut self, target: CallTarget) -> &[Parameter] {
        match target {
            CallTarget::Direct(entry) => self.world.callees.parameters(self.image_of(entry), entry),
            _ => &[],
        }
    }

    fn popped_bytes(&mut self, target: CallTarget) -> i64 {
        let Some(image) = self.world.images.get(self.image) else { return 0 };
        let may_pop = image.abi().is_some_and(|abi| abi.machine.description().callee_may_pop);
        let CallTarget::Direct(entry) = target else { return 0 };
        if !may_pop {
            return 0;
        }
        let images = self.world.images;
        *self.popped.entry(entry).or_insert_with(|| popped_bytes(images, image, entry).unwrap_or(0))
    }

    fn returned(&mut self, target: CallTarget) -> AbstractValue {
        let CallTarget::Direct(entry) = target else { return AbstractValue::Nothing };
        let Some(image) = self.called(entry) else { return AbstractValue::Nothing };
        let callees = self.world.callees;
        let by_name = |name: &str| callees.result_by_name(name.split('@').next().unwrap_or(name));
        let own = callees.result(self.image_of(entry), entry);
        let result = own.or_else(|| image.callee_name(entry).and_then(by_name));
        result.map_or(AbstractValue::Nothing, |target| fresh(target, Origin::Unknown))
    }
}

impl Pass<'_, '_, '_> {
    /// The value of a load from a thread-local variable.
    fn loaded_thread_local(&mut self, from_base: i64, size_bytes: u32) -> Option<AbstractValue> {
        let spot = self.world.blocks.spot(self.image, from_base)?;
        let global = self.world.globals.get(spot.image)?.thread_local_at(spot.offset).copied()?;
        let name = self.world.images.get(spot.image)?.globals().get(global.variable as usize)?.name.clone();
        let is_plain = !self.world.catalog.is_aggregate(global.ty);
        let origin = is_plain.then(|| Origin::Variable(self.world.names.number(name.unwrap_or_default())));
        let offset = Congruence::exactly((spot.offset - global.start) as i64);
        self.pointer_in(global.ty, offset, size_bytes, origin)
    }

    /// The value of a load from a CPU's copy of a variable.
    fn loaded_of_cpu(&mut self, link: u64, size_bytes: u32) -> Option<AbstractValue> {
        if let Some(base) = self.loaded_base(link, size_bytes) {
            return Some(base);
        }
        self.loaded_global(link, Congruence::exactly(0), size_bytes)
    }

    /// The distance of a CPU's copies from the section, which is that CPU's base.
    fn loaded_base(&self, link: u64, size_bytes: u32) -> Option<AbstractValue> {
        let is_whole = size_bytes == self.graph.convention.pointer_bytes;
        (is_whole && self.world.percpu.holds_base(self.image_of(link), link))
            .then_some(AbstractValue::Thread(0))
    }

    /// The value of a load from a global: its pointer, or a constant in the code.
    fn loaded_fixed(&mut self, address: Number, size_bytes: u32) -> Option<AbstractValue> {
        let start = address.constant as u64;
        if let Some(base) = self.loaded_base(start, size_bytes) {
            return Some(base);
        }
        if self.is_global(address) {
            let steps = Congruence::new(0, address.values().modulus);
            return self.loaded_global(start, steps, size_bytes);
        }
        address.exact().filter(|_| size_bytes == 4)?;
        let image = self.world.images.get(self.image)?;
        if !matches!(image.section_at(start)?.region, Region::Code | Region::ReadOnlyData) {
            return None;
        }
        let bytes: [u8; 4] = image.bytes(&(start..start + 4))?.try_into().ok()?;
        Some(AbstractValue::Number(Number::exactly(i64::from(u32::from_le_bytes(bytes)))))
    }

    /// The pointer that a variable holds which covers a link address, or one that many steps further.
    fn loaded_global(&mut self, link: u64, steps: Congruence, size_bytes: u32) -> Option<AbstractValue> {
        let image = self.image_of(link);
        let global = self.world.globals.get(image)?.at(link).copied()?;
        let distance = Congruence::exactly((link - global.start) as i64).plus(steps);
        let image = self.world.images.get(image)?;
        let name = image.globals().get(global.variable as usize)?.name.clone().unwrap_or_default();
        let is_plain = !self.world.catalog.is_aggregate(global.ty);
        let origin = is_plain.then(|| Origin::Variable(self.world.names.number(name)));
        self.pointer_in(global.ty, distance, size_bytes, origin)
    }
}

/// The bytes that the function at an entry takes off the stack when it returns. The entry may be a stub that leads
/// there.
fn popped_bytes(images: &[Image<'_>], image: &Image<'_>, entry: u64) -> Option<i64> {
    let named = |image: &Image<'_>, name: &str| {
        let mut symbols = image.symbols().iter();
        symbols
            .find(|one| one.kind == SymbolKind::Function && one.size_bytes > 0 && one.name == name)
            .map(|one| one.address..one.address.saturating_add(one.size_bytes))
    };
    let stub = image.debug?.plt_name(entry).map(|name| name.split('@').next().unwrap_or(name));
    let (image, range) = match stub {
        Some(name) => images.iter().find_map(|image| Some((image, named(image, name)?)))?,
        None => (image, named(image, image.callee_name(entry)?)?),
    };
    let code = decode(InstructionSet::I386, range.start, image.bytes(&range)?).ok()?;
    let convention = Convention::of(InstructionSet::I386);
    let last = code.iter().find(|instruction| instruction.flow == Flow::Return)?;
    last.sets.iter().find_map(|(to, value)| match value {
        Expression::Sum(above) if *to == convention.stack_pointer => {
            Some(above.displacement - i64::from(convention.pointer_bytes))
        }
        _ => None,
    })
}
