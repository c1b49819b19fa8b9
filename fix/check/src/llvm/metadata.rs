//! Types and places from the metadata of LLVM's IR.

use super::lexer::{at_commas, words};
use crate::facts::{Facts, Member, Record, Type, TypeId, Variable};
use std::collections::HashMap;

/// A node: its class and fields, or its elements.
#[derive(Debug, Default)]
struct Node<'a> {
    class: &'a str,
    fields: HashMap<&'a str, &'a str>,
    elements: Vec<Option<u64>>,
}

fn number(word: &str) -> Option<u64> {
    word.strip_prefix('!')?.parse().ok()
}

fn nodes(text: &str) -> HashMap<u64, Node<'_>> {
    let mut found = HashMap::new();
    for line in text.lines().filter(|line| line.starts_with('!')) {
        let words = words(line);
        let Some(id) = words.first().and_then(|word| number(word)) else { continue };
        let Some(start) = words.iter().position(|word| *word == "=") else { continue };
        let mut rest = &words[start + 1..];
        if rest.first() == Some(&"distinct") {
            rest = &rest[1..];
        }
        let Some((class, rest)) = rest.split_first() else { continue };
        let inside = rest.get(1..rest.len().saturating_sub(1)).unwrap_or_default();
        let mut node = Node { class, ..Node::default() };
        if *class == "!" {
            node.elements =
                at_commas(inside).into_iter().map(|part| part.last().and_then(|word| number(word))).collect();
        } else {
            for part in at_commas(inside) {
                if let [name, ":", .., value] = part {
                    // `extraData: i64 16` has its value last.
                    node.fields.insert(name, value);
                }
            }
        }
        found.insert(id, node);
    }
    found
}

fn unquoted(text: &str) -> &str {
    text.trim_matches('"')
}

/// Fields of a node.
impl Node<'_> {
    fn text(&self, name: &str) -> Option<String> {
        self.fields.get(name).map(|value| unquoted(value).to_owned())
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.fields.get(name)?.parse().ok()
    }

    fn link(&self, name: &str) -> Option<u64> {
        number(self.fields.get(name)?)
    }

    fn tag(&self) -> &str {
        self.fields.get("tag").copied().unwrap_or("")
    }
}

/// Types and global variables of a unit.
pub fn facts(text: &str) -> Facts {
    let nodes = nodes(text);
    let mut facts = Facts::default();
    let mut ids: Vec<u64> = nodes.keys().copied().collect();
    ids.sort_unstable();
    for id in ids {
        let node = &nodes[&id];
        let base = node.link("baseType");
        let same = base.map_or(Type::Scalar { name: "void".into(), bytes: 0 }, Type::Same);
        let of = match (node.class, node.tag()) {
            ("!DIBasicType", _) => Type::Scalar {
                name: node.text("name").unwrap_or_default(),
                bytes: node.count("size").unwrap_or(0) / 8,
            },
            (
                "!DIDerivedType",
                "DW_TAG_pointer_type" | "DW_TAG_reference_type" | "DW_TAG_rvalue_reference_type",
            ) => Type::Pointer(base.unwrap_or(u64::MAX)),
            ("!DIDerivedType", "DW_TAG_member" | "DW_TAG_inheritance") => continue,
            ("!DIDerivedType", tag) => {
                if let (Some(name), "DW_TAG_typedef") = (node.text("name"), tag) {
                    facts.typedefs.insert(name, id);
                }
                same
            }
            ("!DISubroutineType", _) => Type::Function,
            ("!DICompositeType", "DW_TAG_array_type") => array(&nodes, node, id, &mut facts),
            ("!DICompositeType", "DW_TAG_structure_type" | "DW_TAG_class_type" | "DW_TAG_union_type") => {
                let is_declared =
                    node.fields.get("flags").is_some_and(|flags| flags.contains("DIFlagFwdDecl"));
                match is_declared {
                    true => Type::Scalar { name: node.text("name").unwrap_or_default(), bytes: 0 },
                    false => {
                        facts.records.push(record(&nodes, node));
                        Type::Record(facts.records.len() - 1)
                    }
                }
            }
            ("!DICompositeType", _) => Type::Scalar {
                name: node.text("name").unwrap_or_default(),
                bytes: node.count("size").unwrap_or(0) / 8,
            },
            ("!DIGlobalVariable", _) => {
                if let (Some(name), Some(of)) = (node.text("name"), node.link("type")) {
                    let symbol = node.text("linkageName");
                    let is_external = node.fields.get("isLocal") != Some(&"true");
                    let (function, place) = (None, None);
                    facts.variables.push(Variable { name, function, of, place, symbol, is_external });
                }
                continue;
            }
            _ => continue,
        };
        facts.types.insert(id, of);
    }
    for index in 0..facts.records.len() {
        for member in 0..facts.records[index].members.len() {
            let found = &facts.records[index].members[member];
            if found.bits == 0 {
                let bits = facts.bytes(found.of) * 8;
                facts.records[index].members[member].bits = bits;
            }
        }
    }
    facts.name_records();
    facts
}

