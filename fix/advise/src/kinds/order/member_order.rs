//! A better order for the members of one type, from recorded use to judged proposal.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::constraints::review::Review;
use crate::constraints::{constructors, holds};
use crate::error::AdviseError;
use crate::judge::asserted::Asserted;
use crate::judge::compiler::Judge;
use crate::judge::verification::{self, Candidate, Verified};
use crate::layout::figures;
use crate::layout::granules::ONE;
use crate::layout::placement::Placed;
use crate::layout::spelling::{Spelling, bare};
use crate::layout::subject::{Models, Subject, has_one_type, member_name, member_names};
use crate::options::Options;
use crate::order_file::Arrangement;
use crate::patch::{group_text, rewrite};
use crate::proposal::{OrderProposal, Refusal, RegionLines};
use crate::search::best_order::{self, Effort};
use crate::search::outcome::{Further, Outcome};
use crate::search::score::{Problem, Score};
use crate::search::{further_moves, reasons, small_order};
use crate::text::body::Body;
use crate::text::located_declaration;
use crate::text::sources::Sources;
use std::collections::BTreeMap;

/// The result for one type.
pub(crate) enum Verdict {
    Proposed(Box<OrderProposal>),
    AlreadyGood(String),
    Refused(Refusal),
}

/// A fall in expected lines below this is not worth moving a member for.
const LEAST_GAIN: u64 = ONE / 100;

/// The gain that makes an order worth a patch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequiredGain {
    /// Fewer lines of the size asked for.
    OwnPatch,
    /// Fewer lines of any size: the object gets a new place in any case.
    PlacedAnyway,
}

/// Works out an order for one type, writes it, and has it judged. `edited` are the texts that earlier
/// proposals changed; `sources` holds them already.
pub(crate) fn propose(
    subject: &Subject<'_>,
    spelling: &Spelling,
    sources: &Sources,
    options: &Options,
    judge: &mut dyn Judge,
    edited: &BTreeMap<String, String>,
    worth: RequiredGain,
) -> Result<Verdict, AdviseError> {
    let (mut plan, outcome) = match search(subject, spelling, sources, options, worth) {
        Ok(found) => found,
        Err(verdict) => return Ok(verdict),
    };
    match plan.follow(subject, spelling, sources) {
        Ok(()) => plan.write_and_judge(subject, sources, spelling, outcome.into(), judge, edited),
        Err(bindings) => Ok(refused(spelling, bindings, potential(subject, &plan.models))),
    }
}

/// The same for a type whose members have changed: the present order is written where none is better, also by the
/// object's size.
pub(crate) fn propose_any(
    subject: &Subject<'_>,
    spelling: &Spelling,
    sources: &Sources,
    options: &Options,
    judge: &mut dyn Judge,
    edited: &BTreeMap<String, String>,
) -> Result<Verdict, AdviseError> {
    let plan = match planned(subject, spelling, sources, options) {
        Ok(plan) => plan,
        Err(refused) => return Ok(*refused),
    };
    let order = (0..plan.problem.units.len()).collect();
    let present = Chosen { order, is_proven: false, arrangement: None, further: None };
    let chosen = match plan.search(options) {
        Some((outcome, before)) => {
            let recorded = Problem { models: plan.problem.models[..1].to_vec(), ..plan.problem.clone() };
            // The last part is the number of moves.
            let is_better =
                recorded.score(&outcome.order, None).is_some_and(|after| after[..6] < before[..6]);
            if is_better { outcome.into() } else { present }
        }
        None => present,
    };
    plan.write_and_judge(subject, sources, spelling, chosen, judge, edited)
}

