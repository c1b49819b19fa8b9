//! A struct or union written out as C declares it.

use crate::types::{Aggregate, AggregateKind, Member, TypeId, TypeKind, Types};
use std::fmt::Write;

/// Deeper nesting is cut short (corrupt input).
const MAX_DEPTH: usize = 16;

impl Types {
    /// The declaration of a named struct or union, rebuilt from debug information: members in their order, nameless
    /// aggregates inside written out, alignments that the source wrote as attributes. `None` for a type that is no
    /// aggregate, has no name, or is only declared.
    pub fn declaration(&self, id: TypeId) -> Option<String> {
        let (id, aggregate) = self.aggregate(id)?;
        let name = self.get(id)?.name.as_deref().filter(|_| !aggregate.is_declaration)?;
        let mut text = format!("{} {name} {{\n", keyword(aggregate));
        self.members(&mut text, aggregate, 1);
        text.push_str("};\n");
        Some(text)
    }

    fn members(&self, text: &mut String, aggregate: &Aggregate, depth: usize) {
        for member in &aggregate.members {
            let indent = "\t".repeat(depth);
            let name = member.name.as_deref().unwrap_or_default();
            let nameless = self.nameless(member.ty).filter(|_| depth < MAX_DEPTH);
            let attributes = attributes(member);
            // Writing to a string does not fail.
            let _ = match nameless {
                Some((inner, arrays)) => {
                    let _ = writeln!(text, "{indent}{} {{", keyword(inner));
                    self.members(text, inner, depth + 1);
                    let gap = if name.is_empty() { "" } else { " " };
                    writeln!(text, "{indent}}}{gap}{name}{arrays}{attributes};")
                }
                None => writeln!(text, "{indent}{}{attributes};", self.spell(Some(member.ty), name)),
            };
        }
    }

    /// The aggregate without name that a type is, or is an array of, with the array's dimensions.
    fn nameless(&self, id: TypeId) -> Option<(&Aggregate, String)> {
        let mut arrays = String::new();
        let mut id = id;
        for _ in 0..MAX_DEPTH {
            let ty = self.get(id)?;
            match &ty.kind {
                TypeKind::Aggregate(aggregate) if ty.name.is_none() => return Some((aggregate, arrays)),
                TypeKind::Array { element, counts } => {
                    let dimension =
                        |count: &Option<u64>| count.map_or("[]".to_owned(), |count| format!("[{count}]"));
                    arrays.extend(counts.iter().map(dimension));
                    id = *element;
                }
                _ => return None,
            }
        }
        None
    }
}

fn keyword(aggregate: &Aggregate) -> &'static str {
    match aggregate.kind {
        AggregateKind::Union | AggregateKind::Variants => "union",
        AggregateKind::Struct | AggregateKind::Class => "struct",
    }
}

fn attributes(member: &Member) -> String {
    let width = member.bit_size.map(|width| format!(":{width}")).unwrap_or_default();
    let align = member.declared_align.map(|align| format!(" __attribute__((aligned({align})))"));
    width + &align.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Language, MemberRole, ScalarKind, Type};

    fn member(name: Option<&str>, ty: TypeId) -> Member {
        Member {
            name: name.map(Into::into),
            ty,
            offset_bits: Some(0),
            bit_size: None,
            declared_align: None,
            role: MemberRole::Field,
            declared_at: None,
        }
    }

    fn aggregate(kind: AggregateKind, members: Vec<Member>) -> TypeKind {
        TypeKind::Aggregate(Aggregate { kind, members, static_members: Vec::new(), is_declaration: false })
    }

    fn push(types: &mut Types, name: Option<&str>, kind: TypeKind) -> TypeId {
        types.push(Type {
            name: name.map(Into::into),
            kind,
            size_bytes: Some(4),
            declared_align: None,
            unit: None,
            language: Language::C,
            declared_at: None,
        })
    }

    #[test]
    fn an_array_of_itself_ends() {
        let mut types = Types::new();
        let array = push(&mut types, None, TypeKind::Array { element: TypeId(0), counts: vec![Some(2)] });
        let whole =
            push(&mut types, Some("s"), aggregate(AggregateKind::Struct, vec![member(Some("m"), array)]));
        let text = types.declaration(whole).unwrap();
        assert!(text.starts_with("struct s {\n\t? m[2][2]"), "{text}");
    }

    #[test]
    fn a_struct_is_written_as_c_declares_it() {
        let mut types = Types::new();
        let mut add = |name, kind| push(&mut types, name, kind);
        let int = add(Some("int"), TypeKind::Scalar(ScalarKind::Integer { signed: true }));
        let call = add(None, TypeKind::Function { returns: None, parameters: vec![int] });
        let pointer = add(None, TypeKind::Pointer(Some(call)));
        let either = add(
            None,
            aggregate(AggregateKind::Union, vec![member(Some("a"), int), member(Some("b"), pointer)]),
        );
        let array = add(None, TypeKind::Array { element: either, counts: vec![Some(2)] });
        let bits = Member { bit_size: Some(3), ..member(Some("mode"), int) };
        let aligned = Member { declared_align: Some(64), ..member(Some("hot"), int) };
        let members = vec![member(None, either), member(Some("both"), array), bits, aligned];
        let whole = add(Some("timer"), aggregate(AggregateKind::Struct, members));
        let expected = "struct timer {\n\tunion {\n\t\tint a;\n\t\tvoid (*b)(int);\n\t};\n\tunion {\n\t\tint a;\n\t\tvoid (*b)(int);\n\t} both[2];\n\tint mode:3;\n\tint hot __attribute__((aligned(64)));\n};\n";
        assert_eq!(types.declaration(whole).as_deref(), Some(expected));
        assert_eq!(types.declaration(int), None);
        assert_eq!(types.declaration(either), None, "without a name");
    }
}
