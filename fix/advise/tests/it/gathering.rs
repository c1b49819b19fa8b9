//! Globals used together: the sched_clock of 2015, and the constraints that forbid a gathering.

use crate::pahole;
use crate::pahole::{Folder, integer, member, pointer, push, structure, typedef};
use lineup_advise::advise;
use lineup_advise::constraint::Constraint;
use lineup_advise::error::AdviseError;
use lineup_advise::judge::{CompileError, Compiled, Judge, Stopped};
use lineup_advise::options::Options;
use lineup_advise::patch::unified_diff;
use lineup_advise::proposal::{Advice, Check};
use lineup_advise::sources::Sources;
use lineup_advise::usage::{Scale, TypedVariable, Usage};
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{SourceLocation, TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, VariablePattern, VariableRef, VariableUse};
use std::collections::BTreeMap;

const SCHED_CLOCK: &str = include_str!("texts/sched_clock.c");

/// Reads back the members of `struct clock_data` and of the gathered struct.
struct SchedClock(Folder);

impl Judge for SchedClock {
    fn compile(&mut self, edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
        let mut compiled = self.0.compile(edited)?;
        self.0.write(edited);
        for build in &mut compiled {
            gathered(&self.0, build);
        }
        self.0.write(&BTreeMap::new());
        Ok(compiled)
    }
}

/// The anonymous struct of the gathered variable, by `offsetof` on the variable's own type.
fn gathered(folder: &Folder, build: &mut Compiled) {
    let names = ["sched_clock_mask", "read_sched_clock", "cd"];
    let text = std::fs::read_to_string(folder.path().join("sched_clock.c")).expect("reads");
    if !text.contains("sched_clock_hot") {
        return;
    }
    let names: Vec<&str> =
        names.into_iter().filter(|name| text.contains(&format!("sched_clock_hot.{name}"))).collect();
    let entry = |name: &&str| format!("__builtin_offsetof(__typeof__(sched_clock_hot), {name}),");
    let table: String = names.iter().map(entry).collect();
    let text = format!(
        "{text}\n__attribute__((section(\".table\"), used)) static const unsigned table[] = {{{table}}};\n"
    );
    std::fs::write(folder.path().join("table.c"), text).expect("writes");
    let (compiler, copy, package) = match build.abi == Abi::ARM {
        true => ("arm-linux-gnueabihf-gcc", "arm-linux-gnueabihf-objcopy", "gcc-arm-linux-gnueabihf"),
        false => ("gcc", "objcopy", "gcc"),
    };
    pahole::run(compiler, package, folder.path(), &["-c", "-o", "table.o", "table.c"]).expect("compiles");
    pahole::run(copy, package, folder.path(), &["-O", "binary", "-j", ".table", "table.o", "table.bin"])
        .expect("copies");
    let bytes = std::fs::read(folder.path().join("table.bin")).expect("reads");
    let int = integer(&mut build.types, "int", 4);
    let mut members: Vec<_> = names
        .iter()
        .zip(bytes.as_chunks::<4>().0)
        .map(|(name, bytes)| member(name, int, u64::from(u32::from_le_bytes(*bytes)) * 8))
        .collect();
    members.sort_by_key(|member| member.offset_bits);
    structure(&mut build.types, "", 64, members);
}

struct Case {
    types: Types,
    usage: Usage,
}

/// `sched_clock()` as it read its data in 2015: `cd` at 0x1010, the others in sections of their own.
fn sched_clock() -> Case {
    let abi = Abi::X86_64;
    let mut types = Types::new();
    let long = integer(&mut types, "long unsigned int", 8);
    let u64_ = typedef(&mut types, "u64", long);
    let ktime = typedef(&mut types, "ktime_t", long);
    let u32_ = integer(&mut types, "unsigned int", 4);
    let boolean = integer(&mut types, "_Bool", 1);
    let seqcount = structure(&mut types, "seqcount", 4, vec![member("sequence", u32_, 0)]);
    let members = vec![
        member("wrap_kt", ktime, 0),
        member("epoch_ns", u64_, 64),
        member("epoch_cyc", u64_, 128),
        member("seq", seqcount, 192),
        member("rate", long, 256),
        member("mult", u32_, 320),
        member("shift", u32_, 352),
        member("suspended", boolean, 384),
    ];
    let data = structure(&mut types, "clock_data", 56, members);
    let function = pointer(&mut types, abi);
    let touched = |offset, size_bytes| ByteUse { offset, size_bytes, loads: 100, stores: 0 };
    let variables: [(&str, u64, u64, TypeId, Vec<ByteUse>); 3] = [
        (
            "cd",
            0x1010,
            56,
            data,
            vec![
                touched(8, 8),
                touched(16, 8),
                touched(24, 4),
                touched(40, 4),
                touched(44, 4),
                touched(48, 1),
            ],
        ),
        ("sched_clock_mask", 0x2000, 8, u64_, vec![touched(0, 8)]),
        ("read_sched_clock", 0x2100, 8, function, vec![touched(0, 8)]),
    ];
    let reference =
        |name: &str, address, size_bytes| VariableRef { name: name.to_string(), address, size_bytes };
    let pattern = VariablePattern {
        variables: variables
            .iter()
            .map(|(name, at, size, _, bytes)| (reference(name, *at, *size), bytes.clone()))
            .collect(),
        occurrences: 100,
    };
    let variable_types = variables
        .iter()
        .map(|(name, at, size, ty, _)| TypedVariable { variable: reference(name, *at, *size), ty: *ty })
        .collect();
    let usage = Usage {
        regions: Regions::from_iter([Region::named("sched_clock")]),
        variables: vec![VariableUse { region: RegionId(0), calls: 100, patterns: vec![pattern] }],
        variable_types,
        ..Usage::empty(abi)
    };
    Case { types, usage }
}