/// Lines per call of all regions, of the size that decides, in the best order of the members that there are.
pub(crate) fn fewest_lines(
    subject: &Subject<'_>,
    spelling: &Spelling,
    sources: &Sources,
    options: &Options,
) -> Option<f64> {
    let models = subject.models().ok()?;
    let plan = Plan::sketch(subject, spelling, sources, options, models).ok()?;
    let order = plan.search(options).map(|(outcome, _)| outcome.order);
    let order = order.unwrap_or_else(|| (0..plan.problem.units.len()).collect());
    let best = plan.layouts(&order);
    let rows = figures::compare(subject.usage, &plan.models, &best, &best);
    let decides = |row: &&RegionLines| {
        row.line_bytes == options.primary.bytes() && plan.models.names.first() == Some(&row.data_model)
    };
    Some(rows.iter().filter(decides).map(|row| row.after).sum())
}

/// The best order of a type on its own, or the answer without an order worth a patch. It depends on no other type, and
/// so may be worked out in parallel.
pub(crate) fn foresee(
    subject: &Subject<'_>,
    spelling: &Spelling,
    sources: &Sources,
    options: &Options,
) -> Result<Outcome, Verdict> {
    search(subject, spelling, sources, options, RequiredGain::OwnPatch).map(|(_, outcome)| outcome)
}

/// Writes the order that was foreseen, and has it judged. `edited` and `sources` as for [`propose`].
pub(crate) fn write(
    subject: &Subject<'_>,
    spelling: &Spelling,
    sources: &Sources,
    options: &Options,
    judge: &mut dyn Judge,
    edited: &BTreeMap<String, String>,
    outcome: Outcome,
) -> Result<Verdict, AdviseError> {
    match planned(subject, spelling, sources, options) {
        Ok(plan) => plan.write_and_judge(subject, sources, spelling, outcome.into(), judge, edited),
        Err(refused) => Ok(*refused),
    }
}

/// The plan of a type; the refusal when nothing may be written.
fn planned<'s>(
    subject: &Subject<'_>,
    spelling: &Spelling,
    sources: &'s Sources,
    options: &Options,
) -> Result<Plan<'s>, Box<Verdict>> {
    let models =
        subject.models().map_err(|binding| Box::new(refused(spelling, vec![binding], Vec::new())))?;
    Plan::make(subject, spelling, sources, options, models)
        .map_err(|(models, bindings)| Box::new(refused(spelling, bindings, potential(subject, &models))))
}

/// Writes the order that the user gave, and has it judged. `edited` and `sources` as for [`propose`].
pub(crate) fn write_given(
    subject: &Subject<'_>,
    spelling: &Spelling,
    sources: &Sources,
    options: &Options,
    judge: &mut dyn Judge,
    edited: &BTreeMap<String, String>,
    arrangement: &Arrangement,
) -> Result<Verdict, AdviseError> {
    // In an order of the user's own, the number of moves is not limited.
    let options = Options { most_moved: None, ..options.clone() };
    let plan = match planned(subject, spelling, sources, &options) {
        Ok(plan) => plan,
        Err(refused) => return Ok(*refused),
    };
    match plan.in_given_order(subject, arrangement) {
        Ok(order) => {
            let chosen = Chosen { order, is_proven: false, arrangement: Some(arrangement), further: None };
            plan.write_and_judge(subject, sources, spelling, chosen, judge, edited)
        }
        Err(binding) => Ok(refused(spelling, vec![binding], potential(subject, &plan.models))),
    }
}

/// An order that is to be written.
pub(crate) struct Chosen<'a> {
    order: Vec<usize>,
    /// True when no allowed order needs fewer lines.
    is_proven: bool,
    /// Groups and alignment; `None` without such.
    arrangement: Option<&'a Arrangement>,
    /// The gain of more moves.
    further: Option<Further>,
}

impl From<Outcome> for Chosen<'_> {
    fn from(Outcome { order, is_proven, further, .. }: Outcome) -> Self {
        Chosen { order, is_proven, arrangement: None, further }
    }
}

