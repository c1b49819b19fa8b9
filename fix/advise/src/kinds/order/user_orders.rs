//! Orders that the user gives, written into the sources unchanged.

use crate::constraints::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::guard::lock::Lock;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::kinds::order::member_order::{self, Plan, Verdict};
use crate::kinds::order::orders::{self, Orders};
use crate::layout::placement::Placed;
use crate::layout::spelling::spelling;
use crate::layout::subject::{Subject, member_name};
use crate::order_file::{Arrangement, WrittenOrder};
use crate::proposal::{Advice, REORDER};
use crate::search::score::Problem;
use lineup_model::types::{TypeId, Types};

/// The orders in [`crate::options::Options::orders`], and no others.
pub(crate) struct UserOrders;

impl FixKind for UserOrders {
    fn name(&self) -> KindName {
        REORDER
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        task.options.orders.iter().try_for_each(|order| propose(task, advice, order))
    }

    fn guard(&self, task: &Task<'_>, advice: &Advice, lock: &mut Lock) {
        Orders.guard(task, advice, lock);
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.orders.iter().map(orders::describe).collect()
    }
}

/// The type of this name that is more than declared.
pub fn type_named(types: &Types, name: &str) -> Option<TypeId> {
    let is_whole = |id: &TypeId| types.aggregate(*id).is_some_and(|(_, found)| !found.is_declaration);
    types.by_name().get(name)?.iter().copied().find(is_whole)
}

fn propose(task: &mut Task<'_>, advice: &mut Advice, order: &WrittenOrder) -> Result<(), AdviseError> {
    let name = &order.type_name;
    let wrong = |what: String| order.wrong(what);
    let id = type_named(task.types, name).ok_or_else(|| wrong(format!("no type {name} was recorded")))?;
    let subject = Subject::new(task.types, id, task.usage);
    let found = subject.and_then(|subject| Some((spelling(task.types, subject.id)?, subject)));
    let (spelling, subject) = found.ok_or_else(|| wrong(format!("{name} has no members")))?;
    let arrangement = order.resolve(subject.aggregate)?;
    if let Some(refusal) = task.options.refusal_of(&spelling.name) {
        advice.refusals.push(refusal);
        return Ok(());
    }
    advice.types_touched += 1;
    let (options, edited) = (task.options, &advice.edited);
    let current = task.sources.with(edited);
    let judge = &mut *task.judge;
    let verdict =
        member_order::write_given(&subject, &spelling, &current, options, judge, edited, &arrangement)?;
    match verdict {
        Verdict::Proposed(proposal)
            if proposal.edited.iter().all(|(path, text)| current.get(path) == Some(text)) =>
        {
            advice.already_good.push(spelling.name.clone());
        }
        Verdict::Proposed(mut proposal) => {
            proposal.seen_outside = options.meaning.seen_outside(&spelling.name);
            advice.edited.extend(proposal.edited.clone());
            advice.orders.push(*proposal);
        }
        Verdict::AlreadyGood(name) => advice.already_good.push(name),
        Verdict::Refused(refusal) => advice.refusals.push(refusal),
    }
    Ok(())
}

impl Plan<'_> {
    /// The units in a given order of members.
    ///
    /// # Errors
    /// The members that move as one and that the order parts, or the constraint on members that it moves.
    pub(crate) fn in_given_order(
        &self,
        subject: &Subject<'_>,
        arrangement: &Arrangement,
    ) -> Result<Vec<usize>, Binding> {
        let name = |field: &usize| member_name(subject.aggregate, *field);
        let units = &self.problem.units;
        let mut order: Vec<usize> = Vec::new();
        let mut at = 0;
        while let Some(field) = arrangement.order.get(at) {
            let unit = units.iter().position(|unit| unit.fields.contains(field));
            let unit = unit.ok_or_else(|| Binding::new(Constraint::UnclearSource).on([name(field)]))?;
            let fields = units[unit].fields.clone();
            let given = arrangement.order.get(at..at + fields.len());
            if !given.is_some_and(|given| given.iter().copied().eq(fields.clone())) {
                let names: Vec<String> = fields.map(|field| name(&field)).collect();
                let why = "the order that was given parts them, or turns them round";
                return Err(Binding::new(Constraint::OneDeclaration).on(names).because(why));
            }
            at += fields.len();
            order.push(unit);
        }
        // A unit without a member here, such as an `#if` of another configuration, stays behind the unit before it.
        for unit in (0..units.len()).filter(|&unit| units[unit].fields.is_empty()) {
            let before = unit.checked_sub(1).and_then(|before| order.iter().position(|&one| one == before));
            order.insert(before.map_or(0, |place| place + 1), unit);
        }
        if let Some(parted) = self.parted(subject, arrangement, &order) {
            return Err(parted);
        }
        match self.problem.allows(&order) && self.keeps_fixed(&order) {
            true => Ok(order),
            false => Err(self.broken()),
        }
    }

    /// Members of which one may go on in the next, and which would not lie from each other as they do.
    fn parted(&self, subject: &Subject<'_>, arrangement: &Arrangement, order: &[usize]) -> Option<Binding> {
        let present: Vec<usize> = (0..self.problem.units.len()).collect();
        let before = self.layouts(&present).into_iter().next()?;
        let aligned = self.aligned(arrangement)?;
        let after = aligned.place(aligned.models.first()?, order)?;
        let members = &subject.aggregate.members;
        let field = |name: &String| members.iter().position(|member| member.name.as_deref() == Some(name));
        let distance = |placed: &Placed, one: usize, next: usize| {
            placed.offsets_bits[next].wrapping_sub(placed.offsets_bits[one])
        };
        let is_parted = |pair: &[String]| match (field(&pair[0]), field(&pair[1])) {
            (Some(one), Some(next)) => distance(&before, one, next) != distance(&after, one, next),
            _ => true,
        };
        let mut runs = self.ground.holds.side_by_side().iter();
        runs.find(|binding| binding.names.windows(2).any(is_parted)).cloned()
    }

    /// True when members that have to keep their offsets do.
    fn keeps_fixed(&self, order: &[usize]) -> bool {
        let Some(model) = self.problem.models.first() else { return false };
        let placed = self.problem.place(model, order);
        placed.is_some_and(|placed| model.moved_from_its_offset(&placed.offsets_bits).is_none())
    }

    /// The constraint on members that a given order moves.
    fn broken(&self) -> Binding {
        let held = self.obeyed();
        let said = held.iter().map(|binding| match binding.names.is_empty() {
            true => binding.constraint.describe().to_owned(),
            false => format!("{} ({})", binding.constraint.describe(), binding.names.join(", ")),
        });
        let said: Vec<String> = said.collect();
        let constraint = held.first().map_or(Constraint::UnclearSource, |binding| binding.constraint);
        Binding::new(constraint).because(format!(
            "the order that was given moves what has to stay: one of {}; --lift TYPE lets comments hold nothing",
            said.join("; ")
        ))
    }

    /// The same members with the alignment that an order gives them.
    pub(crate) fn aligned(&self, arrangement: &Arrangement) -> Option<Problem> {
        let models = self.problem.models.iter().map(|model| arrangement.aligned(model));
        Some(Problem { models: models.collect::<Option<_>>()?, ..self.problem.clone() })
    }
}