fn advice_on(text: &str) -> (Advice, SchedClock) {
    let case = sched_clock();
    let mut folder = Folder::new(&[("sched_clock.c", text)], "sched_clock.c", &["clock_data"]);
    folder.abis = vec![Abi::X86_64, Abi::ARM];
    let sources = Sources::new(folder.files.clone());
    let mut judge = SchedClock(folder);
    let advice = advise(&case.usage, &case.types, &sources, &Options::default(), &mut judge)
        .expect("nothing but candidates fails");
    (advice, judge)
}

#[test]
fn three_places_become_one_aligned_line() {
    let (advice, judge) = advice_on(SCHED_CLOCK);
    assert_eq!(advice.gathers.len(), 1, "{:?}", advice.refusals);
    let proposal = &advice.gathers[0];
    let row = |model: &str, bytes| {
        proposal.lines.iter().find(|row| row.data_model == model && row.line_bytes == bytes).expect("a row")
    };
    assert_eq!((row("LP64", 64).before, row("LP64", 64).after), (Some(4.0), 1.0), "cd straddled two lines");
    assert_eq!(row("LP64", 32).after, 2.0, "45 hot bytes need two lines of 32");
    assert_eq!((row("ILP32", 64).before, row("ILP32", 64).after), (None, 1.0));
    assert_eq!(row("ILP32", 32).after, 2.0);
    assert_eq!(proposal.check, Check::Compiled);
    assert_eq!(proposal.variables, ["sched_clock_mask", "read_sched_clock", "cd"]);
    assert_eq!(proposal.reordered_types, ["clock_data"]);
    assert!(proposal.notes.iter().all(|note| note.constraint == Constraint::SectionAttribute));
    assert_eq!(proposal.notes.len(), 2);

    let sources = Sources::new(judge.0.files.clone());
    judge.0.write(&BTreeMap::new());
    std::fs::write(judge.0.path().join("fix.patch"), unified_diff(&sources, &advice.edited)).expect("writes");
    pahole::run("git", "git", judge.0.path(), &["apply", "fix.patch"]).expect("applies");
    let text = std::fs::read_to_string(judge.0.path().join("sched_clock.c")).expect("reads");
    assert!(text.contains("\t/* Which bits of the counter count. */\n\tu64 sched_clock_mask;\n"), "{text}");
    assert!(text.contains("\tu64 (*read_sched_clock)(void); /* the counter */\n"), "{text}");
    assert!(text.contains("\t.cd = {\n\t\t.mult\t= 1000000000 / 250,\n\t},\n"), "{text}");
    assert!(text.contains("} sched_clock_hot __attribute__((aligned(64))) = {\n"), "{text}");
    assert!(text.contains("READ_ONCE(sched_clock_hot.cd.seq.sequence)"), "{text}");
    assert!(text.contains("static int irqtime = -1;\n"), "cold variables stay");
    assert!(text.contains("& sched_clock_hot.sched_clock_mask;"));
}

#[test]
fn read_mostly_scalars_are_named_for_an_immediate_value() {
    let case = sched_clock();
    let advice = advise(
        &case.usage,
        &case.types,
        &Sources::default(),
        &Options::default(),
        &mut lineup_advise::judge::NoCompiler,
    )
    .expect("nothing but candidates fails");
    let names: Vec<&str> = advice.immediates.iter().map(|advice| advice.variable.as_str()).collect();
    assert_eq!(names, ["read_sched_clock", "sched_clock_mask"]);
    assert_eq!(advice.immediates[0].loads[0].loads_per_call, 1.0);
}

