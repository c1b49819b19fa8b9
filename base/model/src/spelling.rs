//! Types spelt as their source language does.

use crate::types::{AggregateKind, Language, Type, TypeId, TypeKind, Types};

/// Deeper nesting is cut short (corrupt input).
const MAX_DEPTH: u32 = 32;

/// A declaration of more types is cut short: functions that take themselves have no end (corrupt input).
const MOST_TYPES: u32 = 1_000;

impl Types {
    /// A declaration of `name` with this type, as C writes it: `int (*name)(void)`. With an empty name,
    /// the type alone. `None` is `void`.
    ///
    /// ```
    /// use lineup_model::types::Types;
    /// assert_eq!(Types::new().spell(None, "x"), "void x");
    /// ```
    pub fn spell(&self, id: Option<TypeId>, name: &str) -> String {
        self.declare(id, name.to_owned(), 0, &mut 0)
    }

    fn declare(&self, id: Option<TypeId>, inner: String, depth: u32, spelt: &mut u32) -> String {
        let Some(id) = id else { return join("void", &inner) };
        *spelt += 1;
        let is_open = depth < MAX_DEPTH && *spelt <= MOST_TYPES;
        let Some(ty) = self.get(id).filter(|_| is_open) else { return join("?", &inner) };
        match &ty.kind {
            // Rust gives pointers names of their own.
            TypeKind::Pointer(_) if ty.language == Language::Rust && ty.name.is_some() => {
                join(ty.name.as_deref().unwrap_or_default(), &inner)
            }
            TypeKind::Pointer(target) => {
                let mark = ty.name.as_deref().filter(|name| name.starts_with('&')).unwrap_or("*");
                let needs_parentheses = target.and_then(|target| self.get(target)).is_some_and(|target| {
                    matches!(target.kind, TypeKind::Array { .. } | TypeKind::Function { .. })
                });
                let inner =
                    if needs_parentheses { format!("({mark}{inner})") } else { format!("{mark}{inner}") };
                self.declare(*target, inner, depth + 1, spelt)
            }
            TypeKind::Array { element, counts } if ty.language == Language::Rust => {
                let element = self.declare(Some(*element), String::new(), depth + 1, spelt);
                let dimension = |text: String, count: &Option<u64>| match count {
                    Some(count) => format!("[{text}; {count}]"),
                    None => format!("[{text}]"),
                };
                join(&counts.iter().rev().fold(element, dimension), &inner)
            }
            TypeKind::Array { element, counts } => {
                let mut inner = inner;
                for count in counts {
                    match count {
                        Some(count) => inner.push_str(&format!("[{count}]")),
                        None => inner.push_str("[]"),
                    }
                }
                self.declare(Some(*element), inner, depth + 1, spelt)
            }
            TypeKind::Function { returns, parameters } => {
                let parameters: Vec<String> = parameters
                    .iter()
                    .take(MOST_TYPES as usize)
                    .map(|&id| self.declare(Some(id), String::new(), depth + 1, spelt))
                    .collect();
                let list = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
                self.declare(*returns, format!("{inner}({list})"), depth + 1, spelt)
            }
            TypeKind::Qualified(target) => {
                let keyword = ty.name.as_deref().filter(|keyword| !self.has_qualifier(*target, keyword));
                let keyword = keyword.unwrap_or_default();
                if self.qualifies_pointer(*target) {
                    self.declare(*target, join(keyword, &inner), depth + 1, spelt)
                } else {
                    join(keyword, &self.declare(*target, inner, depth + 1, spelt))
                }
            }
            _ => join(&head(ty), &inner),
        }
    }
}

impl Types {
    /// True when the elements of an array have a qualifier: GCC gives an array those of its elements once more.
    fn has_qualifier(&self, target: Option<TypeId>, keyword: &str) -> bool {
        let (mut next, mut is_in_array) = (target, false);
        for _ in 0..MAX_DEPTH {
            let Some(ty) = next.and_then(|id| self.get(id)) else { return false };
            next = match &ty.kind {
                TypeKind::Qualified(_) if is_in_array && ty.name.as_deref() == Some(keyword) => return true,
                TypeKind::Qualified(target) => *target,
                TypeKind::Array { element, .. } => {
                    is_in_array = true;
                    Some(*element)
                }
                _ => return false,
            };
        }
        false
    }

    /// True when a qualifier of this type stands behind the star: when the type is a pointer, with other qualifiers or
    /// without. The name of a pointer type takes qualifiers before it, as other names do.
    fn qualifies_pointer(&self, target: Option<TypeId>) -> bool {
        let mut next = target;
        for _ in 0..MAX_DEPTH {
            match next.and_then(|id| self.get(id)) {
                Some(Type { kind: TypeKind::Qualified(target), .. }) => next = *target,
                Some(Type { kind: TypeKind::Pointer(_), language, name, .. }) => {
                    return *language != Language::Rust || name.is_none();
                }
                _ => return false,
            }
        }
        false
    }
}