/// The best order, with a plan that is not yet one to write; or, where none is worth a candidate, the answer.
fn search<'s>(
    subject: &Subject<'_>,
    spelling: &Spelling,
    sources: &'s Sources,
    options: &Options,
    worth: RequiredGain,
) -> Result<(Plan<'s>, Outcome), Verdict> {
    let models = match subject.models() {
        Ok(models) => models,
        Err(binding) => {
            // A constraint that forbids a change in any layout is more useful than the error that the layout is not
            // understood.
            let outright = holds::forbidden_outright(subject, spelling, options).err();
            return Err(refused(spelling, vec![outright.unwrap_or(binding)], Vec::new()));
        }
    };
    let plan = match Plan::sketch(subject, spelling, sources, options, models) {
        Ok(plan) => plan,
        Err((models, bindings)) => {
            let lines = potential(subject, &models);
            let helps = could_gain(subject, &models, options.primary.bytes(), 0.01);
            let is_foreign = |binding: &Binding| {
                matches!(binding.constraint, Constraint::OutsideSource | Constraint::CompilersOrder)
            };
            if helps || !bindings.first().is_some_and(is_foreign) {
                return Err(refused(spelling, bindings, lines));
            }
            return Err(Verdict::AlreadyGood(spelling.name.clone()));
        }
    };
    let Some((outcome, before)) = plan.search(options) else {
        let constraints = vec![Binding::new(Constraint::LayoutNotReproduced)];
        return Err(refused(spelling, constraints, Vec::new()));
    };
    let recorded = Problem { models: plan.problem.models[..1].to_vec(), ..plan.problem.clone() };
    let after = recorded.score(&outcome.order, None).unwrap_or(before);
    let parts = match worth {
        RequiredGain::OwnPatch => 3,
        RequiredGain::PlacedAnyway => 5,
    };
    if !gains(&before, &after, parts) {
        return Err(plan.no_gain(subject, spelling, options));
    }
    Ok((plan, outcome))
}

fn refused(spelling: &Spelling, constraints: Vec<Binding>, lines: Vec<RegionLines>) -> Verdict {
    Verdict::Refused(Refusal { owner: spelling.name.clone(), constraints, lines })
}

/// True when one of the first `parts` of the score falls and none before it rises; a fall in expected
/// lines counts from [`LEAST_GAIN`] on.
fn gains(before: &Score, after: &Score, parts: usize) -> bool {
    let counts = |part: usize| matches!(part, 1 | 3 | 4);
    for part in 0..parts {
        let least = if counts(part) { LEAST_GAIN } else { 1 };
        if after[part].saturating_add(least) <= before[part] {
            return true;
        }
        if after[part] > before[part] {
            return false;
        }
    }
    false
}

/// The layouts of the present order.
fn present(models: &Models) -> Vec<Placed> {
    let place = |model: &crate::layout::demand::Model| {
        let order: Vec<usize> = (0..model.fields.len()).collect();
        let placed = crate::layout::placement::place(&model.fields, &order, model.align_bytes)?;
        Some(placed)
    };
    models.models.iter().filter_map(place).collect()
}

/// Lines now, and at the least that the touched bytes need.
fn potential(subject: &Subject<'_>, models: &Models) -> Vec<RegionLines> {
    figures::against_least(subject.usage, models, &present(models))
}

/// True when packing the touched members, as if nothing forbade it, saves more than `least` primary lines per call of a
/// region.
fn could_gain(subject: &Subject<'_>, models: &Models, primary_bytes: u64, least: f64) -> bool {
    let present = present(models);
    let packed = |(model, now): (&crate::layout::demand::Model, &Placed)| Placed {
        offsets_bits: figures::packed_offsets(model),
        size_bytes: now.size_bytes,
    };
    let packed: Vec<Placed> = models.models.iter().zip(&present).map(packed).collect();
    let rows = figures::compare(subject.usage, models, &present, &packed);
    rows.iter().any(|row| row.line_bytes == primary_bytes && row.gain() > least)
}