/// The advice about immediate values when the usage was changed so.
fn immediates_of(change: impl FnOnce(&mut Case)) -> Vec<String> {
    let mut case = sched_clock();
    change(&mut case);
    let mut nobody = lineup_advise::judge::NoCompiler;
    let advice = advise(&case.usage, &case.types, &Sources::default(), &Options::default(), &mut nobody)
        .expect("nothing but candidates fails");
    advice.immediates.iter().map(|advice| advice.variable.clone()).collect()
}

#[test]
fn a_variable_that_two_regions_read_is_named_once_with_both() {
    let mut case = sched_clock();
    case.usage.regions.push(Region::named("local_clock"));
    let again = VariableUse { region: RegionId(1), ..case.usage.variables[0].clone() };
    case.usage.variables.push(again);
    let mut nobody = lineup_advise::judge::NoCompiler;
    let advice = advise(&case.usage, &case.types, &Sources::default(), &Options::default(), &mut nobody)
        .expect("nothing but candidates fails");
    let regions = |index: usize| -> Vec<&str> {
        advice.immediates[index].loads.iter().map(|loads| loads.region.as_str()).collect()
    };
    assert_eq!(advice.immediates.len(), 2);
    assert_eq!(
        (regions(0), regions(1)),
        (vec!["sched_clock", "local_clock"], vec!["sched_clock", "local_clock"])
    );
}

#[test]
fn an_immediate_value_is_not_advised_where_no_call_misses() {
    let misses = |misses: f64| {
        immediates_of(|case| {
            case.usage.scales.insert(RegionId(0), Scale { data_misses: Some(misses), ..Scale::default() });
        })
    };
    assert_eq!(misses(0.001), Vec::<String>::new());
    assert_eq!(misses(0.5), ["read_sched_clock", "sched_clock_mask"]);
}

#[test]
fn clocks_and_copies_of_each_cpu_become_no_immediate_value() {
    let renamed = immediates_of(|case| {
        for (variable, _) in case.usage.variables.iter_mut().flat_map(|used| &mut used.patterns[0].variables)
        {
            if variable.name == "sched_clock_mask" {
                variable.name = "jiffies_64".into();
            }
        }
    });
    assert_eq!(renamed, ["read_sched_clock"]);
    assert_eq!(immediates_of(|case| case.usage.per_cpu = Some(0x2000..0x2080)), ["read_sched_clock"]);
}

#[test]
fn variables_of_which_every_cpu_has_a_copy_are_not_gathered() {
    let mut case = sched_clock();
    case.usage.per_cpu = Some(0x1000..0x3000);
    let sources = Sources::new([("sched_clock.c".to_string(), SCHED_CLOCK.to_string())]);
    let mut nobody = lineup_advise::judge::NoCompiler;
    let advice = advise(&case.usage, &case.types, &sources, &Options::default(), &mut nobody)
        .expect("nothing but candidates fails");
    assert!(advice.gathers.is_empty());
    let per_cpu =
        advice.refusals.iter().filter(|refusal| refusal.constraints[0].constraint == Constraint::PerCpu);
    assert_eq!(per_cpu.count(), 3, "{:?}", advice.refusals);
}

fn refusals(text: &str) -> Vec<Constraint> {
    advice_on(text).0.refusals.iter().map(|refusal| refusal.constraints[0].constraint).collect()
}

#[test]
fn a_variable_in_a_macro_or_in_assembly_stays_and_says_so() {
    let text = format!("{SCHED_CLOCK}#define MASKED(x) ((x) & sched_clock_mask)\n");
    assert_eq!(refusals(&text), [Constraint::UsedInMacro]);
    let text =
        format!("{SCHED_CLOCK}void f(void);\nvoid f(void) {{ __asm__(\"/* sched_clock_mask */\"); }}\n");
    assert_eq!(refusals(&text), [Constraint::Assembly]);
}

