//! The facts about one type in the sources, before an order is looked for.

use crate::constraints::comment_rules::{self, Lifts};
use crate::constraints::constraint::Binding;
use crate::constraints::holds::{self, Holds};
use crate::constraints::initialisers::{self, Positional};
use crate::constraints::meaning::Effect;
use crate::constraints::{constructors, defines, headings, randomised_layout};
use crate::layout::spelling::{Spelling, bare};
use crate::layout::subject::{Subject, has_one_type, member_names};
use crate::options::Options;
use crate::patch::value_exchange::Follows;
use crate::text::body::{Body, has_construction_order};
use crate::text::located_declaration;
use crate::text::sources::Sources;
use std::collections::BTreeSet;
use std::ops::Range;

/// The facts about a type in the sources.
pub(crate) struct Groundwork<'s> {
    pub(crate) body: Body<'s>,
    /// The members of each unit of text.
    pub(crate) ranges: Vec<Range<usize>>,
    pub(crate) holds: Holds,
    /// The way values by position follow an order.
    follows: Follows,
    /// A compiler read every unit.
    is_read: bool,
    /// The values that follow; `None` until a search for an order is worthwhile.
    pub(crate) values: Option<Positional>,
}

impl<'s> Groundwork<'s> {
    pub(crate) fn lay(
        subject: &Subject<'_>,
        spelling: &Spelling,
        sources: &'s Sources,
        options: &Options,
    ) -> Result<Self, Vec<Binding>> {
        let one = |binding: Binding| vec![binding];
        holds::forbidden_outright(subject, spelling, options).map_err(one)?;
        let members = member_names(subject);
        let found =
            located_declaration::find(sources, &spelling.name, spelling.declared_at.as_ref()).map_err(one)?;
        let is_cpp = has_construction_order(found.language);
        let mut body = Body::read(found, &members).map_err(one)?;
        if has_one_type(subject) {
            body.part_declarators();
        }
        let class = bare(&spelling.name);
        let lifts = Lifts::new(options, class);
        if let Some(randomised) =
            randomised_layout::refusal(&options.randomisation, subject, &body.found, lifts)
        {
            return Err(one(randomised));
        }
        defines::lift(&mut body, lifts);
        let pinned = comment_rules::read(&body, lifts);
        headings::obey(&mut body, lifts);
        let ranges = crate::text::member_units::assign(&mut body, subject.aggregate).map_err(one)?;
        let mut holds = Holds::from_source(subject, spelling, sources, &members);
        if is_cpp {
            holds.add_construction_order(subject, sources, class, &members);
        }
        holds.add_comment_rules(pinned);
        holds.add_options(subject, options, class);
        holds.add_meaning(spelling, &body.found.path, options);
        if !holds.forbidding.is_empty() {
            return Err(holds.forbidding);
        }
        let is_read = options.meaning.is_of_all_units;
        let mut ground = Groundwork { body, ranges, holds, follows: Follows::Named, is_read, values: None };
        if let Some(effect) = ground.holds.by_position(spelling, &ground.body.found.path, options) {
            ground.follows = if effect == Effect::Exchanged { Follows::Exchanged } else { Follows::Named };
            let lists = ground.follow(subject, spelling, sources)?;
            ground.holds.add_unnamed(spelling, &ground.body.found.path, options, &lists);
        }
        Ok(ground)
    }

    /// Looks for every initialiser that gives values by position; the places of all lists of values. To find them whole
    /// sources are parsed.
    pub(crate) fn follow(
        &mut self,
        subject: &Subject<'_>,
        spelling: &Spelling,
        sources: &Sources,
    ) -> Result<BTreeSet<(String, u32)>, Vec<Binding>> {
        let is_cpp = has_construction_order(self.body.found.language);
        let class = bare(&spelling.name);
        let is_made =
            || self.body.declares_constructor(class) || constructors::has_constructor(sources, class);
        let is_aggregate = !is_cpp || !is_made();
        let found = match is_aggregate {
            true => {
                initialisers::by_position(sources, subject.types, subject.id, self.follows, self.is_read)?
            }
            false => Positional::default(),
        };
        let lists = found.lists.clone();
        self.values = Some(found);
        Ok(lists)
    }
}