/// The layouts of an order of units under all models.
fn layouts(problem: &Problem, order: &[usize]) -> Vec<Placed> {
    problem.models.iter().filter_map(|model| problem.place(model, order)).collect()
}

/// Everything needed to search and write one type's order.
pub(crate) struct Plan<'s> {
    pub(crate) ground: Groundwork<'s>,
    pub(crate) problem: Problem,
    pub(crate) models: Models,
    /// Units of the problem before the first unit of text: base classes.
    pub(crate) head_units: usize,
    /// The objections of a reviewer; none without a limit of moves.
    review: Review,
}

impl<'s> Plan<'s> {
    pub(crate) fn make(
        subject: &Subject<'_>,
        spelling: &Spelling,
        sources: &'s Sources,
        options: &Options,
        models: Models,
    ) -> Result<Self, (Models, Vec<Binding>)> {
        let mut plan = Plan::sketch(subject, spelling, sources, options, models)?;
        match plan.follow(subject, spelling, sources) {
            Ok(()) => Ok(plan),
            Err(bindings) => Err((plan.models, bindings)),
        }
    }

    /// Looks for the values by position that have to follow an order, if that was not done.
    fn follow(
        &mut self,
        subject: &Subject<'_>,
        spelling: &Spelling,
        sources: &Sources,
    ) -> Result<(), Vec<Binding>> {
        match self.ground.values {
            Some(_) => Ok(()),
            None => self.ground.follow(subject, spelling, sources).map(|_| ()),
        }
    }

    /// A plan that can be searched, but not written.
    fn sketch(
        subject: &Subject<'_>,
        spelling: &Spelling,
        sources: &'s Sources,
        options: &Options,
        models: Models,
    ) -> Result<Self, (Models, Vec<Binding>)> {
        let mut ground = match Groundwork::lay(subject, spelling, sources, options) {
            Ok(ground) => ground,
            Err(bindings) => return Err((models, bindings)),
        };
        let Groundwork { body, ranges, holds, .. } = &mut ground;
        let mut review = Review::default();
        if options.most_moved.is_some() {
            holds.join_neighbours(subject, body, ranges, &models.models[0]);
            review = Review::of(subject, body, ranges, sources);
            holds.add_review(&review);
        }
        let (units, fixed) = holds.units(subject, body, ranges, &models.models[0]);
        let head_units = units.len() - body.units.len();
        let mut with_fixed = models.models.clone();
        with_fixed[0].fixed_bits = fixed;
        let problem = Problem::new(subject, with_fixed, units, (options.primary, options.allow_growth));
        Ok(Plan { ground, problem, models, head_units, review: review.behind(head_units) })
    }

    /// The best order under both data models, and the score of the present one under the recorded one: a
    /// patch that helps only where nobody runs is not proposed.
    fn search(&self, options: &Options) -> Option<(Outcome, Score)> {
        let identity: Vec<usize> = (0..self.problem.units.len()).collect();
        let recorded = Problem { models: self.problem.models[..1].to_vec(), ..self.problem.clone() };
        let before = recorded.score(&identity, None)?;
        let outcome = match options.most_moved {
            Some(most) => {
                let small = small_order::by_moves(&self.problem, most, &self.review)?;
                Outcome { further: further_moves::beyond(&self.problem, &small), ..small }
            }
            None => best_order::best(&self.problem, Effort::DEFAULT)?,
        };
        Some((outcome, before))
    }

