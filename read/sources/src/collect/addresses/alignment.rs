//! Uses that ask for more alignment than a type gives by itself.

use crate::collect::Collector;
use crate::facts::{Act, Origin, PointerPlace, Saying, Value};
use crate::library_functions;
use crate::tree::{Decl, Kind, Name, NodeId, Operands, Operator, TypeId, TypeKind};

/// From this size on the processor's own instructions ask for alignment.
const VECTOR_BYTES: u64 = 16;

/// The most bytes that the processor changes in one step.
const MOST_ATOMIC_BYTES: u64 = 16;

impl Collector<'_> {
    /// `*(__m128 *)x->v`, `((unsigned __int128 *)p)[0]`.
    pub(in crate::collect) fn note_wide_access(&mut self, values: &[Value], at: NodeId) {
        let ty = self.tree.ty(self.tree.node(at).ty);
        let bytes = ty.size_bytes.filter(|&bytes| ty.kind == TypeKind::Scalar && bytes >= VECTOR_BYTES);
        if let Some(bytes) = bytes {
            self.aligned(values, (bytes, "one vector"), at);
        }
    }

    /// `pointer->member` where the pointer's target asks for more alignment than a vector's elements.
    pub(in crate::collect) fn note_aligned_target(&mut self, values: &[Value], at: NodeId) {
        if let Some(&bytes) = self.tree.asked_alignments.get(&at) {
            self.act(
                &Self::objects(values),
                &Act::AlignedMember(bytes, "the type that it is used as".into()),
                at,
            );
        }
    }

    /// `&x->count` in a packed type: code behind a pointer expects a number at a multiple of its size, as it is now.
    pub(in crate::collect) fn note_packed_member(&mut self, member: NodeId, value: &Value) {
        let tree = self.tree;
        let ty = tree.ty(tree.node(member).ty);
        let is_number = matches!(ty.kind, TypeKind::Scalar | TypeKind::Pointer(_));
        let bytes = ty.size_bytes.filter(|bytes| is_number && bytes.is_power_of_two()).unwrap_or(1);
        let is_aligned = |offset_bits: u64| (offset_bits / 8).is_multiple_of(bytes);
        let found = tree.field_named(member);
        if bytes > 1 && found.is_some_and(|field| field.align_bytes == 1 && is_aligned(field.offset_bits)) {
            let act = Act::AlignedMember(bytes, "a pointer to its type".into());
            self.act(std::slice::from_ref(value), &act, member);
        }
    }

    /// An atomic operation on an operand wider than the member; `__builtin_assume_aligned`.
    pub(in crate::collect) fn note_aligned_call(
        &mut self,
        function: &str,
        arguments: &[NodeId],
        values: &[Vec<Value>],
        id: NodeId,
    ) {
        let (Some(&pointer), Some(given)) = (arguments.first(), values.first()) else { return };
        let tree = self.tree;
        if library_functions::assumes_alignment(function) {
            let asked = arguments.get(1).and_then(|&bytes| tree.node(tree.bare(bytes)).value);
            let asked = asked
                .and_then(|bytes| u64::try_from(bytes).ok())
                .unwrap_or(library_functions::MOST_ALIGNMENT);
            self.aligned(given, (asked, function), id);
        } else if library_functions::is_atomic(function) {
            self.note_atomic(function, pointer, given, id);
        } else if library_functions::takes_pages(function) {
            let act = Act::AlignedMember(library_functions::MOST_ALIGNMENT, format!("{function}()").into());
            self.act(&Self::objects(given), &act, id);
        } else if library_functions::counts_lowest_bits(function) {
            self.note_lowest_bits(pointer, given, id);
        }
    }

    /// `__builtin_ctzl((uintptr_t)&x->v)`: the result shows how far the address is aligned.
    fn note_lowest_bits(&mut self, number: NodeId, values: &[Value], at: NodeId) {
        let bytes = library_functions::MOST_ALIGNMENT;
        let by: Name = "a count of its address's lowest bits".into();
        let is_address = self.tree.pointee(self.tree.node(self.tree.uncast(number)).ty).is_some();
        let act = match is_address {
            true => Act::Aligned(bytes, by),
            false => Act::AlignedMember(bytes, by),
        };
        self.act(&Self::objects(values), &act, at);
    }

    /// `address & -address`.
    fn is_own_negative(&self, left: NodeId, right: NodeId) -> bool {
        let tree = self.tree;
        let negative = tree.node(tree.uncast(right));
        let (Kind::Other, [inner]) = (negative.kind, &negative.children[..]) else { return false };
        let (one, other) = (tree.node(tree.uncast(left)).decl, tree.node(tree.uncast(*inner)).decl);
        one.is_some() && one == other
    }

    /// The operation is atomic only at a multiple of its operand's size.
    pub(in crate::collect) fn note_atomic(
        &mut self,
        by: &str,
        pointer: NodeId,
        values: &[Value],
        id: NodeId,
    ) {
        let tree = self.tree;
        let operand = tree.pointee(tree.node(tree.bare(pointer)).ty).map(|to| tree.ty(to));
        // Larger operands are guarded by a lock.
        let fits = |bytes: &u64| bytes.is_power_of_two() && *bytes <= MOST_ATOMIC_BYTES;
        if let Some(bytes) = operand.and_then(|to| to.size_bytes).filter(fits) {
            self.aligned(values, (bytes, by), id);
        }
    }

    /// `std::atomic_ref<pair>(x->pair)`.
    pub(in crate::collect) fn note_atomic_reference(
        &mut self,
        decl: &Decl,
        arguments: &[NodeId],
        id: NodeId,
    ) {
        let tree = self.tree;
        let Some(&referred) = arguments.first().filter(|_| decl.name.starts_with("atomic_ref")) else {
            return;
        };
        let inner = tree.bare(referred);
        let bytes = tree.ty(tree.node(inner).ty).size_bytes.filter(|bytes| bytes.is_power_of_two());
        if let (Some((record, member)), Some(bytes)) = (self.member_named(inner), bytes) {
            let value = Value::origin(Origin::MemberOf(record, member));
            self.aligned(&[value], (bytes.min(MOST_ATOMIC_BYTES), "std::atomic_ref"), id);
        }
    }

    /// `open(path, O_RDWR | O_DIRECT)`.
    pub(in crate::collect) fn note_direct_file(&mut self, decl: &Decl, arguments: &[NodeId]) {
        let tree = self.tree;
        let is_direct = |&flags: &NodeId| {
            let value = tree.node(tree.bare(flags)).value;
            value.is_some_and(|value| value & library_functions::O_DIRECT != 0)
        };
        let flags = library_functions::flags_of_file(&decl.name).and_then(|at| arguments.get(at));
        self.facts.has_direct_files |= flags.is_some_and(is_direct);
    }

    /// `(uintptr_t)&x->v % 16`, `(uintptr_t)x->v & 15`, `(uintptr_t)p & (size - 1)`.
    pub(in crate::collect) fn note_alignment_asked(
        &mut self,
        id: NodeId,
        left: NodeId,
        right: NodeId,
        values: &[Value],
    ) {
        let tree = self.tree;
        if tree.node(id).operator == Some(Operator::Equal) {
            return self.note_addresses_compared(left, right, id);
        }
        if tree.node(id).operator == Some(Operator::And) && self.is_own_negative(left, right) {
            return self.note_lowest_bits(left, values, id);
        }
        let number = tree.node(tree.bare(right)).value.and_then(|number| u64::try_from(number).ok());
        let number = number.or_else(|| self.only_number(right));
        let bytes = match (tree.node(id).operator, number) {
            (Some(Operator::And), Some(mask)) => mask.checked_add(1),
            // A mark in the lowest bits, which are free where the address is aligned.
            (Some(Operator::Or), Some(mark @ 1..)) => mark.checked_add(1).map(u64::next_power_of_two),
            (Some(Operator::Remainder), number @ Some(_)) => number,
            (Some(Operator::And), None) if self.is_one_less(right) => Some(library_functions::MOST_ALIGNMENT),
            (Some(Operator::Remainder), None) => Some(library_functions::MOST_ALIGNMENT),
            _ => None,
        };
        // `(unsigned)address` is `address & 0xffffffff`: half of an address, and no test.
        let is_asked = |bytes: &u64| bytes.is_power_of_two() && *bytes <= library_functions::MOST_ALIGNMENT;
        let Some(bytes) = bytes.filter(is_asked) else { return };
        let mut values = values.to_vec();
        values.extend(self.addresses_in_union(&values));
        if tree.node(id).operator != Some(Operator::Or) {
            values.extend(self.addresses_within(left));
        }
        let is_address = tree.pointee(tree.node(tree.uncast(left)).ty).is_some();
        let by: Name = "a test of its address".into();
        match number {
            Some(_) if is_address => self.act(&Self::objects(&values), &Act::Aligned(bytes, by), id),
            // A number that is no address leads nowhere.
            Some(_) if bytes >= VECTOR_BYTES => {
                self.act(&Self::objects(&values), &Act::AlignedMember(bytes, by), id);
            }
            None if is_address => self.act(&Self::objects(&values), &Act::AlignedMember(bytes, by), id),
            _ => {}
        }
    }

    /// The addresses of `(char *)&x->v - start`, `(unsigned)(uintptr_t)x->v` and `(uintptr_t)&x->v | (uintptr_t)&y->v`,
    /// which are no addresses themselves.
    fn addresses_within(&mut self, number: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let inner = self.initial(number);
        let node = tree.node(inner);
        let is_pointer = |&side: &NodeId| tree.pointee(tree.node(side).ty).is_some();
        match (node.kind, &node.children[..]) {
            (Kind::Binary, sides) if sides.iter().all(is_pointer) => {
                sides.iter().flat_map(|&side| self.value(tree.uncast(side))).collect()
            }
            (Kind::Binary, sides) if matches!(node.operator, Some(Operator::Or | Operator::Xor)) => {
                let parts = sides.iter().map(|&side| {
                    let mut values = self.addresses_within(side);
                    values.extend(self.value(side));
                    values
                });
                parts.flatten().collect()
            }
            _ if tree.pointee(node.ty).is_some() => self.value(inner),
            _ => Vec::new(),
        }
    }

    /// The only value that an operand has.
    fn only_number(&self, id: NodeId) -> Option<u64> {
        self.known_number(id).filter(|known| known.is_only).map(|known| known.most)
    }

    /// `address / 16 * 16 == address`, `one >> 6 == other >> 6`: the result depends on the lowest bits of both.
    fn note_addresses_compared(&mut self, left: NodeId, right: NodeId, id: NodeId) {
        let tree = self.tree;
        let inside: Vec<NodeId> = tree.below(left).into_iter().chain(tree.below(right)).collect();
        let cut = |&id: &NodeId| {
            let first = tree.node(id).decl.and_then(|decl| self.initials.get(&decl));
            self.lowest_bits_cut(id).or_else(|| self.lowest_bits_cut(tree.uncast(*first?)))
        };
        let Some(bytes) = inside.iter().filter_map(cut).max() else { return };
        let is_address = |&&inner: &&NodeId| {
            let node = tree.node(inner);
            let is_made = node.kind == Kind::Cast && tree.pointee(tree.node(tree.uncast(inner)).ty).is_some();
            self.holds_pointer(node.ty) && (is_made || node.kind == Kind::DeclRef)
        };
        let addresses: Vec<NodeId> = inside.iter().filter(is_address).copied().collect();
        for address in addresses {
            let values = self.value(address);
            let act = Act::AlignedMember(bytes, "a comparison of its address".into());
            self.act(&Self::objects(&values), &act, id);
        }
    }

    /// `uintptr_t up = (address + 15) & ~15`.
    pub(in crate::collect) fn note_initial(&mut self, variable: NodeId, value: NodeId) {
        if let Some(decl) =
            self.tree.node(variable).decl.filter(|_| self.is_plain(self.tree.node(variable).ty))
        {
            self.initials.insert(decl, value);
        }
    }

    /// The first value of a variable that stands there, or what stands there itself; without casts.
    pub(in crate::collect) fn initial(&self, id: NodeId) -> NodeId {
        let inner = self.tree.uncast(id);
        let first = self.tree.node(inner).decl.and_then(|decl| self.initials.get(&decl));
        first.map_or(inner, |&first| self.tree.uncast(first))
    }

    /// The unit to which a number is rounded, or the one in which it is counted: `a & ~15`, `a / 16`, `a >> 4`,
    /// `a << 60`.
    fn lowest_bits_cut(&self, id: NodeId) -> Option<u64> {
        const ADDRESS_BITS: u64 = 64;
        let tree = self.tree;
        let node = tree.node(id);
        let [_, right] = node.children[..] else { return None };
        let number = |id: NodeId| {
            let value = tree.node(tree.bare(id)).value.and_then(|value| u64::try_from(value).ok());
            value.or_else(|| self.only_number(id))
        };
        let inverted = || {
            let mask = tree.node(tree.uncast(right));
            let below =
                mask.children.first().filter(|_| mask.kind == Kind::Other && mask.children.len() == 1);
            below.and_then(|&inner| number(tree.uncast(inner))?.checked_add(1))
        };
        let bytes = match node.operator? {
            Operator::And => self.masked(id).or_else(inverted),
            Operator::Divide => number(right),
            Operator::ShiftRight => 1_u64.checked_shl(u32::try_from(number(right)?).ok()?),
            Operator::ShiftLeft => {
                1_u64.checked_shl(u32::try_from(ADDRESS_BITS.checked_sub(number(right)?)?).ok()?)
            }
            _ => None,
        };
        bytes.filter(|&bytes| bytes.is_power_of_two() && bytes <= library_functions::MOST_ALIGNMENT)
    }

    /// `size - 1`.
    fn is_one_less(&self, id: NodeId) -> bool {
        let node = self.tree.node(self.tree.uncast(id));
        let last = node.children.last().and_then(|&last| self.tree.node(self.tree.bare(last)).value);
        node.kind == Kind::Binary && node.operator == Some(Operator::Minus) && last == Some(1)
    }

    /// `"m"(x->low)`, `"r"(&x->low)`: the member alone is used, but where a number is added to it or the instruction
    /// takes more.
    pub(in crate::collect) fn note_operand(
        &mut self,
        id: NodeId,
        operand: NodeId,
        values: &[Value],
        operands: Operands,
    ) {
        let tree = self.tree;
        let mut inner = tree.uncast(operand);
        while let (Kind::Subscript | Kind::Deref | Kind::AddressOf, [first, ..]) =
            (tree.node(inner).kind, &tree.node(inner).children[..])
        {
            inner = tree.uncast(*first);
        }
        let mut reached = Self::objects(values);
        match self.member_named(inner) {
            Some((record, member)) => reached.push(Value::origin(Origin::MemberOf(record, member))),
            // `"m"(*p)`.
            None => reached.extend(Self::objects(&self.value(inner))),
        }
        if operands.is_moved {
            if let Some((record, _)) = self.member_named(inner) {
                self.act(&[Value::origin(Origin::Object(record))], &Act::Assembly, id);
            }
            self.act(&reached, &Act::AssemblyBeyond, id);
        }
        if let Some(bytes) = operands.word_bytes {
            self.act(&reached, &Act::Spans(bytes), id);
        }
        if let Some(bytes) = operands.vector_bytes {
            self.act(&reached, &Act::AlignedMember(bytes, "an instruction".into()), id);
            self.act(&reached, &Act::Spans(bytes), id);
        }
    }

    /// `movl 16(%rdi), %eax`: the function's parameters are in registers.
    pub(in crate::collect) fn note_parameters_in_registers(&mut self, id: NodeId) {
        let tree = self.tree;
        let function = self.above.iter().find(|&&above| tree.node(above).kind == Kind::Function);
        let Some(decl) = function.and_then(|&function| tree.decl_of(function)) else { return };
        let parameter = |at| Value::place(PointerPlace::Parameter(decl.usr.clone(), at));
        let mut values: Vec<Value> = (0..decl.parameters).map(parameter).collect();
        let records = decl.signature.takes.iter().filter_map(|&ty| tree.record_pointed_to(ty));
        values.extend(records.filter_map(|record| Some(Value::origin(Origin::Object(self.usr(record)?)))));
        self.act(&values, &Act::Assembly, id);
    }

    fn aligned(&mut self, values: &[Value], (bytes, by): (u64, &str), at: NodeId) {
        self.act(&Self::objects(values), &Act::Aligned(bytes, by.into()), at);
    }

    /// `(struct header *)bytes` of a record that has only bytes in it: it describes a format of bytes.
    pub(in crate::collect) fn note_format(&mut self, behind: TypeId, ahead: TypeId, at: NodeId) {
        let tree = self.tree;
        let Some(record) = tree.record_of(ahead).filter(|_| tree.ty(behind).kind == TypeKind::Byte) else {
            return;
        };
        let is_of_bytes = |mut ty: TypeId| {
            while let TypeKind::Array(of, _) = tree.ty(ty).kind {
                ty = of;
            }
            tree.ty(ty).kind == TypeKind::Byte
        };
        let fields = &tree.records[record].fields;
        let is_format = fields.len() > 1 && fields.iter().all(|field| is_of_bytes(field.ty));
        if let Some(usr) = self.usr(record).filter(|_| is_format && !self.is_kernel) {
            let at = self.at(at);
            self.facts.sayings.insert((usr, Saying::Format, at));
        }
    }
}
