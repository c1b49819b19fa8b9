//! A recorded stream through the caches again, with the objects of some types laid anew.

use lineup_cache::{CacheLevel, CacheSpec, Directory, Hierarchy, Missed};
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_recording::stream::Step;
use lineup_recording::{Counts, Latency, Misses};
use std::collections::BTreeMap;
use std::ops::Range;

/// An order of a type's members that is tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewOrder {
    /// The type, in the table of the recorded image.
    pub ty: TypeId,
    /// The offset of each member, in bytes, by its place in the present declaration.
    pub offsets_bytes: Vec<u64>,
    /// The alignment of objects in bytes, a power of two.
    pub align_bytes: u64,
}

/// Elements of an array in which objects of a type are looked for.
const MOST_ELEMENTS: u64 = 64;

/// The largest depth of types in each other.
const MOST_NESTED: u32 = 16;

/// The new places of recorded addresses.
#[derive(Clone, Default, Debug)]
pub struct Relayout {
    /// Each object, by its address.
    objects: BTreeMap<u64, Object>,
    /// Per type: where a run of bytes begins anew.
    moves: Vec<Vec<(Range<u64>, u64)>>,
}

/// An object that is laid anew.
#[derive(Clone, Copy, Debug)]
struct Object {
    size_bytes: u64,
    /// The position of its order among the given ones.
    order: usize,
    /// Its new address.
    start: u64,
}

impl Relayout {
    /// Lays the objects of some types anew, each from where it was, or from the multiple of the new alignment before
    /// it. `objects` are types and addresses of objects, which may hold others.
    pub fn new(types: &Types, orders: &[NewOrder], objects: &[(TypeId, u64)]) -> Relayout {
        let mut relayout = Relayout::default();
        for (index, order) in orders.iter().enumerate() {
            let size_bytes = types.size_bytes(order.ty).unwrap_or(0);
            let mut within: BTreeMap<TypeId, Vec<u64>> = BTreeMap::new();
            for (ty, address) in objects {
                let offsets = within.entry(*ty).or_insert_with(|| places_in(types, *ty, order.ty));
                for begin in offsets.iter().filter_map(|offset| address.checked_add(*offset)) {
                    let start = begin - begin % order.align_bytes.max(1);
                    relayout.objects.insert(begin, Object { size_bytes, order: index, start });
                }
            }
            relayout.moves.push(moves(types, order, size_bytes));
        }
        relayout
    }

    /// The number of an order's objects that are laid anew, and the number of these whose present address the new
    /// alignment does not allow.
    pub fn objects(&self, order: usize) -> (usize, usize) {
        let own = || self.objects.iter().filter(|(_, object)| object.order == order);
        (own().count(), own().filter(|(begin, object)| **begin != object.start).count())
    }

    /// The new place of an address.
    pub fn place(&self, address: u64) -> u64 {
        let Some((begin, object)) = self.objects.range(..=address).next_back() else {
            return address;
        };
        let offset = address - begin;
        if offset >= object.size_bytes {
            return address;
        }
        let moves = self.moves.get(object.order).map_or(&[][..], Vec::as_slice);
        let moved = moves.iter().find(|(old, _)| old.contains(&offset));
        moved.map_or(address, |(old, new)| {
            object.start.saturating_add(*new).saturating_add(offset - old.start)
        })
    }
}

/// The offsets of objects of type `wanted` in one of type `ty`, or of the type itself.
pub fn places_in(types: &Types, ty: TypeId, wanted: TypeId) -> Vec<u64> {
    let mut found = Vec::new();
    note_places(types, (ty, 0), wanted, MOST_NESTED, &mut found);
    found
}

