//! Containment of types by value. No compiler lets a type hold itself; damaged debug information does.

use crate::types::{TypeId, TypeKind, Types};

/// Members of one type, including its members' members, beyond which its description must be wrong.
const MOST_MEMBERS: u32 = 1 << 20;

/// A type on the way from an outer to an inner one.
struct Open {
    id: TypeId,
    held: Vec<TypeId>,
    next: usize,
    members: u32,
}

/// The progress of the search at a type.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Unseen,
    Open,
    /// With its count of members at every depth.
    Counted(u32),
}

impl Types {
    /// Takes away the members of every type that holds itself, or more than 2²⁰ members at all depths: it becomes
    /// a mere declaration. Returns those types. Afterwards, walking members inwards ends.
    ///
    /// ```
    /// use lineup_model::types::Types;
    /// assert!(Types::new().break_containment().is_empty());
    /// ```
    pub fn break_containment(&mut self) -> Vec<TypeId> {
        let impossible = self.impossible();
        for &id in &impossible {
            let Some(ty) = self.get_mut(id) else { continue };
            let TypeKind::Aggregate(aggregate) = &mut ty.kind else { continue };
            aggregate.members.clear();
            aggregate.is_declaration = true;
        }
        impossible
    }

    fn impossible(&self) -> Vec<TypeId> {
        let mut states = vec![State::Unseen; self.len()];
        let mut impossible = Vec::new();
        for (id, _) in self.iter() {
            if self.aggregate(id).is_some() {
                self.count(id, &mut states, &mut impossible);
            }
        }
        impossible
    }

    /// Counts the members of a type and of all types that it holds, innermost first.
    fn count(&self, start: TypeId, states: &mut [State], impossible: &mut Vec<TypeId>) {
        let mut path = Vec::new();
        self.enter(start, states, &mut path);
        while let Some(open) = path.last_mut() {
            let Some(&inner) = open.held.get(open.next) else {
                let (id, members) = (open.id, open.members);
                path.pop();
                states[id.0 as usize] = State::Counted(members);
                continue;
            };
            match states[inner.0 as usize] {
                State::Unseen => {
                    // Counted by the time this member is looked at again.
                    self.enter(inner, states, &mut path);
                    continue;
                }
                State::Open => open.members = u32::MAX,
                State::Counted(members) => open.members = open.members.saturating_add(members),
            }
            open.next += 1;
            if open.members > MOST_MEMBERS {
                impossible.push(open.id);
                open.members = 0;
                open.next = open.held.len();
            }
        }
    }

    fn enter(&self, id: TypeId, states: &mut [State], path: &mut Vec<Open>) {
        let Some(state @ State::Unseen) = states.get_mut(id.0 as usize) else { return };
        *state = State::Open;
        let Some((_, aggregate)) = self.aggregate(id) else { return };
        let held: Vec<TypeId> = aggregate.members.iter().filter_map(|member| self.held(member.ty)).collect();
        let members = u32::try_from(aggregate.members.len()).unwrap_or(u32::MAX);
        path.push(Open { id, held, next: 0, members });
    }

    /// The aggregate that an object of a type consists of, one or many times.
    fn held(&self, id: TypeId) -> Option<TypeId> {
        let mut id = id;
        for _ in 0..64 {
            id = self.strip(id)?;
            match &self.get(id)?.kind {
                TypeKind::Array { element, .. } => id = *element,
                TypeKind::Aggregate(_) => return Some(id),
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Aggregate, AggregateKind, Language, Member, MemberRole, Type};

    fn push(types: &mut Types, kind: TypeKind) -> TypeId {
        types.push(Type {
            name: None,
            size_bytes: Some(8),
            declared_align: None,
            declared_at: None,
            unit: None,
            language: Language::C,
            kind,
        })
    }

    fn holding(types: &mut Types, held: &[u32]) -> TypeId {
        let member = |&id: &u32| Member {
            name: None,
            ty: TypeId(id),
            offset_bits: Some(0),
            bit_size: None,
            declared_align: None,
            role: MemberRole::Field,
            declared_at: None,
        };
        let members = held.iter().map(member).collect();
        let kind = AggregateKind::Struct;
        let aggregate = Aggregate { kind, members, static_members: Vec::new(), is_declaration: false };
        push(types, TypeKind::Aggregate(aggregate))
    }

    #[test]
    fn a_type_may_hold_another_many_times_and_point_to_itself() {
        let mut types = Types::new();
        let inner = holding(&mut types, &[1, 1, 1]);
        push(&mut types, TypeKind::Pointer(Some(inner)));
        holding(&mut types, &[0, 0, 1, 2_000]);
        assert_eq!(types.break_containment(), []);
    }

    #[test]
    fn a_type_that_holds_itself_by_others_loses_its_members() {
        let mut types = Types::new();
        holding(&mut types, &[1]);
        push(&mut types, TypeKind::Typedef(Some(TypeId(2))));
        holding(&mut types, &[3, 3]);
        push(&mut types, TypeKind::Array { element: TypeId(0), counts: vec![Some(2)] });
        holding(&mut types, &[4]);
        assert_eq!(types.break_containment(), [TypeId(2), TypeId(4)]);
        assert!(types.aggregate(TypeId(2)).unwrap().1.is_declaration);
        assert_eq!(types.aggregate(TypeId(0)).unwrap().1.members.len(), 1, "it is sound now");
        assert_eq!(types.break_containment(), []);
    }

    #[test]
    fn members_that_double_at_every_depth_are_cut_off() {
        let mut types = Types::new();
        holding(&mut types, &[]);
        for inner in 0..1_000 {
            holding(&mut types, &[inner, inner]);
        }
        let cut = types.break_containment();
        assert_eq!(cut[0], TypeId(20), "2^20 members and those that hold them");
        assert_eq!(types.break_containment(), []);
    }
}
