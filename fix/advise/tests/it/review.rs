//! The objections of reviewers: headers in the style of a kernel's, each with the move that a reviewer rejects.

use crate::pahole::{integer, member, push, structure};
use lineup_advise::advise;
use lineup_advise::constraint::Constraint;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::{Advice, OrderProposal};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{Aggregate, AggregateKind, Member, TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::{BTreeMap, BTreeSet};

/// Types of members by their spelling: bytes, alignment, and the struct behind a typedef.
const KNOWN: [(&str, u64, u64, &str); 14] = [
    ("long", 8, 8, ""),
    ("int", 4, 4, ""),
    ("char", 1, 1, ""),
    ("spinlock_t", 4, 4, "spinlock"),
    ("raw_spinlock_t", 4, 4, "raw_spinlock"),
    ("struct mutex", 32, 8, ""),
    ("struct rw_semaphore", 40, 8, ""),
    ("struct lockref", 8, 8, ""),
    ("refcount_t", 4, 4, "refcount_struct"),
    ("atomic_t", 4, 4, "atomic"),
    ("struct list_head", 16, 8, ""),
    ("struct kobject", 64, 8, ""),
    ("struct inner", 64, 8, ""),
    ("cpumask_t", 64, 8, "cpumask"),
];

/// A header with `struct rec`, read line by line: a type, a name, and a count in brackets.
struct Header {
    text: String,
    types: Types,
    members: Vec<Member>,
    places: BTreeMap<String, (u64, u64)>,
    bytes: u64,
}

impl Header {
    fn new(text: &str) -> Header {
        let mut header = Header {
            text: text.to_owned(),
            types: Types::new(),
            members: Vec::new(),
            places: BTreeMap::new(),
            bytes: 0,
        };
        let body =
            text.split("struct rec {\n").nth(1).expect("the struct").split("\n};").next().expect("a body");
        for line in body.lines() {
            header.read(line);
        }
        header.bytes = header.bytes.next_multiple_of(8);
        header
    }

    fn read(&mut self, line: &str) {
        let code = line.split("/*").next().unwrap_or_default().trim();
        let Some(code) = code.strip_suffix(';').filter(|code| !code.starts_with('#')) else { return };
        let (code, count) = match code.split_once('[') {
            Some((code, rest)) => (code, Some(rest.trim_end_matches(']').parse().unwrap_or(8))),
            None => (code, None),
        };
        let at = code.rfind([' ', '\t', '*']).expect("a type and a name") + 1;
        let (ty, name) = (code[..at].trim(), &code[at..]);
        let (id, size, align) = self.type_of(ty);
        let (id, size) = match count {
            Some(count) => {
                let array = TypeKind::Array { element: id, counts: vec![Some(count)] };
                (push(&mut self.types, "", None, array), size * count)
            }
            None => (id, size),
        };
        let offset = self.bytes.next_multiple_of(align);
        self.members.push(member(name, id, 8 * offset));
        self.places.insert(name.to_owned(), (offset, size.min(64)));
        self.bytes = offset + size;
    }

    fn type_of(&mut self, spelled: &str) -> (TypeId, u64, u64) {
        if spelled.ends_with('*') {
            return (push(&mut self.types, "", Some(8), TypeKind::Pointer(None)), 8, 8);
        }
        let known = KNOWN.iter().find(|(name, ..)| *name == spelled);
        let &(name, size, align, behind) = known.unwrap_or_else(|| panic!("{spelled}"));
        let scalar = |types: &mut Types, bytes| match bytes {
            8 => integer(types, "long", 8),
            4 => integer(types, "int", 4),
            _ => integer(types, "char", 1),
        };
        let of_struct = |types: &mut Types, name: &str| {
            let word = scalar(types, align);
            let members = (0..size / align).map(|at| member(&format!("m{at}"), word, 8 * at * align));
            structure(types, name, size, members.collect())
        };
        let id = match (name.strip_prefix("struct "), behind) {
            (Some(name), _) => of_struct(&mut self.types, name),
            (None, "") => scalar(&mut self.types, size),
            (None, behind) => {
                let target = of_struct(&mut self.types, behind);
                push(&mut self.types, name, None, TypeKind::Typedef(Some(target)))
            }
        };
        (id, size, align)
    }

    fn bytes_of(&self, names: &[&str], (loads, stores): (u64, u64)) -> Vec<ByteUse> {
        let bytes = |name: &&str| {
            let &(offset, size_bytes) = self.places.get(*name).unwrap_or_else(|| panic!("{name}"));
            ByteUse { offset, size_bytes, loads, stores }
        };
        names.iter().map(bytes).collect()
    }

    /// Advice when every call of one region reads and writes these members, and one of another writes others.
    fn advise(mut self, read: &[&str], written: &[&str], elsewhere: &[&str], most: Option<usize>) -> Advice {
        let mut bytes = self.bytes_of(read, (1, 0));
        bytes.extend(self.bytes_of(written, (1, 1)));
        bytes.sort_by_key(|bytes| bytes.offset);
        let others = self.bytes_of(elsewhere, (0, 1));
        let aggregate = Aggregate {
            kind: AggregateKind::Struct,
            members: self.members,
            static_members: Vec::new(),
            is_declaration: false,
        };
        let ty = push(&mut self.types, "rec", Some(self.bytes), TypeKind::Aggregate(aggregate));
        let used = |region, bytes| TypeUse {
            region: RegionId(region),
            ty,
            calls: 10,
            patterns: vec![ObjectPattern::alone(0, bytes, 10)],
            used_as: BTreeSet::new(),
        };
        let mut all = vec![used(0, bytes)];
        all.extend((!others.is_empty()).then(|| used(1, others)));
        let usage = Usage {
            regions: Regions::from_iter([Region::named("hot"), Region::named("exit")]),
            types: all,
            ..Usage::empty(Abi::X86_64)
        };
        let options = Options { most_moved: most, ..Options::default() };
        let sources = Sources::new([("rec.h".to_owned(), self.text.clone())]);
        let advice = advise(&usage, &self.types, &sources, &options, &mut NoCompiler).expect("advice");
        for order in &advice.orders {
            keeps_lines(&self.text, order);
        }
        advice
    }

    /// The members that a patch of few moves moves; none without one.
    fn moved(self, read: &[&str]) -> Vec<String> {
        self.advise(read, &[], &[], Some(3)).orders.pop().map(|order| order.moved).unwrap_or_default()
    }
}

/// No line is spelled anew: a patch moves lines, and aligns no blanks. Those of members that stay keep their order.
fn keeps_lines(before: &str, order: &OrderProposal) {
    let after = &order.edited["rec.h"];
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
    };
    let is_moved = |line: &String| {
        let code = line.split("/*").next().unwrap_or_default();
        let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        order.moved.iter().any(|name| words.contains(&name.as_str()))
    };
    let (mut old, mut new) = (lines(before), lines(after));
    let is_code = |line: &String| line.contains(';') && !is_moved(line);
    let staying = |lines: &[String]| lines.iter().filter(|line| is_code(line)).cloned().collect::<Vec<_>>();
    assert_eq!(staying(&old), staying(&new), "lines of members that are not named as moved stay");
    old.sort();
    new.sort();
    assert_eq!(old, new, "no line is spelled anew");
}

