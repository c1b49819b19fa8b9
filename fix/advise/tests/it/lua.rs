//! A real program: every layout proposed for Lua's own types is compiled with all of Lua and read back;
//! everything else is refused by name.

use crate::pahole::Folder;
use lineup_advise::advise;
use lineup_advise::constraint::Constraint;
use lineup_advise::options::Options;
use lineup_advise::proposal::Check;
use lineup_advise::rewrite::{reorder, units};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// Lua's sources, inside the crate that carries them.
fn lua_files() -> Vec<(String, String)> {
    let folder = lineup_fixtures::sources_of("lua-src").join("lua-5.4.9");
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .expect("Lua 5.4 is there")
        .map(|entry| entry.expect("reads").path())
        .filter(|path| matches!(path.extension().and_then(|extension| extension.to_str()), Some("c" | "h")))
        .map(|path| {
            let name = path.file_name().expect("named").to_string_lossy().into_owned();
            (name, String::from_utf8_lossy(&std::fs::read(&path).expect("reads")).into_owned())
        })
        .collect();
    let sources: Vec<String> = files
        .iter()
        .filter(|(name, _)| name.ends_with(".c"))
        .map(|(name, _)| format!("#include \"{name}\"\n"))
        .collect();
    files.push((
        "every.c".to_string(),
        format!("#define LUA_CORE\n#define LUA_LIB\n#define ltable_c\n{}", sources.concat()),
    ));
    files.sort();
    files
}

const TYPES: [&str; 14] = [
    "lua_State",
    "global_State",
    "CallInfo",
    "Table",
    "Proto",
    "TString",
    "Udata",
    "LClosure",
    "CClosure",
    "UpVal",
    "FuncState",
    "LexState",
    "Dyndata",
    "lua_Debug",
];

#[test]
fn proposals_for_luas_types_compile_as_predicted_and_the_rest_is_refused_by_name() {
    let files = lua_files();
    let borrowed: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut folder = Folder::new(&borrowed, "lapi.c", &[]);
    folder.flags = vec!["-include".into(), "all.h".into()];
    let headers = ["lua.h", "lobject.h", "lstate.h", "lparser.h", "llex.h", "lfunc.h"];
    let all: String = headers.iter().map(|header| format!("#include \"{header}\"\n")).collect();
    folder.files.insert("all.h".to_string(), format!("#define LUA_CORE\n#include \"lprefix.h\"\n{all}"));
    folder.files.remove("every.c");
    let keep: String = TYPES.iter().enumerate().map(|(at, name)| format!("{name} *keep_{at};\n")).collect();
    folder.files.insert("keep.c".to_string(), format!("{keep}struct UpVal up_;\n"));
    folder.main = "keep.c".to_string();
    let (mut proposed, mut refused, mut good) = (0, BTreeSet::new(), 0);
    for name in TYPES {
        folder.wanted = vec![name.to_string()];
        folder.write(&Default::default());
        let types = folder.types(Abi::X86_64).unwrap_or_else(|words| panic!("{name}: {words}"));
        let id = types.by_name()[name][0];
        let (_, aggregate) = types.aggregate(id).expect("a struct");
        let named: Vec<_> = aggregate.members.iter().filter(|member| member.name.is_some()).collect();
        let (Some(early), Some(late)) = (named.get(1), named.get(named.len().saturating_sub(2))) else {
            continue;
        };
        let touched = |member: &lineup_model::types::Member| ByteUse {
            offset: member.offset_bytes().expect("placed"),
            size_bytes: types.size_bytes(member.ty).expect("sized").clamp(1, 8),
            loads: 1,
            stores: 0,
        };
        let mut bytes = vec![touched(early), touched(late)];
        bytes.sort();
        bytes.dedup();
        let patterns = vec![ObjectPattern::alone(0, bytes, 1)];
        let usage = Usage {
            regions: Regions::from_iter([Region::named("hot")]),
            types: vec![TypeUse {
                region: RegionId(0),
                ty: id,
                calls: 1,
                patterns,
                used_as: BTreeSet::new(),
            }],
            ..Usage::empty(Abi::X86_64)
        };
        let sources = Sources::new(folder.files.clone());
        let advice = advise(&usage, &types, &sources, &Options::default(), &mut folder)
            .expect("nothing but candidates fails");
        for proposal in &advice.orders {
            assert_ne!(proposal.check, Check::Predicted, "{name}");
            println!("{name}: {:?}", proposal.moved);
            proposed += 1;
        }
        for refusal in &advice.refusals {
            println!("{name}: refused: {}", refusal.constraints[0]);
            refused.insert(refusal.constraints[0].constraint);
        }
        good += advice.already_good.len();
    }
    println!("{proposed} proposed, {good} good already, refused for {refused:?}");
    assert!(proposed >= 3, "{proposed} proposed");
    assert!(!refused.contains(&Constraint::CompilerDisagrees), "{refused:?}");
    assert!(!refused.contains(&Constraint::StaleDebugInfo), "{refused:?}");
}

#[test]
fn every_struct_of_lua_survives_the_identity_and_a_reversal_keeps_its_texts() {
    let sources = Sources::new(lua_files().into_iter().filter(|(path, _)| path.ends_with(".h")));
    let mut read = 0;
    for name in TYPES {
        let Ok(before) = units(&sources, name) else { continue };
        let identity: Vec<usize> = (0..before.len()).collect();
        let (path, text) = reorder(&sources, name, &identity).expect("identity");
        assert_eq!(Some(text.as_str()), sources.get(&path), "{name}");
        let reversed: Vec<usize> = identity.iter().rev().copied().collect();
        if let Ok((path, text)) = reorder(&sources, name, &reversed) {
            let edited = sources.with(&[(path, text)].into());
            let after = units(&edited, name).expect("still reads");
            assert_eq!(after.iter().rev().collect::<Vec<_>>(), before.iter().collect::<Vec<_>>(), "{name}");
            read += 1;
        }
    }
    assert!(read >= 10, "{read} structs reversed");
}
