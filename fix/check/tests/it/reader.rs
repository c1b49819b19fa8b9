//! A second reader of the format, written from its page, agrees.

use crate::forms::{Folder, has, variants};
use lineup_check::certificate::{Certificate, FORMS, Vouched, check_again, read_forms, write};
use lineup_check::unit::{check, map_of};
use std::path::Path;
use std::process::Command;

const PLAIN: &str = "
@
static struct node one = { .a = 1, .b = 2 };
static long sum(struct node *n) { return n->a + n->b * n->c; }
int main(void) { return sum(&one); }
";
const OPEN: &str = "
@
static struct node one = { .a = 1, .b = 2 };
int main(void) { return ((int *)&one)[1]; }
";
const BEFORE: &str = "struct node { int a; int b; long c; };";
const AFTER: &str = "struct node { long c; int b; int a; };";

fn certificate(folder: &Folder, text: &str, vouched: &str) -> std::path::PathBuf {
    let both = variants("gcc", folder, text, (BEFORE, AFTER));
    let map = map_of(&both).expect("a map");
    let findings = check(&both, &map).expect("equal variants");
    let about = vec!["note \"made by a test\"".to_owned()];
    let vouched = Vouched::read(vouched).expect("lines");
    let certificate = Certificate::new(&both, map, findings, about, &vouched);
    let out = folder.0.join("out");
    write(&out, &certificate, &folder.0.join("before"), &folder.0.join("after")).expect("writes")
}

/// The exit code that the checker gives, and that of the script.
fn verdicts(path: &Path) -> (i32, i32) {
    let own = match check_again(path) {
        Ok(certificate) => i32::from(certificate.open().count() > 0),
        Err(_) => 2,
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/certificate-reader.py");
    let output = Command::new("python3").arg(script).arg(path).output().expect("python3 starts");
    (own, output.status.code().unwrap_or(-1))
}

#[test]
fn both_readers_agree_on_sound_and_corrupt_certificates() {
    if !["gcc", "python3", "readelf"].iter().all(|program| has(program)) {
        eprintln!("skipped: gcc, python3 or readelf is not here");
        return;
    }
    for (text, vouched, verdict) in
        [(PLAIN, "", 0), (OPEN, "", 1), (OPEN, "word * * * \"A. Person: only a test reads it\"\n", 0)]
    {
        let folder = Folder::new();
        let path = certificate(&folder, text, vouched);
        assert_eq!(verdicts(&path), (verdict, verdict));
        let sound = std::fs::read_to_string(&path).expect("the certificate");
        let corruptions: [(&str, &str); 5] = [
            ("member \"a\" bits 32 at 0 96", "member \"a\" bits 32 at 0 64"),
            ("lineup-certificate 1", "lineup-certificate 2"),
            ("type \"node\" bytes 16 16", "type \"node\" bytes 16 24"),
            ("\nend\n", "\n"),
            (" after ", " after 0"),
        ];
        for (of, with) in corruptions {
            let text = sound.replacen(of, with, 1);
            assert_ne!(text, sound, "{of}");
            std::fs::write(&path, text).expect("writes");
            assert_eq!(verdicts(&path), (2, 2), "{of}");
        }
    }
}

#[test]
fn a_form_that_was_exchanged_is_found_by_its_hash() {
    if !has("gcc") {
        eprintln!("skipped: gcc is not here");
        return;
    }
    let folder = Folder::new();
    let path = certificate(&folder, PLAIN, "");
    let forms = path.parent().expect("a folder").join(FORMS);
    let dump = folder.0.join("after/x.gimple");
    let text = std::fs::read_to_string(&dump).expect("a dump").replace("->a", "->b");
    std::fs::write(&dump, text).expect("writes");
    std::fs::remove_file(forms.join("after/x.gimple.gz")).expect("the old form goes");
    std::fs::copy(&dump, forms.join("after/x.gimple")).expect("copies");
    let error = check_again(&path).map(|_| ()).expect_err("another file");
    assert!(error.to_string().contains("is not the file that the certificate names"), "{error}");
    assert!(read_forms(&forms.join("before"), &forms.join("after")).is_ok());
}

#[test]
fn an_obligation_cannot_be_left_out_of_a_certificate() {
    if !has("gcc") {
        eprintln!("skipped: gcc is not here");
        return;
    }
    let folder = Folder::new();
    let path = certificate(&folder, OPEN, "");
    let text = std::fs::read_to_string(&path).expect("the certificate");
    let left: Vec<&str> =
        text.lines().filter(|line| !line.starts_with("obligation") && !line.starts_with("open")).collect();
    std::fs::write(&path, left.join("\n") + "\n").expect("writes");
    assert!(check_again(&path).is_err());
    std::fs::write(&path, text.replace("open 0", "discharged 0 rule cast-back")).expect("writes");
    assert!(check_again(&path).is_err());
}