fn note_places(types: &Types, (ty, at): (TypeId, u64), wanted: TypeId, depth: u32, found: &mut Vec<u64>) {
    let Some(ty) = types.strip(ty) else { return };
    if types.strip(wanted) == Some(ty) {
        found.push(at);
        return;
    }
    let Some(deeper) = depth.checked_sub(1) else { return };
    match types.get(ty).map(|ty| &ty.kind) {
        Some(TypeKind::Aggregate(aggregate)) => {
            for member in &aggregate.members {
                let Some(at) = member.offset_bytes().and_then(|offset| at.checked_add(offset)) else {
                    continue;
                };
                note_places(types, (member.ty, at), wanted, deeper, found);
            }
        }
        Some(TypeKind::Array { element, counts }) => {
            let size_bytes = types.size_bytes(*element).unwrap_or(0);
            let count = counts.iter().try_fold(1_u64, |all, count| all.checked_mul((*count)?)).unwrap_or(0);
            let before = found.len();
            for index in 0..count.min(MOST_ELEMENTS) {
                let Some(at) = size_bytes.checked_mul(index).and_then(|offset| at.checked_add(offset)) else {
                    return;
                };
                note_places(types, (*element, at), wanted, deeper, found);
                if found.len() == before {
                    return;
                }
            }
        }
        _ => {}
    }
}

/// Every member's bytes, and the padding after it, with where they go.
fn moves(types: &Types, order: &NewOrder, size_bytes: u64) -> Vec<(Range<u64>, u64)> {
    let Some((_, aggregate)) = types.aggregate(order.ty) else { return Vec::new() };
    let mut starts: Vec<(u64, u64)> = aggregate
        .members
        .iter()
        .zip(&order.offsets_bytes)
        .filter_map(|(member, new)| Some((member.offset_bytes()?, *new)))
        .collect();
    starts.sort_unstable();
    starts.dedup_by_key(|(old, _)| *old);
    let ends = starts.iter().skip(1).map(|(old, _)| *old).chain([size_bytes]).collect::<Vec<_>>();
    starts.iter().zip(ends).map(|((old, new), end)| (*old..end.max(*old), *new)).collect()
}

/// The caches of all CPUs, run over a stream.
pub(super) struct Replay {
    specs: Vec<CacheSpec>,
    has_l2: bool,
    relayout: Relayout,
    /// By CPU; those of which no step was seen yet are empty.
    cpus: Vec<Option<Cpu>>,
    /// The CPU whose steps follow.
    cpu: u16,
    /// The holders of each line, in the stream of several CPUs.
    directory: Option<Directory>,
    /// The misses of all calls of each region.
    regions: Vec<RegionMisses>,
}

/// One CPU.
struct Cpu {
    caches: Hierarchy,
    /// Regions whose calls are under way.
    inside: Vec<u16>,
}

/// The misses of a region's calls.
#[derive(Clone, Copy, Default)]
struct RegionMisses {
    code: Misses,
    data: Misses,
    /// Accesses that needed a line, or the right to write to it, from another CPU.
    shared: u64,
}

impl Replay {
    /// Empty caches, for this number of regions.
    pub(super) fn new(specs: &[CacheSpec], regions: usize, relayout: Relayout) -> Replay {
        Replay {
            specs: specs.to_vec(),
            has_l2: specs.iter().any(|spec| spec.level() == CacheLevel::L2),
            relayout,
            cpus: Vec::new(),
            cpu: 0,
            directory: None,
            regions: vec![RegionMisses::default(); regions],
        }
    }