fn held(advice: &Advice, constraint: Constraint) -> bool {
    let obeyed = advice.orders.iter().flat_map(|order| &order.obeyed);
    let refused = advice.refusals.iter().flat_map(|refusal| &refusal.constraints);
    obeyed.chain(refused).any(|binding| binding.constraint == constraint)
}

/// A member that every call uses, two lines before another: one move brings them together.
fn two_apart(between: &str, last: &str) -> String {
    format!(
        "struct rec {{\n\tlong cold[8];\n\tlong hot;\n\tlong warm;\n\tlong filler[14];\n{between}{last}\tlong more[31];\n}};\n"
    )
}

#[test]
fn a_lock_stays_where_it_is() {
    let locks = ["spinlock_t", "raw_spinlock_t", "struct mutex", "struct rw_semaphore", "struct lockref"];
    for lock in locks {
        for comment in ["", "\t/* Protection against (de-)allocation: mm, files: */\n"] {
            let text = two_apart(comment, &format!("\t{lock} alloc_lock;\n\tint unused;\n"));
            let moved = Header::new(&text).moved(&["hot", "warm", "alloc_lock"]);
            assert!(!moved.contains(&"alloc_lock".to_owned()), "{lock}: {moved:?}");
            let plain = text.replace(lock, "long").replace("alloc_lock", "mm_id");
            let moved = Header::new(&plain).moved(&["hot", "warm", "mm_id"]);
            assert!(moved == ["mm_id"] || !comment.is_empty(), "nothing else holds it: {moved:?}");
        }
    }
}

