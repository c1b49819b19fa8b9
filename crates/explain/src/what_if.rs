//! What a recorded stream would have missed, had the members of some types lain elsewhere: the caches run again over
//! the stream, with the objects laid anew.

mod comparison;

pub use comparison::{Comparison, RegionComparison, ReplayError, compare};
use lineup_cache::{CacheLevel, CacheSpec, Hierarchy, Missed};
use lineup_model::types::{TypeId, Types};
use lineup_recording::stream::Step;
use lineup_recording::{Counts, Latency, Misses};
use std::collections::BTreeMap;
use std::ops::Range;

/// An order of a type's members that is tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewOrder {
    /// The type, in the table of the recorded image.
    pub ty: TypeId,
    /// Where each member begins, in bytes, by its place in the present declaration.
    pub offsets_bytes: Vec<u64>,
}

/// Where recorded addresses go.
#[derive(Clone, Default, Debug)]
pub struct Relayout {
    /// Size and type of each object, by its address.
    objects: BTreeMap<u64, (u64, usize)>,
    /// Per type: where a run of bytes begins anew.
    moves: Vec<Vec<(Range<u64>, u64)>>,
}

impl Relayout {
    /// Lays the objects of some types anew, each from where it was. `objects` are types and addresses of objects.
    pub fn new(types: &Types, orders: &[NewOrder], objects: &[(TypeId, u64)]) -> Relayout {
        let mut relayout = Relayout::default();
        for (index, order) in orders.iter().enumerate() {
            let size_bytes = types.size_bytes(order.ty).unwrap_or(0);
            let own = objects.iter().filter(|(ty, _)| *ty == order.ty);
            relayout.objects.extend(own.map(|(_, start)| (*start, (size_bytes, index))));
            relayout.moves.push(moves(types, order, size_bytes));
        }
        relayout
    }

    /// Objects laid anew.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Where an address goes.
    pub fn place(&self, address: u64) -> u64 {
        let Some((start, (size_bytes, ty))) = self.objects.range(..=address).next_back() else {
            return address;
        };
        let offset = address - start;
        if offset >= *size_bytes {
            return address;
        }
        let moved = self.moves.get(*ty).and_then(|moves| moves.iter().find(|(old, _)| old.contains(&offset)));
        moved.map_or(address, |(old, new)| start + new + (offset - old.start))
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

/// The caches, run over a stream.
pub struct Replay {
    caches: Hierarchy,
    has_l2: bool,
    relayout: Relayout,
    inside: Vec<u16>,
    /// What calls of each region missed, over all of them: code, data.
    regions: Vec<[Misses; 2]>,
}

impl Replay {
    /// Empty caches, for so many regions.
    pub fn new(specs: &[CacheSpec], regions: usize, relayout: Relayout) -> Replay {
        Replay {
            caches: Hierarchy::new(specs),
            has_l2: specs.iter().any(|spec| spec.level() == CacheLevel::L2),
            relayout,
            inside: Vec::new(),
            regions: vec![Default::default(); regions],
        }
    }

    /// Takes one step.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Inside(regions) => self.inside.clone_from(regions),
            Step::Fetch { address, size_bytes } => {
                let missed = self.caches.fetch(*address, u64::from(*size_bytes));
                self.count(missed, |[code, _]| code);
            }
            Step::Data { address, size_bytes } => {
                let missed = self.caches.data(self.relayout.place(*address), u64::from(*size_bytes));
                self.count(missed, |[_, data]| data);
            }
        }
    }

    fn count(&mut self, missed: Missed, of: fn(&mut [Misses; 2]) -> &mut Misses) {
        if missed == Missed::Nothing {
            return;
        }
        for region in &self.inside {
            let Some(counts) = self.regions.get_mut(usize::from(*region)) else { continue };
            let misses = of(counts);
            misses.l1 += 1;
            misses.l2 += u64::from(missed == Missed::L2);
        }
    }

    /// What calls of each region missed, and how long that stalls them. Instructions are not counted.
    pub fn regions(&self, latency: Latency) -> Vec<Counts> {
        let stalled = |misses: &Misses| {
            let from_memory = if self.has_l2 { misses.l2 } else { misses.l1 };
            u64::from(latency.l2_cycles) * (misses.l1 - from_memory)
                + u64::from(latency.memory_cycles) * from_memory
        };
        let counts = |[code, data]: &[Misses; 2]| Counts {
            code_misses: *code,
            data_misses: *data,
            code_stall_cycles: stalled(code),
            data_stall_cycles: stalled(data),
            ..Counts::default()
        };
        self.regions.iter().map(counts).collect()
    }
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
        let order = NewOrder { ty, offsets_bytes: vec![16, 0, 24, 8] };
        Relayout::new(&types, &[order], &[(ty, 0x1000), (ty, 0x2000)])
    }

    #[test]
    fn members_go_where_the_order_puts_them_and_other_memory_stays() {
        let relayout = hot_first();
        assert_eq!(relayout.objects(), 2);
        assert_eq!(relayout.place(0x1008), 0x1000);
        assert_eq!(relayout.place(0x1048), 0x1008);
        assert_eq!(relayout.place(0x104c), 0x100c, "inside a member");
        assert_eq!(relayout.place(0x2000), 0x2010);
        assert_eq!(relayout.place(0x1050), 0x1050, "after the object");
        assert_eq!(relayout.place(0xfff), 0xfff);
    }

    #[test]
    fn hot_members_on_one_line_miss_once() {
        let specs: Vec<CacheSpec> = vec!["l1d=1K,2,64".parse().unwrap(), "l2=64K,8,64".parse().unwrap()];
        let latency = Latency { l2_cycles: 10, memory_cycles: 100 };
        let data = |address| Step::Data { address, size_bytes: 8 };
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
}