    /// Takes one step.
    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Cpu(cpu) => {
                self.cpu = *cpu;
                // The stream of several CPUs begins with such a step, so no access comes before.
                self.directory.get_or_insert_with(Directory::empty);
            }
            Step::Inside(regions) => self.running().inside.clone_from(regions),
            Step::Fetch { address, size_bytes } => {
                let missed = self.running().caches.fetch(*address, u64::from(*size_bytes));
                self.count(|region| note(&mut region.code, missed), missed != Missed::Nothing);
            }
            Step::Data { address, size_bytes, takes_line } => {
                let address = self.relayout.place(*address);
                let missed = self.running().caches.data(address, u64::from(*size_bytes));
                let directory = self.directory.as_ref();
                match directory.is_some_and(|lines| lines.access(self.cpu, address, *takes_line)) {
                    true => self.count(|region| region.shared += 1, true),
                    false => self.count(|region| note(&mut region.data, missed), missed != Missed::Nothing),
                }
            }
        }
    }

    /// The CPU whose steps follow.
    fn running(&mut self) -> &mut Cpu {
        let index = usize::from(self.cpu);
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, || None);
        }
        let specs = &self.specs;
        self.cpus[index].get_or_insert_with(|| Cpu { caches: Hierarchy::new(specs), inside: Vec::new() })
    }

    fn count(&mut self, note: impl Fn(&mut RegionMisses), happened: bool) {
        let running = self.cpus.get(usize::from(self.cpu)).and_then(Option::as_ref).filter(|_| happened);
        for region in running.map_or(&[][..], |cpu| &cpu.inside) {
            self.regions.get_mut(usize::from(*region)).into_iter().for_each(&note);
        }
    }

    /// CPUs in the stream.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.iter().flatten().count()
    }

    /// The misses of each region's calls, and their stalls. Instructions are not counted.
    pub(super) fn regions(&self, latency: Latency) -> Vec<Counts> {
        let stalled = |misses: &Misses| {
            let from_memory = if self.has_l2 { misses.l2 } else { misses.l1 };
            u64::from(latency.l2_cycles) * (misses.l1 - from_memory)
                + u64::from(latency.memory_cycles) * from_memory
        };
        let counts = |missed: &RegionMisses| Counts {
            code_misses: missed.code,
            data_misses: missed.data,
            shared_misses: missed.shared,
            code_stall_cycles: stalled(&missed.code),
            data_stall_cycles: stalled(&missed.data) + u64::from(latency.memory_cycles) * missed.shared,
            ..Counts::default()
        };
        self.regions.iter().map(counts).collect()
    }
}