#[test]
fn data_of_a_lock_stay_near_it() {
    for (lock, data) in [
        // By their names.
        (
            "\traw_spinlock_t pi_lock;\n\tint unused;\n\tlong between;\n\tlong other;\n",
            "\tlong pi_waiters;\n",
        ),
        // By a comment of the lock's, and by one of the data's.
        ("\t/* Protects waiters. */\n\traw_spinlock_t q_lock;\n\tint unused;\n\n", "\tlong waiters;\n"),
        ("\tstruct mutex table_lock;\n\tlong between;\n", "\tlong waiters;\t/* protected by table_lock */\n"),
        // By their place below it.
        ("\n\tspinlock_t guard;\n\tint unused;\n", "\tlong waiters;\n\n"),
    ] {
        let text = two_apart(lock, data);
        let name = if data.contains("pi_") { "pi_waiters" } else { "waiters" };
        let advice = Header::new(&text).advise(&["hot", "warm", name], &[], &[], Some(3));
        let moved = advice.orders.first().map(|order| order.moved.clone()).unwrap_or_default();
        assert!(!moved.contains(&name.to_owned()), "{text}{moved:?}");
        let free = lock
            .replace("pi_lock", "xx_lock")
            .replace("Protects waiters", "Taken often")
            .replace("guard;", "guard;\n");
        let (free, data) = (free, data.replace("protected by table_lock", "of the table"));
        let free = free.replace("struct mutex table_lock", "long table[4]");
        if !lock.contains("/*") {
            let moved = Header::new(&two_apart(&free, &data)).moved(&["hot", "warm", name]);
            assert_eq!(moved, [name], "{free}{data}");
        }
    }
}

/// Members from elsewhere may move to the lock, and others may pass it.
#[test]
fn others_pass_a_lock() {
    let text = two_apart(
        "\n\tspinlock_t guard;\n\tint unused;\n\tlong of_guard;\n\n\tlong a[2];\n\n",
        "\tlong late;\n",
    );
    let moved = Header::new(&text).moved(&["hot", "warm", "late"]);
    assert_eq!(moved, ["late"]);
}

#[test]
fn pairs_are_not_parted() {
    for (one, other) in [
        ("mm", "active_mm"),
        ("readers", "writers"),
        ("r_counter", "w_counter"),
        ("rx_bytes", "tx_bytes"),
        ("utime", "stime"),
    ] {
        let text = two_apart(
            "",
            &format!("\tlong {one};\n\tlong {other};\n\tlong third;\n\tlong fourth;\n\tlong fifth;\n"),
        );
        let moved = Header::new(&text).moved(&["hot", "warm", one]);
        assert_eq!(moved, [one, other]);
        let moved = Header::new(&text).moved(&["hot", "warm", other]);
        assert_eq!(moved, [one, other]);
    }
}

