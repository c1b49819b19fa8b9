//! Whole programs: of a block only those addresses are logged that do not follow from one that was logged before it, as
//! [`lineup_profile::chains`] tells. Who reads the log asks the same of the same code, and so knows what stands there.
//!
//! An instruction whose accesses are not certain is a block of its own, and logs all of them.

use super::Step;
use super::accesses::{Place, Plans};
use iced_x86::Instruction;
use lineup_profile::{Accesses, Follower, chains};

/// Whether an instruction must be a block of its own.
pub(super) fn stands_alone(instruction: &Instruction, plans: &Plans) -> bool {
    let is_odd = |place: Place| matches!(place, Place::Repeated(_));
    if plans.misses || plans.all.iter().any(|plan| plan.mask.is_some() || is_odd(plan.place)) {
        return true;
    }
    let loads = plans.all.iter().filter(|plan| plan.is_load).count();
    let stores = plans.all.iter().filter(|plan| plan.is_store).count();
    match Follower::native().follow(instruction) {
        Accesses::Nothing => loads + stores > 0,
        Accesses::Certain(all) => {
            let own = all.iter().filter(|access| access.is_store).count();
            (loads, stores) != (all.len() - own, own)
        }
        Accesses::Unknown => true,
    }
}

/// Leaves out of the plans of a block what need not be logged: of a chain all but its first access, and values.
pub(super) fn thin(steps: &mut [Step]) {
    steps.iter_mut().flat_map(|step| &mut step.plans.all).for_each(|plan| plan.is_valued = false);
    if steps.len() == 1 {
        return;
    }
    let mut follower = Follower::native();
    let chains = chains(steps.iter().map(|step| follower.follow(&step.instruction)));
    for (number, step) in steps.iter_mut().enumerate() {
        if chains.alone.contains(&number) {
            continue;
        }
        let begun = chains.all.iter().filter_map(|chain| chain.links.first());
        let side = begun.filter(|link| link.insn == number).map(|link| link.is_store).next();
        step.plans.all.retain_mut(|plan| match side {
            Some(true) => {
                plan.is_load = false;
                plan.is_store
            }
            Some(false) => {
                plan.is_store = false;
                plan.is_load
            }
            None => false,
        });
    }
}
