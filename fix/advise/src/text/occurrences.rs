//! Uses of a file-scope variable in a file, distinguished from locals, members and labels of the same name.

use crate::constraints::constraint::{Binding, Constraint};
use crate::text::lex::{Kind, Lexed};
use crate::text::syntax::{text_of, visit};
use crate::text::word_set::has_word;
use std::ops::Range;
use tree_sitter::Node;

/// A file and its tree.
pub(crate) struct File<'f> {
    pub(crate) path: &'f str,
    pub(crate) lexed: &'f Lexed<'f>,
    pub(crate) root: Node<'f>,
}

/// Byte ranges of the identifiers that mean the variable `name`, outside the declarator in `definition`
/// (byte range of the defining statement up to its initialiser).
///
/// # Errors
/// The constraint that makes a use impossible to rename, with its place.
pub(crate) fn of_variable(
    file: &File<'_>,
    name: &str,
    definition: &Range<usize>,
) -> Result<Vec<Range<usize>>, Binding> {
    let scopes = shadowing_scopes(file, name)?;
    let mut uses = Vec::new();
    for (index, token) in file.lexed.tokens.iter().enumerate() {
        let place =
            |constraint| Binding::new(constraint).on([name]).at(file.path, file.lexed.line_at(token.start()));
        match token.kind {
            Kind::Directive if has_word(file.lexed.str(index), name) => {
                return Err(place(Constraint::UsedInMacro));
            }
            Kind::Text if has_word(file.lexed.str(index), name) && is_in_asm(file, token.start()) => {
                return Err(place(Constraint::Assembly));
            }
            Kind::Word if file.lexed.str(index) == name && !definition.contains(&token.start()) => {
                if scopes.iter().any(|scope| scope.contains(&token.start())) {
                    continue;
                }
                if let Some(range) = variable_use(file, &token.range()).map_err(place)? {
                    uses.push(range);
                }
            }
            _ => {}
        }
    }
    Ok(uses)
}

fn is_in_asm(file: &File<'_>, offset: usize) -> bool {
    let mut at = file.root.descendant_for_byte_range(offset, offset + 1);
    while let Some(node) = at {
        if matches!(node.kind(), "gnu_asm_expression" | "asm_statement") {
            return true;
        }
        let callee = node.child_by_field_name("function").map(|callee| text_of(callee, file.lexed.text));
        if matches!(callee, Some("asm" | "__asm__" | "__asm")) {
            return true;
        }
        at = node.parent();
    }
    false
}

/// The range when the word is a use of a variable; `None` when it is a member, a label or the like.
fn variable_use(file: &File<'_>, range: &Range<usize>) -> Result<Option<Range<usize>>, Constraint> {
    let node =
        file.root.descendant_for_byte_range(range.start, range.end).ok_or(Constraint::UnclearSource)?;
    if node.byte_range() != *range {
        return Err(Constraint::UnclearSource);
    }
    match node.kind() {
        "field_identifier" | "statement_identifier" => return Ok(None),
        "identifier" => {}
        _ => return Err(Constraint::UnclearSource),
    }
    let mut at = node.parent();
    let mut is_inside = false;
    while let Some(parent) = at {
        match parent.kind() {
            "ERROR" => return Err(Constraint::UnclearSource),
            "compound_statement" | "function_definition" => is_inside = true,
            "init_declarator" => is_inside = true,
            "preproc_def" | "preproc_function_def" => return Err(Constraint::UsedInMacro),
            _ => {}
        }
        at = parent.parent();
    }
    if is_inside && !is_stringified(file, node) {
        Ok(Some(range.clone()))
    } else {
        Err(Constraint::UsedInMacro)
    }
}

/// An argument of a macro, defined in this file, that pastes or stringifies.
fn is_stringified(file: &File<'_>, node: Node<'_>) -> bool {
    let mut at = node.parent();
    while let Some(parent) = at {
        let callee = parent.child_by_field_name("function").map(|callee| text_of(callee, file.lexed.text));
        if let Some(callee) = callee.filter(|_| parent.kind() == "call_expression") {
            let is_pasting = |directive: &str| {
                let definition = directive.trim_start_matches('#').trim_start().strip_prefix("define");
                definition.is_some_and(|rest| {
                    rest.trim_start()
                        .strip_prefix(callee)
                        .is_some_and(|rest| rest.starts_with('(') && rest.contains('#'))
                })
            };
            let directives = file.lexed.tokens.iter().filter(|token| token.kind == Kind::Directive);
            if directives.map(|token| &file.lexed.text[token.range()]).any(is_pasting) {
                return true;
            }
        }
        at = parent.parent();
    }
    false
}

