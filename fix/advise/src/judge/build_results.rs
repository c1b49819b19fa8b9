//! Advice that was built after it was worked out: the results of a whole build.

use crate::judge::asserted::Asserted;
use crate::proposal::{Advice, Check, Step};
use lineup_model::types::Types;
use std::collections::BTreeMap;

impl Advice {
    /// The advice of which the patch ends with this step.
    pub fn up_to(&self, step: &Step) -> Advice {
        let is_in = |texts: &BTreeMap<String, String>| {
            texts.iter().all(|(path, text)| step.edited.get(path) == Some(text))
        };
        let ends_at = |is_it: &dyn Fn(usize) -> bool, count: usize| (0..count).find(|&at| is_it(at));
        let mut advice = self.clone();
        let order = ends_at(&|at| step.owners == [self.orders[at].type_name.clone()], self.orders.len());
        let gather = ends_at(&|at| step.owners == self.gathers[at].variables, self.gathers.len());
        match (gather, order) {
            (Some(at), _) if is_in(&self.gathers[at].edited) => {
                advice.gathers.truncate(at + 1);
                advice.orders.clear();
            }
            (_, Some(at)) => advice.orders.truncate(at + 1),
            _ => {}
        }
        advice
    }

    /// Compares the prediction with a build of it: a type or variable with the predicted layout counts as compiled.
    ///
    /// # Errors
    /// The types and variables of which the build has another layout.
    pub fn hold_against(&mut self, types: &Types) -> Result<(), Vec<String>> {
        let mut missing = Vec::new();
        let mut judged = |asserted: &[Asserted], owner: &str, check: &mut Check| match asserted
            .iter()
            .all(|one| one.is_in(types))
        {
            true => *check = Check::CompiledRecordedOnly,
            false => missing.push(owner.to_owned()),
        };
        self.gathers.iter_mut().for_each(|one| judged(&one.asserted, &one.name, &mut one.check));
        self.narrowings.iter_mut().for_each(|one| judged(&one.asserted, &one.type_name, &mut one.check));
        self.orders.iter_mut().for_each(|one| judged(&one.asserted, &one.type_name, &mut one.check));
        if !missing.is_empty() {
            return Err(missing);
        }
        for told in self.descriptions.iter_mut().filter(|told| told.is_in_patch) {
            if told.check.is_some() {
                told.check = Some(Check::CompiledRecordedOnly);
            }
        }
        Ok(())
    }
}