/// As `kmem_cache`: code reaches the pointer without an offset; also where only its text says what it is.
#[test]
fn a_pointer_that_every_call_reads_first_stays_first() {
    let text = |first: &str| {
        format!(
            "struct rec {{\n\t{first};\n\tlong cold[16];\n\tlong size;\n\tlong offset;\n\tlong more[14];\n\tlong rest[15];\n}};\n"
        )
    };
    for first in ["struct cpu_slab *cpu_slab", "void __percpu *cpu_slab", "void *cpu_slab"] {
        let moved = Header::new(&text(first)).moved(&["cpu_slab", "size", "offset"]);
        assert!(!moved.contains(&"cpu_slab".to_owned()) && !moved.is_empty(), "{first}: {moved:?}");
    }
    let cold = Header::new(&text("void __percpu *cpu_slab")).advise(&["size", "offset"], &[], &[], Some(3));
    assert!(cold.orders.iter().all(|order| order.new_order[0] == "cpu_slab"));
    // A number that calls write may leave.
    let state = Header::new(&text("long state")).advise(&["size", "offset"], &["state"], &[], Some(1));
    assert_eq!(state.orders[0].moved, ["state"]);
}

/// A comment above the first of several members concerns them all, also where the next comment follows at once.
#[test]
fn members_stay_under_their_comment() {
    for next in ["", "\t/* For the next one */\n\tlong own;\n"] {
        let group = format!("\n\t/* Hash table linkage */\n\tvoid *pid;\n\tlong links[3];\n{next}\n");
        let text = two_apart(&group, "\tlong last;\n");
        for hot in ["pid", "links"] {
            let moved = Header::new(&text).moved(&["hot", "warm", hot]);
            assert!(!moved.contains(&hot.to_owned()), "{next}: {moved:?}");
        }
        // Nothing comes between them either, and others pass the group.
        let advice = Header::new(&text).advise(&["hot", "warm", "last"], &[], &[], Some(1));
        let order = &advice.orders[0];
        assert_eq!(order.moved, ["last"]);
        let at = order.new_order.iter().position(|name| name == "pid").expect("a member");
        assert_eq!(order.new_order[at + 1], "links");
    }
}

/// A member that comes behind a group stands apart from it, not below its comment.
#[test]
fn what_comes_behind_a_group_stands_apart() {
    let text = "struct rec {\n\tlong cold[5];\n\n\t/* Both of them */\n\tint one;\n\tlong other;\n\n\tlong filler[15];\n\tlong late;\n\tlong more[31];\n};\n";
    let advice = Header::new(text).advise(&["one", "other", "late"], &[], &[], Some(1));
    let Some(order) = advice.orders.first() else { return };
    let after = &order.edited["rec.h"];
    assert!(!after.contains("\tlong other;\n\tlong late;"), "{after}");
}

/// As `css_set`: fork and exit change the count and the list, whether they were recorded or not.
#[test]
fn what_is_only_read_does_not_come_beside_what_fork_and_exit_write() {
    let moved = |changing: &str, elsewhere: &[&str]| {
        let text = format!(
            "struct rec {{\n\tlong cold[2];\n\t{changing};\n\tlong hot;\n\tlong warm;\n\tlong third;\n\tlong filler[15];\n\tlong subsys;\n\tlong more[31];\n}};\n"
        );
        let advice = Header::new(&text).advise(&["hot", "warm", "third", "subsys"], &[], elsewhere, Some(1));
        advice.orders.first().map(|order| order.moved.clone()).unwrap_or_default()
    };
    for changing in [
        "refcount_t refs;\n\tint unused",
        "atomic_t refs;\n\tint unused",
        "struct list_head tasks",
        "long nr_tasks",
        "spinlock_t m_lock;\n\tint unused",
    ] {
        assert_eq!(moved(changing, &[]), [""; 0], "{changing}");
    }
    // So does a number that another region writes; one that nobody writes does not count.
    assert_eq!(moved("long stamp", &[]), ["subsys"]);
    assert_eq!(moved("long stamp", &["stamp"]), [""; 0]);
}

