//! Prefetches in loops that chase pointers: the edit expected, and programs that do the same before and after it under
//! the sanitisers.

use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::judge::NoCompiler;
use lineup_advise::kind::Task;
use lineup_advise::meaning::{Effect, Hold, Meaning, TypeMeaning, Unchecked};
use lineup_advise::options::{Options, WantedPrefetch};
use lineup_advise::prefetch::Prefetches;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::chase::Chase;
use lineup_model::types::Types;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The loops of these functions, as libclang reads them.
fn chases(file: &str, text: &str, functions: &[&str]) -> Vec<Chase> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(file), text).expect("writes");
    let call = if file.ends_with(".c") { ["cc", "-std=gnu17"] } else { ["c++", "-std=c++17"] };
    let arguments = call.into_iter().chain(["-c", file]).map(str::to_owned).collect();
    let build = lineup_sources::Build {
        commands: vec![lineup_sources::CompileCommand { directory: folder.path().to_owned(), arguments }],
        root: folder.path().to_owned(),
        installed_headers: BTreeSet::new(),
        compiler_headers: None,
        standards: lineup_sources::Standards::default(),
        in_program: BTreeSet::new(),
    };
    let names = functions.iter().map(|name| (*name).to_owned()).collect();
    let read = lineup_sources::chases(&build, &names).expect("libclang reads it");
    assert!(read.unread.is_empty(), "{:?}", read.unread);
    read.found
}

/// The advice with a prefetch in every loop, eight turns ahead.
fn advised(file: &str, text: &str, meaning: Meaning) -> Advice {
    let wanted = |chase| WantedPrefetch { chase, turns: Some(8) };
    let options = Options {
        prefetches: (0..meaning.chases.len()).map(wanted).collect(),
        meaning,
        ..Options::default()
    };
    let (usage, types) = (Usage::empty(Abi::X86_64), Types::default());
    let sources = Sources::new([(file.to_owned(), text.to_owned())]);
    let task =
        Task { usage: &usage, types: &types, sources: &sources, options: &options, judge: &mut NoCompiler };
    lineup_advise::advise_with(&[&Prefetches], task).expect("advice")
}

