//! The frame of a page: policy, style, title, contents, sections.

use crate::visible::many_lines;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The content policy: a page loads nothing, and only its own style applies.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("page.css");

/// A part of a page with an entry in its contents.
pub struct Section {
    /// Its anchor: letters and dashes.
    pub anchor: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// Its content.
    pub body: Markup,
}

/// A page with its head, its contents and its sections. Characters that turn the direction of text or are invisible are
/// spelled out everywhere.
pub fn page(kind: &str, title: &str, lead: &Markup, sections: &[Section]) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) " – Lineup " (kind) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to content" }
                header {
                    p.kind { "Lineup " (kind) }
                    h1 { (title) }
                    (lead)
                    nav aria-label="Contents" {
                        ul { @for section in sections { li { a href={ "#" (section.anchor) } { (section.heading) } } } }
                    }
                }
                main id="content" {
                    @for section in sections {
                        section id=(section.anchor) aria-labelledby={ (section.anchor) "-heading" } {
                            h2 id={ (section.anchor) "-heading" } { (section.heading) }
                            (section.body)
                        }
                    }
                }
            }
        }
    };
    many_lines(&markup.into_string()).into_owned()
}