    /// Nothing to gain: because all is well, or because a constraint stands in the way.
    fn no_gain(&self, subject: &Subject<'_>, spelling: &Spelling, options: &Options) -> Verdict {
        let identity: Vec<usize> = (0..self.problem.units.len()).collect();
        let conflicts = self.problem.score(&identity, None).map_or(0, |score| score[0]);
        let mut constraints = self.obeyed();
        if conflicts > 0 && !options.allow_growth {
            let names = |wanted: fn(&crate::layout::demand::Traffic) -> bool| -> Vec<String> {
                let traffic = self.problem.traffic.iter().enumerate().filter(|(_, traffic)| wanted(traffic));
                traffic.map(|(field, _)| member_name(subject.aggregate, field)).collect()
            };
            let written = names(|traffic| traffic.is_write_shared);
            constraints.insert(0, Binding::new(Constraint::NeverLarger).on(written).because(
                "written by some threads next to members that others only read; no order of this size parts them",
            ));
            return refused(spelling, constraints, potential(subject, &self.models));
        }
        let lines = potential(subject, &self.models);
        let could = could_gain(subject, &self.models, options.primary.bytes(), 0.5);
        if could && !self.ground.holds.bindings.is_empty() {
            return refused(spelling, constraints, lines);
        }
        Verdict::AlreadyGood(spelling.name.clone())
    }

