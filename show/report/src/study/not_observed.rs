//! The parts that a recording could not observe.

use super::coverage::NotObserved;
use lineup_explain::Explained;
use lineup_model::figure::counted;

impl NotObserved {
    /// The parts that the recording could not observe, each with its consequence.
    pub fn of_explained(explained: &Explained) -> Vec<NotObserved> {
        let mut all = Vec::new();
        let mut add = |what: String, consequence: &str| {
            all.push(NotObserved { what, consequence: consequence.to_owned() });
        };
        for region in &explained.explanation.regions {
            if region.missed_blocks > 0 {
                add(
                    format!("{} executions of blocks in {}", region.missed_blocks, region.name),
                    "the first run did not see them inside the region; their accesses are missing",
                );
            }
            if region.unfinished > 0 {
                add(
                    format!("{} of {} that had not ended", counted(region.unfinished, "call"), region.name),
                    "left out",
                );
            }
        }
        let sizes = explained.survey.summary.iter().flat_map(|summary| &summary.all_calls);
        for (region, sizes) in explained.explanation.regions.iter().zip(sizes) {
            let recorded = region.instructions.filter(|_| sizes.calls() > region.calls);
            let unlike = recorded.filter(|recorded| !sizes.is_like(recorded.median as f64, recorded.mean));
            if let (Some(recorded), Some(median)) = (unlike, sizes.median()) {
                add(
                    format!(
                        "{} of {} that were not recorded",
                        counted(sizes.calls() - region.calls, "call"),
                        region.name
                    ),
                    &format!(
                        "they are not like those that were: the median of all is {median} instructions, of the recorded {}",
                        recorded.median
                    ),
                );
            }
        }
        for note in explained.survey.summary.iter().flat_map(|summary| &summary.notes) {
            add(note.clone(), "reported by the recorder");
        }
        if let Some(damage) = &explained.survey.damage {
            add(format!("the recording after byte {}", damage.good_bytes), "the file was cut off there");
        }
        all
    }
}