/// Dimensions that are added get numbers from the end, which no node has.
fn array(nodes: &HashMap<u64, Node<'_>>, node: &Node<'_>, id: u64, facts: &mut Facts) -> Type {
    let elements = node.link("elements").and_then(|elements| nodes.get(&elements));
    let counts: Vec<Option<u64>> = elements
        .map(|elements| {
            let counts = elements.elements.iter().flatten().filter_map(|element| nodes.get(element));
            counts.map(|range| range.count("count")).collect()
        })
        .unwrap_or_default();
    let mut of: TypeId = node.link("baseType").unwrap_or(u64::MAX);
    for (index, count) in counts.iter().enumerate().skip(1).rev() {
        let next = u64::MAX / 2 + id * 16 + index as u64;
        facts.types.insert(next, Type::Array { of, count: *count });
        of = next;
    }
    Type::Array { of, count: counts.first().copied().flatten() }
}

fn record(nodes: &HashMap<u64, Node<'_>>, node: &Node<'_>) -> Record {
    let elements = node.link("elements").and_then(|elements| nodes.get(&elements));
    let parts = elements.into_iter().flat_map(|elements| elements.elements.iter().flatten());
    let members = parts.filter_map(|part| {
        let member = nodes.get(part)?;
        let flags = member.fields.get("flags").copied().unwrap_or("");
        let is_member = matches!(member.tag(), "DW_TAG_member" | "DW_TAG_inheritance");
        (is_member && !flags.contains("StaticMember")).then(|| Member {
            name: member.text("name"),
            of: member.link("baseType").unwrap_or(u64::MAX),
            at_bits: member.count("offset").unwrap_or(0),
            bits: member.count("size").unwrap_or(0),
            is_bit_field: member.fields.contains_key("extraData"),
        })
    });
    let mut name = node.text("name").unwrap_or_default();
    let mut scope = node.link("scope");
    let mut depth = 0;
    while let Some(outer) =
        scope.and_then(|scope| nodes.get(&scope)).filter(|_| depth < 32 && !name.is_empty())
    {
        let is_outer = outer.class == "!DINamespace" || outer.class == "!DICompositeType";
        match outer.text("name").filter(|_| is_outer) {
            Some(outer) => name = format!("{outer}::{name}"),
            None => break,
        }
        scope = outer.link("scope");
        depth += 1;
    }
    Record {
        name,
        is_union: node.tag() == "DW_TAG_union_type",
        bytes: node.count("size").unwrap_or(0) / 8,
        members: members.collect(),
    }
}

/// Lines and columns by the number of a location.
pub fn places(text: &str) -> HashMap<u64, String> {
    let file = text.lines().find_map(|line| line.strip_prefix("source_filename = ")).map_or("", unquoted);
    let of = |line: &str| {
        let (id, rest) = line.split_once(" = ")?;
        let rest = rest.strip_prefix("distinct ").unwrap_or(rest).strip_prefix("!DILocation(line: ")?;
        let (line, rest) = rest.split_once(", ")?;
        let column =
            rest.strip_prefix("column: ").and_then(|rest| rest.split([',', ')']).next()).unwrap_or("0");
        Some((number(id)?, format!("{file}:{line}:{column}")))
    };
    text.lines().filter(|line| line.starts_with('!')).filter_map(of).collect()
}
