//! Checks pages as the tests do: `cargo run -p lineup-browser --example look -- PAGE...`. Pictures go to
//! `target/pages`.

use lineup_browser::{Axe, Browser, BrowserError, check};
use std::path::Path;

fn main() -> Result<(), BrowserError> {
    let axe = Axe::fetched()?;
    let mut browser = Browser::start()?;
    for page in std::env::args().skip(1) {
        let file =
            std::path::absolute(&page).map_err(|source| BrowserError::Io { what: page.clone(), source })?;
        let name = file.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        for problem in check(&mut browser, &axe, &file, &name, Path::new("target/pages"))? {
            println!("{problem}");
        }
    }
    Ok(())
}