fn note(misses: &mut Misses, missed: Missed) {
    misses.l1 += 1;
    misses.l2 += u64::from(missed == Missed::L2);
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::types::{
        Aggregate, AggregateKind, Language, Member, MemberRole, ScalarKind, Type, TypeKind,
    };

    /// `struct { long cold; long hot_one; long gap[7]; long hot_two; }`, 80 bytes.
    fn types() -> (Types, TypeId) {
        let mut types = Types::new();
        let ty = |kind, size| Type {
            name: Some("x".into()),
            size_bytes: Some(size),
            declared_align: None,
            declared_at: None,
            unit: None,
            language: Language::C,
            kind,
        };
        let long = types.push(ty(TypeKind::Scalar(ScalarKind::Integer { signed: true }), 8));
        let gap = types.push(ty(TypeKind::Array { element: long, counts: vec![Some(7)] }, 56));
        let member = |ty, offset: u64| Member {
            name: Some("m".into()),
            ty,
            offset_bits: Some(offset * 8),
            bit_size: None,
            declared_align: None,
            role: MemberRole::Field,
            declared_at: None,
        };
        let members = vec![member(long, 0), member(long, 8), member(gap, 16), member(long, 72)];
        let aggregate = Aggregate {
            kind: AggregateKind::Struct,
            members,
            static_members: Vec::new(),
            is_declaration: false,
        };
        let whole = types.push(ty(TypeKind::Aggregate(aggregate), 80));
        (types, whole)
    }

    fn hot_first() -> Relayout {
        let (types, ty) = types();
        let order = NewOrder { ty, offsets_bytes: vec![16, 0, 24, 8], align_bytes: 8 };
        Relayout::new(&types, &[order], &[(ty, 0x1000), (ty, 0x2000)])
    }

    #[test]
    fn members_go_where_the_order_puts_them_and_other_memory_stays() {
        let relayout = hot_first();
        assert_eq!(relayout.objects(0), (2, 0));
        assert_eq!(relayout.place(0x1008), 0x1000);
        assert_eq!(relayout.place(0x1048), 0x1008);
        assert_eq!(relayout.place(0x104c), 0x100c, "inside a member");
        assert_eq!(relayout.place(0x2000), 0x2010);
        assert_eq!(relayout.place(0x1050), 0x1050, "after the object");
        assert_eq!(relayout.place(0xfff), 0xfff);
    }

    #[test]
    fn objects_in_others_move_too_and_an_alignment_is_kept() {
        let (mut types, inner) = types();
        let member = |offset: u64| Member {
            name: Some("m".into()),
            ty: inner,
            offset_bits: Some(offset * 8),
            bit_size: None,
            declared_align: None,
            role: MemberRole::Field,
            declared_at: None,
        };
        let aggregate = Aggregate {
            kind: AggregateKind::Struct,
            members: vec![member(16), member(96)],
            static_members: Vec::new(),
            is_declaration: false,
        };
        let outer = types.push(Type {
            name: Some("outer".into()),
            size_bytes: Some(176),
            declared_align: None,
            declared_at: None,
            unit: None,
            language: Language::C,
            kind: TypeKind::Aggregate(aggregate),
        });
        let order = |align_bytes| NewOrder { ty: inner, offsets_bytes: vec![16, 0, 24, 8], align_bytes };
        let relayout = Relayout::new(&types, &[order(8)], &[(outer, 0x1000)]);
        assert_eq!(relayout.objects(0), (2, 0));
        assert_eq!((relayout.place(0x1018), relayout.place(0x1068)), (0x1010, 0x1060));
        assert_eq!(relayout.place(0x1008), 0x1008, "what lies around them stays");
        let relayout = Relayout::new(&types, &[order(64)], &[(outer, 0x1000)]);
        assert_eq!(relayout.objects(0), (2, 2), "neither begins a line");
        assert_eq!((relayout.place(0x1018), relayout.place(0x1068)), (0x1000, 0x1040));
    }

    #[test]
    fn hot_members_on_one_line_miss_once() {
        let specs: Vec<CacheSpec> = vec!["l1d=1K,2,64".parse().unwrap(), "l2=64K,8,64".parse().unwrap()];
        let latency = Latency { l2_cycles: 10, memory_cycles: 100 };
        let data = |address| Step::Data { address, size_bytes: 8, takes_line: false };
        let stream =
            [data(0x9000), Step::Inside(vec![0, 1]), data(0x1008), data(0x1048), Step::Inside(vec![])];
        let run = |relayout| {
            let mut replay = Replay::new(&specs, 2, relayout);
            stream.iter().for_each(|step| replay.step(step));
            replay.regions(latency)
        };
        let (before, after) = (run(Relayout::default()), run(hot_first()));
        assert_eq!((before[0].data_misses.l1, before[0].data_stall_cycles), (2, 200));
        assert_eq!((after[0].data_misses.l1, after[0].data_stall_cycles), (1, 100));
        assert_eq!(before[0], before[1]);
    }

    #[test]
    fn members_that_two_cpus_write_cost_nothing_once_they_lie_apart() {
        let specs: Vec<CacheSpec> = vec!["l1d=1K,2,64".parse().unwrap()];
        let latency = Latency { l2_cycles: 10, memory_cycles: 100 };
        // The first CPU writes the member at 8, the second the one at 16, as members of one object.
        let store = |cpu, address| {
            [Step::Cpu(cpu), Step::Inside(vec![cpu]), Step::Data { address, size_bytes: 8, takes_line: true }]
        };
        let stream: Vec<Step> =
            (0..10).flat_map(|_| [store(0, 0x1008), store(1, 0x1010)]).flatten().collect();
        let run = |relayout| {
            let mut replay = Replay::new(&specs, 2, relayout);
            stream.iter().for_each(|step| replay.step(step));
            assert_eq!(replay.cpus(), 2);
            replay.regions(latency)
        };
        let (types, ty) = types();
        let order = NewOrder { ty, offsets_bytes: vec![8, 0, 64, 16], align_bytes: 64 };
        let (before, after) =
            (run(Relayout::default()), run(Relayout::new(&types, &[order], &[(ty, 0x1000)])));
        assert_eq!([before[0].shared_misses, before[1].shared_misses], [9, 10]);
        assert_eq!([before[0].data_misses.l1, before[0].data_stall_cycles], [1, 1000]);
        assert_eq!([after[0].shared_misses, after[1].shared_misses], [0, 0]);
        assert_eq!([after[0].data_misses.l1, after[1].data_misses.l1], [1, 1]);
    }
}
