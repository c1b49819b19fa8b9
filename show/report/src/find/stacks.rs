//! Stalls as boxes from the outside in: data by type, member and function, code by function. Heights are shares.

use crate::html::name;
use crate::visible::shortened;
use lineup_find::Stack;
use lineup_model::figure::{share, whole};
use maud::{Markup, html};

/// Boxes of less than this share of all stalls are put together.
const LEAST: f64 = 0.003;
/// Boxes with less than this share have no room for a name.
const LEAST_NAMED: f64 = 0.012;
/// Longest name in a box; the whole one is in its title.
const CHARACTERS: usize = 60;

/// A node's stalls, and its parts.
#[derive(Default)]
pub(super) struct Node {
    name: String,
    cycles: u64,
    inner: Vec<Node>,
}

impl Node {
    /// All stacks as one tree, most stalls first.
    pub(super) fn of(stacks: &[Stack]) -> Node {
        let mut root = Node::default();
        for stack in stacks {
            root.add(&stack.frames, stack.cycles);
        }
        root.sort();
        root
    }

    fn add(&mut self, frames: &[String], cycles: u64) {
        self.cycles += cycles;
        let Some((first, rest)) = frames.split_first() else { return };
        let place = self.inner.iter().position(|node| node.name == *first);
        let place = place.unwrap_or_else(|| {
            self.inner.push(Node { name: first.clone(), ..Node::default() });
            self.inner.len() - 1
        });
        self.inner[place].add(rest, cycles);
    }

    fn sort(&mut self) {
        self.inner
            .sort_by(|one, other| other.cycles.cmp(&one.cycles).then_with(|| one.name.cmp(&other.name)));
        self.inner.iter_mut().for_each(Node::sort);
    }

    /// The part of this name.
    pub(super) fn inner(&self, name: &str) -> Option<&Node> {
        self.inner.iter().find(|node| node.name == name)
    }

    /// The largest parts with their shares in `all`, and how many there are beyond.
    pub(super) fn largest(&self, most: usize, all: u64) -> (Vec<(&str, f64)>, usize) {
        let parts = self.inner.iter().map(|node| (node.name.as_str(), part(node.cycles, all)));
        (parts.take(most).collect(), self.inner.len().saturating_sub(most))
    }
}

fn part(cycles: u64, all: u64) -> f64 {
    cycles as f64 / all.max(1) as f64
}

/// The boxes. `anchor` is the place of the details on data with stalls, by its name.
pub(super) fn boxes(root: &Node, anchor: &impl Fn(&str) -> Option<String>) -> Markup {
    html! {
        div.stacks role="group" aria-label="Stalls by what they are of: height is share" {
            @for node in &root.inner { (one(node, "", root.cycles, 0, anchor)) }
        }
    }
}

fn one(node: &Node, outer: &str, all: u64, depth: usize, anchor: &impl Fn(&str) -> Option<String>) -> Markup {
    let own = part(node.cycles, all);
    let is_code = outer.starts_with("code") || (depth == 0 && node.name == "code");
    let path = if outer.is_empty() { node.name.clone() } else { format!("{outer} › {}", node.name) };
    let title = format!("{}: {} of stalls, {} cycles", shortened(&path, 300), share(own), whole(node.cycles));
    let (shown, hidden): (Vec<&Node>, Vec<&Node>) =
        node.inner.iter().partition(|inner| part(inner.cycles, all) >= LEAST);
    let hidden_cycles: u64 = hidden.iter().map(|inner| inner.cycles).sum();
    let target = (depth == 1 && !is_code).then(|| anchor(&node.name)).flatten();
    let leaf = if node.inner.is_empty() { " leaf" } else { "" };
    let class = format!("box d{depth}{}{leaf}", if is_code { " code" } else { "" });
    html! {
        div class=(class) style=(format!("flex:{} 0 0px", node.cycles)) {
            @if let Some(target) = &target {
                a.label href=(format!("#{target}")) title=(title) { (label(node, own)) }
            } @else {
                div.label title=(title) { (label(node, own)) }
            }
            @if !node.inner.is_empty() {
                div.inner {
                    @for inner in &shown { (one(inner, &path, all, depth + 1, anchor)) }
                    @if hidden_cycles > 0 {
                        div.box.rest style=(format!("flex:{hidden_cycles} 0 0px")) {
                            div.label title=(format!("{} smaller ones: {} of stalls", hidden.len(), share(part(hidden_cycles, all)))) {
                                @if part(hidden_cycles, all) >= LEAST_NAMED { (hidden.len()) " smaller" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn label(node: &Node, own: f64) -> Markup {
    html! {
        @if own >= LEAST_NAMED { b { (share(own)) } " " (name(&shortened(&node.name, CHARACTERS))) }
        @else { span.unseen { (shortened(&node.name, CHARACTERS)) ", " (share(own)) } }
    }
}