#[test]
fn constant_data_and_linkage_are_named() {
    let text = SCHED_CLOCK
        .replace("static u64 __read_mostly sched_clock_mask;", "static const u64 sched_clock_mask = 1;");
    let text = text.replace("\tsched_clock_mask = ~0ull >> (64 - bits);\n", "\t(void)bits;\n");
    assert_eq!(refusals(&text), [Constraint::ConstantData]);
    let case = sched_clock();
    let text = SCHED_CLOCK.replace("static u64 __read_mostly sched_clock_mask;", "u64 sched_clock_mask;");
    let files = [("sched_clock.c", text.as_str()), ("other.c", "extern unsigned long sched_clock_mask;\n")];
    let sources = Sources::new(files.map(|(path, text)| (path.to_string(), text.to_string())));
    let advice = advise(
        &case.usage,
        &case.types,
        &sources,
        &Options::default(),
        &mut lineup_advise::judge::NoCompiler,
    )
    .expect("nothing but candidates fails");
    let refused: Vec<Constraint> =
        advice.refusals.iter().map(|refusal| refusal.constraints[0].constraint).collect();
    assert_eq!(refused, [Constraint::VariableDeclaration], "declared in two files");
    let said = advice.refusals[0].constraints[0].to_string();
    for place in ["sched_clock.c:", "other.c:1"] {
        assert!(said.contains(place), "{said} names both places");
    }
}

/// A file of the folder that is not compiled into the program does not count as a second declaration: a copy that a
/// build made of a header, another program's file, a patch system's copy.
#[test]
fn a_copy_that_the_program_is_not_compiled_from_does_not_count() {
    let mut case = sched_clock();
    let id = case.types.by_name()["clock_data"][0];
    let mut types = Types::default();
    for (other, ty) in case.types.iter() {
        let mut ty = ty.clone();
        if other == id {
            ty.unit = Some("/src/main.c".into());
            ty.declared_at = Some(SourceLocation { file: "/src/clock.h".into(), line: 1 });
        }
        types.push(ty);
    }
    case.types = types;
    let copies = ["build/include/clock.h", ".pc/fix.patch/clock.h", "clock.h"];
    let sources = Sources::new(copies.map(|path| (path.to_string(), SCHED_CLOCK.to_string())));
    let mut judge = lineup_advise::judge::NoCompiler;
    let advice = advise(&case.usage, &case.types, &sources, &Options::default(), &mut judge)
        .expect("nothing but candidates fails");
    assert_eq!(advice.gathers.len(), 1, "{:?}", advice.refusals);
    assert_eq!(advice.gathers[0].path, "clock.h");
}

#[test]
fn what_the_compiler_refuses_is_not_proposed() {
    struct Refuses;
    impl Judge for Refuses {
        fn compile(&mut self, _: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
            Err(CompileError::Rejected { words: "sched_clock.c:1: error: no".to_string() })
        }
    }
    let case = sched_clock();
    let sources = Sources::new([("sched_clock.c".to_string(), SCHED_CLOCK.to_string())]);
    let advice = advise(&case.usage, &case.types, &sources, &Options::default(), &mut Refuses)
        .expect("nothing but candidates fails");
    assert!(advice.gathers.is_empty());
    assert!(advice.edited.is_empty());
    assert_eq!(advice.refusals[0].constraints[0].constraint, Constraint::CompilerDisagrees);
    assert!(advice.refusals[0].constraints[0].to_string().contains("error: no"));
}

#[test]
fn a_build_that_fails_by_itself_ends_the_work_instead_of_refusing_the_candidate() {
    struct Fails(CompileError);
    impl Judge for Fails {
        fn compile(&mut self, _: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
            Err(self.0.clone())
        }
    }
    let case = sched_clock();
    let sources = Sources::new([("sched_clock.c".to_string(), SCHED_CLOCK.to_string())]);
    let what = "no space left on device".to_string();
    for stopped in [Stopped::BuildFailed { what }, Stopped::Interrupted { signal: 2 }] {
        let mut fails = Fails(stopped.clone().into());
        let result = advise(&case.usage, &case.types, &sources, &Options::default(), &mut fails);
        assert_eq!(result, Err(AdviseError::Stopped(stopped)));
    }
}

#[test]
fn a_wide_variable_is_left_where_it_is() {
    let mut case = sched_clock();
    let int = integer(&mut case.types, "int", 4);
    let table =
        push(&mut case.types, "", Some(4096), TypeKind::Array { element: int, counts: vec![Some(1024)] });
    let variable = VariableRef { name: "table".to_string(), address: 0x8000, size_bytes: 4096 };
    let touched = ByteUse { offset: 0, size_bytes: 4, loads: 100, stores: 0 };
    case.usage.variables[0].patterns[0].variables.push((variable.clone(), vec![touched]));
    case.usage.variable_types.push(TypedVariable { variable, ty: table });
    let sources = Sources::new([("sched_clock.c".to_string(), SCHED_CLOCK.to_string())]);
    let advice = advise(
        &case.usage,
        &case.types,
        &sources,
        &Options::default(),
        &mut lineup_advise::judge::NoCompiler,
    )
    .expect("nothing but candidates fails");
    assert_eq!(advice.refusals[0].constraints[0].constraint, Constraint::TooLarge);
    assert_eq!(advice.gathers.len(), 1);
}