    /// Every constraint at work.
    pub(crate) fn obeyed(&self) -> Vec<Binding> {
        let mut all: Vec<Binding> =
            self.ground.holds.bindings.iter().chain(&self.ground.body.bindings).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    pub(crate) fn layouts(&self, order: &[usize]) -> Vec<Placed> {
        layouts(&self.problem, order)
    }

    /// The edited texts, with groups and alignment where there are such.
    fn write_chosen(
        &self,
        subject: &Subject<'_>,
        sources: &Sources,
        spelling: &Spelling,
        chosen: &Chosen<'_>,
    ) -> Result<BTreeMap<String, String>, Binding> {
        let mut texts = self.write(subject, sources, spelling, &chosen.order)?;
        if let Some(arrangement) = chosen.arrangement {
            texts.extend(group_text::write(&sources.with(&texts), subject, spelling, arrangement)?);
        }
        Ok(texts)
    }

    fn write_and_judge(
        &self,
        subject: &Subject<'_>,
        sources: &Sources,
        spelling: &Spelling,
        chosen: Chosen<'_>,
        judge: &mut dyn Judge,
        edited: &BTreeMap<String, String>,
    ) -> Result<Verdict, AdviseError> {
        let refused = |binding| refused(spelling, vec![binding], potential(subject, &self.models));
        let outcome = &chosen;
        let texts = match self.write_chosen(subject, sources, spelling, outcome) {
            Ok(texts) => texts,
            Err(binding) => return Ok(refused(binding)),
        };
        let identity: Vec<usize> = (0..self.problem.units.len()).collect();
        let aligned = outcome.arrangement.map(|arrangement| self.aligned(arrangement));
        let problem = match &aligned {
            None => &self.problem,
            Some(Some(problem)) => problem,
            Some(None) => {
                return Ok(refused(
                    Binding::new(Constraint::BitFieldRun).because("a bit-field cannot be aligned"),
                ));
            }
        };
        let (before, predicted) = (self.layouts(&identity), layouts(problem, &outcome.order));
        let field_order = self.problem.field_order(&outcome.order);
        let mut all = edited.clone();
        all.extend(texts.clone());
        let layouts = [&before[0], &predicted[0]];
        let asserted =
            Asserted::of_type(subject, spelling, &self.ground.body.found.path, &field_order, layouts);
        let candidate = Candidate { edited: &all, spelling, field_order: &field_order, asserted: &asserted };
        let judged = verification::confirm(judge, &candidate, subject, &self.models, predicted)?;
        let Verified { after, check } = match judged {
            Ok(verified) => verified,
            Err(binding) => return Ok(refused(binding)),
        };
        let lines = figures::compare(subject.usage, &self.models, &before, &after);
        let moved = self.moved_members(&outcome.order);
        let name = |field: &usize| member_name(subject.aggregate, *field);
        let bytes = |field: &usize| self.problem.models[0].fields[*field].size_bytes;
        Ok(Verdict::Proposed(Box::new(OrderProposal {
            type_name: spelling.name.clone(),
            path: self.ground.body.found.path.clone(),
            old_order: (0..field_order.len()).map(|field| name(&field)).collect(),
            new_order: field_order.iter().map(name).collect(),
            new_offsets_bits: field_order.iter().map(|&field| after[0].offsets_bits[field]).collect(),
            moved: moved.iter().map(name).collect(),
            moved_bytes: moved.iter().map(bytes).sum(),
            sizes: figures::sizes(&self.models, &before, &after),
            reasons: reasons::explain(subject, &self.problem, &self.models, (&before[0], &after[0]), &moved),
            obeyed: self.obeyed(),
            field_order,
            is_proven_minimal: outcome.is_proven,
            further: outcome.further.map(|further| further.of(subject.usage)),
            lines,
            check,
            averaged: subject.averaged(self.problem.primary.bytes()),
            seen_outside: None,
            rewritten_values: Vec::new(),
            named_values: self.named_values(),
            parted: None,
            asserted: vec![asserted],
            edited: texts,
        })))
    }

    /// The texts in which few values by position have the names of their members. `None` if the sources were not
    /// searched, and if an order in which no named value moves leaves them as they are.
    pub(crate) fn naming_values(
        &self,
        subject: &Subject<'_>,
        sources: &Sources,
        order: &[usize],
    ) -> Option<BTreeMap<String, String>> {
        let values = self.ground.values.as_ref().filter(|values| values.may_be_named())?;
        let field_order = self.problem.field_order(order);
        match order.is_sorted() {
            true => Some(values.edited(sources, &field_order)),
            false => {
                let is_named = values.is_empty() || !values.stay(subject.aggregate, &field_order);
                is_named.then(BTreeMap::new)
            }
        }
    }

    /// Members whose values by position get their names when the order is written.
    fn named_values(&self) -> Vec<String> {
        let values = self.ground.values.iter();
        values.flat_map(|values| values.named()).map(str::to_owned).collect()
    }

    pub(crate) fn moved_members(&self, order: &[usize]) -> Vec<usize> {
        let kept = self.problem.kept(order);
        let moved = order.iter().filter(|unit| !kept.contains(unit));
        moved.flat_map(|&unit| self.problem.units[unit].fields.clone()).collect()
    }

    /// The edited texts: the declaration, initialisers by position, constructors' initialiser lists.
    pub(crate) fn write(
        &self,
        subject: &Subject<'_>,
        sources: &Sources,
        spelling: &Spelling,
        order: &[usize],
    ) -> Result<BTreeMap<String, String>, Binding> {
        let text_order: Vec<usize> =
            order.iter().filter_map(|unit| unit.checked_sub(self.head_units)).collect();
        let field_order = self.problem.field_order(order);
        let values =
            self.ground.values.as_ref().filter(|values| !values.stay(subject.aggregate, &field_order));
        let mut edited = values.map_or_else(BTreeMap::new, |values| values.edited(sources, &field_order));
        let path = &self.ground.body.found.path;
        match edited.get(path) {
            None => {
                edited.insert(path.clone(), rewrite::apply(&self.ground.body, &text_order));
            }
            Some(_) => {
                let followed = sources.with(&edited);
                let found =
                    located_declaration::find(&followed, &spelling.name, spelling.declared_at.as_ref())?;
                let mut body = Body::read(found, &member_names(subject))?;
                if has_one_type(subject) {
                    body.part_declarators();
                }
                body.units.clone_from(&self.ground.body.units);
                let text = rewrite::apply(&body, &text_order);
                edited.insert(path.clone(), text);
            }
        }
        let reordered = sources.with(&edited);
        let rank = |name: &str| {
            let unit = self
                .ground
                .body
                .units
                .iter()
                .position(|unit| unit.names.iter().any(|known| known == name))?;
            text_order.iter().position(|&candidate| candidate == unit)
        };
        edited.extend(constructors::follow(&reordered, bare(&spelling.name), &rank));
        Ok(edited)
    }
}
