//! Debug information of the files that a program has mapped, read while it runs: naming its accesses needs that, and
//! meanwhile a processor is often free.

use crate::companions;
use lineup_debuginfo::DebugInfo;
use lineup_model::image::LoadedImage;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Files with their debug information.
pub(super) type Read = Vec<(PathBuf, DebugInfo)>;

/// Reads debug information in the background.
pub(super) struct DebugInfoLoader {
    wanted: Sender<PathBuf>,
    asked: BTreeSet<PathBuf>,
    reader: JoinHandle<Read>,
}

impl DebugInfoLoader {
    /// Starts the reader. It leaves out `known`, which others read.
    pub(super) fn new(known: &Path) -> DebugInfoLoader {
        let (wanted, files) = channel::<PathBuf>();
        let reader = std::thread::spawn(move || {
            // A file that cannot be read is tried again by the code that needs it, which reports the reason.
            let read = |file: PathBuf| Some((companions::load(&file).ok()?, file));
            let read = files.into_iter().filter_map(read);
            let each = read.map(|(debug, file)| {
                debug.read_ahead();
                (file, debug)
            });
            each.collect()
        });
        DebugInfoLoader { wanted, asked: BTreeSet::from([known.to_owned()]), reader }
    }

    /// These files are mapped.
    pub(super) fn look_at<'a>(&mut self, images: impl Iterator<Item = &'a LoadedImage>) {
        for image in images.filter(|image| image.path.starts_with('/')) {
            if self.asked.insert(PathBuf::from(&image.path)) {
                // The reader takes them as long as this is there.
                let _ = self.wanted.send(PathBuf::from(&image.path));
            }
        }
    }

    /// The files' debug information, once all is read.
    pub(super) fn finish(self) -> Read {
        drop(self.wanted);
        self.reader.join().unwrap_or_default()
    }
}
