//! Reads the promises of a `lineup.lock`.

use super::{About, Filling, WRONG};
use crate::tables::GUARDS;
use lineup_advise::guard::Lock;

pub(super) fn fill(filling: &mut Filling<'_>, text: &str) -> Result<About, String> {
    if !text.contains("lineup.lock/") {
        return Err(WRONG.into());
    }
    let lock = Lock::parse("lineup.lock", text).map_err(|error| format!("damaged: {error}"))?;
    for (index, group) in lock.groups.iter().enumerate() {
        let together = group.members.iter().map(|member| (member, false));
        for (member, is_apart) in together.chain(group.apart.iter().map(|member| (member, true))) {
            let row = [
                filling.run.clone(),
                index.into(),
                group.type_name.as_str().into(),
                u64::from(group.line_bytes).into(),
                group.data_model.as_str().into(),
                member.as_str().into(),
                is_apart.into(),
            ];
            filling.table(&GUARDS).push(row);
        }
    }
    Ok(About { source: "guard", ..About::default() })
}
