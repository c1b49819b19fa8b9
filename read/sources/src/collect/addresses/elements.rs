//! Elements of arrays whose type a pointer to bytes does not show: some sizes of a record behind the first.

use crate::collect::Collector;
use crate::facts::{Origin, PointerPlace, Reach, Step, StepSize, Value};
use crate::tree::{Kind, Name, NodeId, Operator};

/// The summands of a distance.
#[derive(Default)]
struct Summands {
    /// A number times a size: the records, or the numbers that may be the size.
    sizes: Vec<StepSize>,
    has_number: bool,
    /// Variables, calls and the like.
    others: Vec<NodeId>,
}

impl Collector<'_> {
    /// `base + i * sizeof(struct t) + 8`, `base + i * stride`: where the objects lie that such a sum leads to.
    pub(in crate::collect) fn elements(
        &mut self,
        values: &[Value],
        (pointer, index): (NodeId, NodeId),
        at: NodeId,
    ) -> Vec<Value> {
        let tree = self.tree;
        if self.is_kernel || self.is_moved_back(index, at) {
            return Vec::new();
        }
        let mut summands = Summands::default();
        self.add_summands(index, &mut summands);
        let mut moved = values.to_vec();
        moved.extend(self.typed_object(tree.uncast(pointer)));
        let from = Self::objects(&moved);
        let place = self.at(at);
        let mut found = Vec::new();
        for (number, by) in summands.sizes.into_iter().enumerate() {
            let reach = if summands.has_number { Reach::Fixed } else { Reach::Start };
            let mut to = None;
            match &by {
                StepSize::Of(record) => {
                    let element = Origin::Element(record.clone());
                    found.push(Value { reach, ..Value::origin(element) });
                }
                StepSize::In(_) => {
                    let site = tree.node(at).site;
                    let file = &tree.files[site.file];
                    let name = format!("{file}:{}:{} (element {number})", site.line, site.column);
                    let element = PointerPlace::Result(name.into());
                    found.push(Value { reach, ..Value::place(element.clone()) });
                    to = Some(element);
                }
            }
            self.facts.steps.insert(Step { from: from.clone(), by, to, at: place.clone() });
        }
        for other in summands.others {
            self.note_indexed(&found, (pointer, other), at);
        }
        found
    }

    fn add_summands(&self, id: NodeId, summands: &mut Summands) {
        let tree = self.tree;
        let inner = self.initial(id);
        let node = tree.node(inner);
        let is_measured = self.is_measured(inner);
        match (node.kind, node.operator, &node.children[..]) {
            (Kind::Binary, Some(Operator::Plus), &[left, right]) => {
                self.add_summands(left, summands);
                self.add_summands(right, summands);
            }
            (Kind::Binary, Some(Operator::Times), &[left, right]) if node.value.is_none() => {
                let records = [left, right].into_iter().filter_map(|factor| self.record_measured(factor));
                let mut sizes: Vec<StepSize> = records.map(StepSize::Of).collect();
                if sizes.is_empty() {
                    let places = [left, right].map(|factor| self.number_place(tree.uncast(factor)));
                    sizes.extend(places.into_iter().flatten().map(StepSize::In));
                }
                summands.sizes.extend(sizes);
            }
            _ => match node.value {
                Some(number) => summands.has_number |= number > 0 && !is_measured,
                None if !is_measured => summands.others.push(id),
                None => {}
            },
        }
    }

    /// The record whose size an expression is, and nothing else.
    pub(in crate::collect) fn record_measured(&self, id: NodeId) -> Option<Name> {
        let tree = self.tree;
        let inner = self.initial(id);
        let node = tree.node(inner);
        let &measured = node.children.first().filter(|_| node.kind == Kind::SizeOf)?;
        let record = tree.record_of(tree.node(measured).ty).filter(|_| !self.measures_pointer(inner))?;
        self.usr(record)
    }
}