/// Byte ranges in which a local or parameter named `name` hides the variable.
fn shadowing_scopes(file: &File<'_>, name: &str) -> Result<Vec<Range<usize>>, Binding> {
    let mut scopes = Vec::new();
    let mut refusal = None;
    visit(file.root, |node| {
        if node.kind() != "identifier" || text_of(node, file.lexed.text) != name {
            return;
        }
        let Some(declaration) = declaration_of(node) else { return };
        let text = text_of(declaration, file.lexed.text);
        let Some(scope) = scope_of(declaration) else { return };
        if text.starts_with("extern") {
            let line = crate::text::syntax::line_of(declaration);
            refusal = Some(Binding::new(Constraint::VariableDeclaration).on([name]).at(file.path, line));
        }
        scopes.push(node.start_byte()..scope.end_byte());
    });
    refusal.map_or(Ok(scopes), Err)
}

/// The declaration that an identifier is the declarator of.
fn declaration_of(identifier: Node<'_>) -> Option<Node<'_>> {
    let mut child = identifier;
    let mut at = identifier.parent();
    while let Some(node) = at {
        match node.kind() {
            "pointer_declarator"
            | "array_declarator"
            | "function_declarator"
            | "init_declarator"
            | "reference_declarator"
            | "parenthesized_declarator"
            | "attributed_declarator" => {
                let is_declarator = node.child_by_field_name("declarator") == Some(child)
                    || (node.child_by_field_name("declarator").is_none()
                        && node.named_child(0) == Some(child));
                if !is_declarator {
                    return None;
                }
            }
            "declaration" | "parameter_declaration" | "optional_parameter_declaration" | "for_range_loop" => {
                let mut cursor = node.walk();
                return node
                    .children_by_field_name("declarator", &mut cursor)
                    .any(|d| d == child)
                    .then_some(node);
            }
            _ => return None,
        }
        child = node;
        at = node.parent();
    }
    None
}

/// The block, loop or function in which a declaration is visible; `None` at file scope.
fn scope_of(declaration: Node<'_>) -> Option<Node<'_>> {
    let mut at = Some(declaration);
    while let Some(node) = at {
        match node.kind() {
            "compound_statement"
            | "for_statement"
            | "for_range_loop"
            | "function_definition"
            | "if_statement"
            | "while_statement"
            | "switch_statement"
            | "lambda_expression"
            | "catch_clause" => return Some(node),
            "parameter_list" if !belongs_to_definition(node) => return Some(node),
            _ => at = node.parent(),
        }
    }
    None
}

fn belongs_to_definition(parameters: Node<'_>) -> bool {
    let mut at = parameters.parent();
    while let Some(node) = at {
        match node.kind() {
            "function_definition" | "lambda_expression" => return true,
            "function_declarator" | "pointer_declarator" | "reference_declarator" => at = node.parent(),
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::language::SourceLanguage;
    use crate::text::syntax::parse;

    fn lines(text: &str) -> Result<Vec<u32>, String> {
        let lexed = Lexed::new(text);
        let tree = parse(text, SourceLanguage::C).expect("parses");
        let file = File { path: "a.c", lexed: &lexed, root: tree.root_node() };
        let definition = 0..text.find('\n').unwrap_or(0);
        let uses = of_variable(&file, "cd", &definition).map_err(|binding| binding.to_string())?;
        Ok(uses.into_iter().map(|range| lexed.line_at(range.start)).collect())
    }

    #[test]
    fn locals_parameters_members_and_labels_are_left_alone() {
        let text = "static int cd;\n\
            int f(int cd) { return cd; }\n\
            int g(void) { int cd = 1; { cd++; } return cd; }\n\
            int h(struct s *p) { p->cd = p->x.cd; goto cd; cd: return 0; }\n\
            int i(void) { for (int cd = 0; cd < 2; cd++) { } return cd; }\n\
            int j(void) { { int cd = 2; (void)cd; } return sizeof(cd) + *&cd; }\n\
            struct s t = { .cd = 1 };\n\
            int k(int (*cb)(int cd));\n\
            int *l = &cd; /* cd */\n";
        assert_eq!(lines(text), Ok(vec![5, 6, 6, 9]));
    }

    #[test]
    fn a_use_before_a_local_of_the_same_name_is_a_use() {
        assert_eq!(
            lines("static int cd;\nint f(void) {\n use(cd);\n int cd = 1;\n return cd; }\n"),
            Ok(vec![3])
        );
    }

    #[test]
    fn macros_assembly_and_unclear_text_are_refused_with_their_line() {
        for (text, why) in [
            ("static int cd;\n#define CD (cd + 1)\n", "macro uses the variable: cd at a.c:2"),
            ("static int cd;\nmodule_param(cd, int, 0400);\n", "macro uses the variable: cd at a.c:2"),
            ("static int cd;\nvoid f(void) { __asm__(\"incl cd\"); }\n", "assembly uses it: cd at a.c:2"),
            ("static int cd;\n#define S(x) #x\nvoid f(void) { puts(S(cd)); }\n", "cd at a.c:3"),
            ("static int cd;\nvoid f(void) { extern int cd; }\n", "cd at a.c:2"),
        ] {
            let refusal = lines(text).expect_err(text);
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }
}
