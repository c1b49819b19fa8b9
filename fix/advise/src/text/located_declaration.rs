//! The search for the declaration of a struct or class among the sources.

use crate::constraints::constraint::{Binding, Constraint};
use crate::text::declaration::{Declaration, declarations, split_scopes};
use crate::text::language::SourceLanguage;
use crate::text::lex::Lexed;
use crate::text::sources::Sources;
use lineup_model::types::SourceLocation;

/// A declaration and the file it is in.
#[derive(Clone, Debug)]
pub(crate) struct LocatedDeclaration<'a> {
    pub(crate) path: String,
    pub(crate) language: SourceLanguage,
    pub(crate) lexed: Lexed<'a>,
    pub(crate) declaration: Declaration,
}

impl LocatedDeclaration<'_> {
    pub(crate) fn line(&self) -> u32 {
        self.lexed.line_at(self.lexed.tokens[self.declaration.keyword].start())
    }
}

/// Finds the declaration of `name`. Debug info's own idea of the place decides between several.
pub(crate) fn find<'a>(
    sources: &'a Sources,
    name: &str,
    declared_at: Option<&SourceLocation>,
) -> Result<LocatedDeclaration<'a>, Binding> {
    let declared_at = declared_at.filter(|_| !sources.are_written_out());
    let path = match declared_at {
        Some(at) => Some(sources.matching_path(&at.file).ok_or_else(|| {
            Binding::new(Constraint::OutsideSource).because(format!("{}:{}", at.file, at.line))
        })?),
        None => None,
    };
    let last = split_scopes(name).pop().unwrap_or(name);
    let last = last.split('<').next().unwrap_or(last);
    let mut found: Vec<LocatedDeclaration<'a>> = Vec::new();
    for (file, _) in sources.iter().filter(|(file, _)| path.is_none_or(|path| path == *file)) {
        if sources.language(file) == SourceLanguage::Assembly {
            continue;
        }
        let Some(parsed) = sources.parsed(file).filter(|parsed| parsed.may_declare(last)) else { continue };
        let lexed = parsed.lexed();
        for declaration in declarations(&lexed).into_iter().filter(|declaration| declaration.is_named(name)) {
            let (path, language) = (file.to_string(), sources.language(file));
            found.push(LocatedDeclaration { path, language, lexed: lexed.clone(), declaration });
        }
    }
    if let (Some(at), true) = (declared_at, found.len() > 1) {
        found.retain(|found| {
            let end = found.lexed.line_at(found.lexed.tokens[found.declaration.open].start());
            (found.line()..=end).contains(&at.line)
        });
    }
    let places: Vec<String> = found.iter().map(|found| format!("{}:{}", found.path, found.line())).collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => {
            Err(Binding::new(Constraint::OutsideSource).because(format!("no declaration of {name} found")))
        }
        _ => Err(Binding::new(Constraint::UnclearSource)
            .because(format!("{name} is declared at {}", places.join(" and ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str) -> Result<(u32, Option<String>), String> {
        let sources = Sources::new([("a.cc".to_string(), text.to_string())]);
        find(&sources, name, None)
            .map(|found| (found.line(), found.declaration.tag.clone()))
            .map_err(|binding| binding.to_string())
    }

    #[test]
    fn tags_typedef_names_and_namespaces_lead_to_the_declaration() {
        let text = "struct a; struct a *f(struct a *x) { return x; }\n\
                    struct __attribute__((aligned(8))) a { int x; } ____cacheline_aligned;\n\
                    typedef struct { int y; } b_t;\n\
                    namespace n { class EXPORT c final : public std::vector<a> { struct in { int z; }; }; }\n";
        assert_eq!(found(text, "a"), Ok((2, Some("a".into()))));
        assert_eq!(found(text, "b_t"), Ok((3, None)));
        assert_eq!(found(text, "n::c"), Ok((4, Some("c".into()))));
        assert_eq!(found(text, "n::c::in"), Ok((4, Some("in".into()))));
        assert!(found(text, "c").is_err());
    }

    #[test]
    fn namespaces_for_cpp_alone_are_no_scopes_of_a_type_of_c() {
        let text = "#ifdef __cplusplus\nextern \"C\" {\nnamespace lib { namespace api {\n#endif\n\
                    struct t { int x; long y; };\n\
                    #if defined(__cplusplus)\nstruct only { int x; long y; };\n} } }\n#endif\n\
                    namespace n { struct u { int x; long y; }; }\n\
                    #ifndef __cplusplus\nnamespace m {\n#endif\nstruct v { int x; long y; };\n}\n";
        assert_eq!(found(text, "t"), Ok((5, Some("t".into()))));
        assert_eq!(found(text, "lib::api::t"), Ok((5, Some("t".into()))));
        assert_eq!(found(text, "lib::api::only"), Ok((7, Some("only".into()))));
        for name in ["lib::t", "api::t", "only", "u", "v"] {
            assert!(found(text, name).is_err(), "{name}");
        }
    }

    #[test]
    fn two_declarations_are_told_apart_by_the_line_in_debug_info_or_refused() {
        let text = "#if A\nstruct s { int x; };\n#else\nstruct s { long x; };\n#endif\n";
        let refusal = found(text, "s").expect_err("ambiguous");
        assert!(refusal.contains("a.cc:2 and a.cc:4"), "{refusal}");
        let sources = Sources::new([("a.c".to_string(), text.to_string())]);
        let at = SourceLocation { file: "/src/a.c".into(), line: 4 };
        assert_eq!(find(&sources, "s", Some(&at)).expect("one").line(), 4);
    }

    #[test]
    fn a_declaration_outside_the_folder_is_refused_with_its_place() {
        let sources = Sources::new([("a.c".to_string(), String::new())]);
        let at = SourceLocation { file: "/usr/include/zlib.h".into(), line: 86 };
        let refusal = find(&sources, "z_stream", Some(&at)).expect_err("outside");
        assert_eq!(refusal.constraint, Constraint::OutsideSource);
        assert!(refusal.to_string().contains("/usr/include/zlib.h:86"));
    }
}