/// The output of a program under the sanitisers of addresses and undefined behaviour.
fn output(file: &str, text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(file), text).expect("writes");
    let compiler = if file.ends_with(".c") { ["cc", "-std=gnu17"] } else { ["c++", "-std=c++17"] };
    let built = Command::new(compiler[0])
        .args([compiler[1], "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GLIBCXX_ASSERTIONS"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o", "program", file])
        .current_dir(folder.path())
        .output()
        .expect("a compiler");
    assert!(built.status.success(), "{}\n{text}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(folder.path().join("program")).output().expect("runs");
    assert!(ran.status.success(), "{}\n{text}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// The text with every prefetch; both programs print the same.
fn edited(file: &str, text: &str, functions: &[&str]) -> String {
    let meaning =
        Meaning { chases: chases(file, text, functions), is_of_all_units: true, ..Meaning::default() };
    let advice = advised(file, text, meaning);
    let new = advice.edited[file].clone();
    assert_eq!(output(file, text), output(file, &new), "{new}");
    new
}

const C: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	long key;
	struct node *next;
	char text[160];
	long weight;
};

struct tree {
	long key;
	struct tree *left, *right;
};

static long lookup(struct node *const *table, long size, long key)
{
	for (struct node *p = table[key % size]; p; p = p->next) {
		if (p->key == key)
			return (long)strlen(p->text);
	}
	return 0;
}

static long list(const struct node *p)
{
	long sum = 0;
	for (; p; p = p->next)
		sum = sum % 9973 * 3 + p->key;
	return sum;
}

static void end(struct node *p)
{
	struct node *next;
	for (; p; p = next) {
		next = p->next;
		free(p);
	}
}

static long weights(struct node **all, size_t count)
{
	long sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += all[i]->weight;
	return sum;
}

static long indirect(const long *values, const int *order, int count)
{
	long sum = 0;
	int i;
	for (i = 0; i < count; ++i) {
		int at = order[i];
		/* The order matters. */
		sum = sum % 9973 * 3 + values[at];
	}
	return sum;
}

static long depth_first(struct tree *root)
{
	struct tree *stack[64];
	int n = 0;
	long sum = 0;
	stack[n++] = root;
	while (n > 0) {
		struct tree *at = stack[--n];
		sum = sum % 9973 * 3 + at->key;
		if (at->left) stack[n++] = at->left;
		if (at->right)
			stack[n++] = at->right;
	}
	return sum;
}

static struct tree *grow(long from, long to)
{
	if (from >= to)
		return NULL;
	struct tree *one = malloc(sizeof *one);
	one->key = (from + to) / 2;
	one->left = grow(from, one->key);
	one->right = grow(one->key + 1, to);
	return one;
}

static void fell(struct tree *one)
{
	if (one) {
		fell(one->left);
		fell(one->right);
		free(one);
	}
}

int main(void)
{
	struct node *first = NULL, *all[100], *table[7] = { NULL };
	long values[100];
	int order[100];
	for (int i = 0; i < 100; i++) {
		struct node *one = calloc(1, sizeof *one);
		one->key = i;
		one->weight = 7 * i;
		snprintf(one->text, sizeof one->text, "node %d", i);
		one->next = first;
		first = one;
		all[i] = one;
		values[i] = i * i;
		order[i] = i * 37 % 100;
	}
	long sum = list(first) + weights(all, 100) + indirect(values, order, 100) + weights(all, 0);
	struct tree *root = grow(0, 50);
	printf("%ld %ld\n", sum, depth_first(root));
	fell(root);
	end(first);
	for (int i = 0; i < 20; i++) {
		struct node *one = calloc(1, sizeof *one);
		one->key = i;
		snprintf(one->text, sizeof one->text, "%d", i);
		one->next = table[i % 7];
		table[i % 7] = one;
	}
	printf("%ld %ld\n", lookup(table, 7, 13), lookup(table, 7, 70));
	for (int i = 0; i < 7; i++)
		end(table[i]);
	return 0;
}
"#;

#[test]
fn every_form_of_c_gets_its_edit_in_the_style_of_the_file() {
    let functions = ["lookup", "list", "end", "weights", "indirect", "depth_first"];
    let text = edited("a.c", C, &functions);
    for expected in [
        "p; p = p->next) {\n\t\t__builtin_prefetch(p->next);\n\t\tif (p->key == key)\n",
        "\tfor (; p; p = p->next) {\n\t\t__builtin_prefetch(p->next);\n\t\tsum = sum % 9973 * 3 + p->key;\n\t}\n",
        "\t\tnext = p->next;\n\t\t__builtin_prefetch(next);\n\t\tfree(p);\n",
        "\tfor (size_t i = 0; i < count; i++) {\n\t\tif (count - i > 8 && all[i + 8])\n\
         \t\t\t__builtin_prefetch(&all[i + 8]->weight);\n\t\tsum += all[i]->weight;\n\t}\n",
        "++i) {\n\t\tif (i < count - 8)\n\t\t\t__builtin_prefetch(&values[order[i + 8]]);\n\t\tint at = order[i];\n",
        "\t\tif (at->left) {\n\t\t\t__builtin_prefetch(at->left);\n\t\t\tstack[n++] = at->left;\n\t\t}\n",
        "\t\tif (at->right) {\n\t\t\t__builtin_prefetch(at->right);\n\t\t\tstack[n++] = at->right;\n\t\t}\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // Nothing else is changed.
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("prefetch")).collect();
    assert!(C.lines().filter(|line| line.contains("->")).all(|line| {
        let bare = line.trim();
        without.iter().any(|other| bare.ends_with(other.trim()) || other.contains(bare))
    }));
}

const CPP: &str = r#"#include <cstddef>
#include <cstdio>
#include <deque>
#include <memory>
#include <vector>

namespace graph {

struct Node {
    long key = 0;
    char cold[100] = {};
    long score = 0;
    Node *next = nullptr;
    std::vector<Node *> kids;
};

class Walker {
  public:
    explicit Walker(std::vector<int> order) : order_(std::move(order)) {}

    long scores(const std::vector<Node> &all) const
    {
        long sum = 0;
        for (std::size_t i = 0; i < order_.size(); ++i) {
            sum = sum % 9973 * 3 + all[order_[i]].score;
        }
        return sum;
    }

  private:
    std::vector<int> order_;
};

long list(const Node *from)
{
    long sum = 0;
    for (const Node *at = from; at != nullptr; at = at->next)
    {
        sum = sum % 9973 * 3 + at->key;
    }
    return sum;
}

long breadth_first(Node *root)
{
    std::deque<Node *> waiting{root};
    long sum = 0;
    while (!waiting.empty())
    {
        Node *at = waiting.front();
        waiting.pop_front();
        sum = sum % 9973 * 3 + at->key;
        for (Node *kid : at->kids)
            if (kid)
                waiting.push_back(kid);
    }
    return sum;
}

} // namespace graph

int main()
{
    std::vector<graph::Node> all(60);
    std::vector<int> order;
    for (int i = 0; i < 60; i++) {
        all[i].key = i;
        all[i].score = 5 * i;
        all[i].next = i ? &all[i - 1] : nullptr;
        order.push_back(i * 7 % 60);
        if (i)
            all[(i - 1) / 2].kids.push_back(&all[i]);
    }
    graph::Walker walker(order);
    std::printf("%ld %ld %ld\n", walker.scores(all), graph::list(&all[59]), graph::breadth_first(&all[0]));
}
"#;

#[test]
fn every_form_of_cpp_gets_its_edit_in_the_style_of_the_file() {
    let text = edited("a.cc", CPP, &["graph::Walker::scores", "list", "breadth_first"]);
    for expected in [
        "++i) {\n            if (order_.size() - i > 8)\n                \
         __builtin_prefetch(&all[order_[i + 8]].score);\n            sum = sum % 9973 * 3 + all",
        "at = at->next)\n    {\n        __builtin_prefetch(at->next);\n        sum",
        "__builtin_prefetch(kid);\n                waiting.push_back(kid);",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn an_early_exit_needs_objects_that_are_as_large_as_their_type() {
    let chases = chases("a.c", C, &["lookup"]);
    assert!(chases.iter().any(|chase| chase.ahead.as_ref().is_ok_and(|ahead| ahead.needs_whole_object)));
    let hold = |constraint| TypeMeaning {
        names: vec!["node".into()],
        path: "a.c".into(),
        holds: vec![Hold { binding: Binding::new(constraint).at("a.c", 3), effect: Effect::Forbid }],
    };
    let known = Meaning { chases, is_of_all_units: true, ..Meaning::default() };
    assert_eq!(advised("a.c", C, known.clone()).prefetches.len(), 1);
    let cast = Meaning { types: vec![hold(Constraint::UsedAsOtherType)], ..known.clone() };
    let volatile = Meaning { types: vec![hold(Constraint::Volatile)], ..known.clone() };
    let partly = Meaning { is_of_all_units: false, ..known.clone() };
    let unread = Unchecked { why: "no clang".into(), known: BTreeSet::new() };
    let unchecked = Meaning { unchecked: Some(unread), ..known };
    assert_eq!(advised("a.c", C, volatile).prefetches.len(), 1, "bytes of it still belong to the object");
    for meaning in [cast, partly, unchecked] {
        let advice = advised("a.c", C, meaning);
        assert!(advice.prefetches.is_empty() && advice.edited.is_empty());
        let words = advice.refusals[0].constraints[0].to_string();
        assert!(words.contains("may be the beginning of one"), "{words}");
    }
}

#[test]
fn a_file_that_was_changed_since_it_was_read_is_not_edited() {
    let meaning =
        Meaning { chases: chases("a.c", C, &["list"]), is_of_all_units: true, ..Meaning::default() };
    let advice = advised("a.c", &format!("\n{C}"), meaning);
    assert_eq!(advice.edited, BTreeMap::new());
    assert_eq!(advice.refusals[0].constraints[0].constraint, Constraint::UnclearSource);
}

#[test]
fn two_prefetches_do_not_put_braces_around_one_statement() {
    let text = "struct n { long key; struct n *next; };\nlong walk(struct n *p, long *x, int *b, int n)\n{\n\tlong sum = 0;\n\
                \tfor (int i = 0; i < n; i++)\n\t\tsum += x[b[i]] + x[b[i] & 1];\n\treturn sum + p->key;\n}\n";
    let meaning =
        Meaning { chases: chases("a.c", text, &["walk"]), is_of_all_units: true, ..Meaning::default() };
    assert_eq!(meaning.chases.iter().filter(|chase| chase.ahead.is_ok()).count(), 2);
    let advice = advised("a.c", text, meaning);
    assert_eq!(advice.prefetches[0].places.len(), 1);
    assert_eq!(advice.edited["a.c"].matches("__builtin_prefetch").count(), 1);
    assert!(advice.refusals[0].constraints[0].to_string().contains("around the same statement"));
}