/// The type's name with its keyword, where the language wants one.
fn head(ty: &Type) -> String {
    let keyword = match &ty.kind {
        TypeKind::Enum => "enum",
        TypeKind::Aggregate(aggregate) => match aggregate.kind {
            AggregateKind::Union => "union",
            AggregateKind::Class => "class",
            AggregateKind::Struct | AggregateKind::Variants => "struct",
        },
        _ => "",
    };
    match &ty.name {
        Some(name) if ty.language == Language::Rust => name.to_string(),
        Some(name) => join(keyword, name),
        None if ty.kind == TypeKind::MemberPointer => "/* pointer to member */".to_owned(),
        None if keyword.is_empty() => "?".to_owned(),
        None => format!("{keyword} {{...}}"),
    }
}

fn join(head: &str, tail: &str) -> String {
    match (head, tail) {
        ("", tail) => tail.to_owned(),
        (head, "") => head.to_owned(),
        (head, tail) => format!("{head} {tail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ScalarKind;

    fn push(types: &mut Types, name: Option<&str>, kind: TypeKind) -> TypeId {
        types.push(Type {
            name: name.map(Into::into),
            size_bytes: None,
            declared_align: None,
            declared_at: None,
            unit: None,
            language: Language::C,
            kind,
        })
    }

    #[test]
    fn declarators_nest_as_in_c() {
        let mut types = Types::new();
        let int = push(&mut types, Some("int"), TypeKind::Scalar(ScalarKind::Integer { signed: true }));
        let const_int = push(&mut types, Some("const"), TypeKind::Qualified(Some(int)));
        let pointer = push(&mut types, None, TypeKind::Pointer(Some(const_int)));
        let const_pointer = push(&mut types, Some("const"), TypeKind::Qualified(Some(pointer)));
        let grid = push(&mut types, None, TypeKind::Array { element: int, counts: vec![Some(2), Some(3)] });
        let to_grid = push(&mut types, None, TypeKind::Pointer(Some(grid)));
        let call =
            push(&mut types, None, TypeKind::Function { returns: None, parameters: vec![int, pointer] });
        let to_call = push(&mut types, None, TypeKind::Pointer(Some(call)));
        let const_to_call = push(&mut types, Some("const"), TypeKind::Qualified(Some(to_call)));
        assert_eq!(types.spell(Some(const_to_call), "f"), "void (*const f)(int, const int *)");
        assert_eq!(types.spell(Some(pointer), "p"), "const int *p");
        assert_eq!(types.spell(Some(const_pointer), "p"), "const int *const p");
        let volatile = push(&mut types, Some("volatile"), TypeKind::Qualified(Some(pointer)));
        let both = push(&mut types, Some("const"), TypeKind::Qualified(Some(volatile)));
        assert_eq!(types.spell(Some(both), "p"), "const int *volatile const p");
        let to_both = push(&mut types, None, TypeKind::Pointer(Some(both)));
        assert_eq!(types.spell(Some(to_both), "p"), "const int *volatile const *p");
        let named = push(&mut types, Some("words"), TypeKind::Typedef(Some(pointer)));
        let const_named = push(&mut types, Some("const"), TypeKind::Qualified(Some(named)));
        assert_eq!(types.spell(Some(const_named), "p"), "const words p");
        assert_eq!(types.spell(Some(grid), "g"), "int g[2][3]");
        assert_eq!(types.spell(Some(to_grid), "g"), "int (*g)[2][3]");
        let row = push(&mut types, None, TypeKind::Array { element: const_int, counts: vec![Some(2)] });
        let const_row = push(&mut types, Some("const"), TypeKind::Qualified(Some(row)));
        assert_eq!(types.spell(Some(const_row), "r"), "const int r[2]", "as GCC describes const int r[2]");
        let volatile_row = push(&mut types, Some("volatile"), TypeKind::Qualified(Some(row)));
        assert_eq!(types.spell(Some(volatile_row), "r"), "volatile const int r[2]");
        assert_eq!(types.spell(Some(to_call), "f"), "void (*f)(int, const int *)");
    }

    #[test]
    fn a_cycle_ends() {
        let mut types = Types::new();
        let id = push(&mut types, None, TypeKind::Pointer(Some(TypeId(0))));
        assert!(types.spell(Some(id), "x").starts_with('?'));
    }

    #[test]
    fn a_function_that_takes_itself_many_times_is_cut_short() {
        let mut types = Types::new();
        let parameters = vec![TypeId(0); 20];
        let id = push(&mut types, None, TypeKind::Function { returns: Some(TypeId(0)), parameters });
        assert!(types.spell(Some(id), "f").len() < 100_000);
    }
}