/// As `kmem_cache` with its `kobj`: without the option the members behind it lie on other lines.
#[test]
fn used_members_do_not_come_behind_what_a_configuration_leaves_out() {
    let text = |middle: &str, declared: &str| {
        format!(
            "{declared}struct rec {{\n\tlong size;\n\tlong cold[16];\n{middle}\tlong offset;\n\tlong other;\n\tlong more[30];\n}};\n"
        )
    };
    let plain = "struct kobject { long m; };\nstruct inner { long m; };\n";
    let hidden =
        "struct kobject {\n#ifdef CONFIG_UEVENTS\n\tlong m;\n#endif\n};\nstruct inner { long m; };\n";
    let debugged =
        "struct kobject {\n#ifdef CONFIG_DEBUG_KOBJECT\n\tlong m;\n#endif\n};\nstruct inner { long m; };\n";
    for (middle, declared, holds) in [
        ("#ifdef CONFIG_SYSFS\n\tstruct kobject kobj;\n#endif\n", plain, true),
        ("#if defined(CONFIG_SYSFS) && defined(CONFIG_NUMA)\n\tstruct kobject kobj;\n#endif\n", plain, true),
        ("\tstruct kobject kobj;\n", hidden, true),
        ("\tlong nodes[MAX_NUMNODES];\n", plain, true),
        ("\tcpumask_t allowed;\n", plain, true),
        ("\tstruct kobject kobj;\n", plain, false),
        ("\tstruct kobject kobj;\n", debugged, false),
        ("#ifdef CONFIG_LOCKDEP\n\tstruct kobject kobj;\n#endif\n", plain, false),
    ] {
        let advice =
            Header::new(&text(middle, declared)).advise(&["size", "offset", "other"], &[], &[], Some(1));
        let moved = advice.orders.first().map(|order| order.moved.clone()).unwrap_or_default();
        assert_eq!(moved != ["size"], holds, "{middle}{declared}: {moved:?}");
        assert_eq!(held(&advice, Constraint::Configuration), holds, "{middle}: {:?}", advice.refusals);
    }
}

/// Many members that move as one are no small patch.
#[test]
fn a_small_patch_moves_few_members() {
    let names = |count: usize| (0..count).map(|at| format!("\tchar b_set{at};\n")).collect::<String>();
    for (count, is_small) in [(8, true), (16, false)] {
        let text = two_apart(&names(count), "\tlong x;\n");
        let hot: Vec<String> = (0..count).map(|at| format!("b_set{at}")).collect();
        let mut read = vec!["hot", "warm"];
        read.extend(hot.iter().map(String::as_str));
        let advice = Header::new(&text).advise(&read, &[], &[], Some(1));
        let moved = advice.orders.first().map_or(0, |order| order.moved.len());
        assert!(moved <= 10, "{moved}");
        assert!(!is_small || moved > 0);
    }
}

/// Three moves save nearly everything: the report says what the others would.
#[test]
fn the_gain_of_further_moves_is_said() {
    let line = |(name, number): (&String, u32)| format!("\tlong {name};\n\tlong pad{number}[7];\n");
    let all: Vec<String> = ["ab", "cd", "ef", "gh", "ij", "kl"].map(str::to_owned).into();
    let body: String = all.iter().zip(0..).map(line).collect();
    let text = format!("struct rec {{\n{body}}};\n");
    let read: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut advice = Header::new(&text).advise(&read, &[], &[], Some(2));
    let order = advice.orders.pop().expect("an order");
    assert_eq!(order.moved.len(), 2);
    let further = order.further.expect("more to gain");
    assert_eq!((further.moves, further.region.as_str(), further.lines_per_call), (3, "hot", 3.0));
    let summary = &advice.descriptions[0].summary;
    assert!(summary.contains("3 more moves would gain another 3 lines per call of hot"), "{summary}");
    let whole = Header::new(&text).advise(&read, &[], &[], None);
    assert_eq!(whole.orders[0].further, None);
}
