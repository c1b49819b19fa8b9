//! Pointers that libraries carry for the program, and siblings that a library may look into.

use crate::program::Program;
use lineup_sources::Freedom;

const TYPES: &str = "struct t { long a; int b; char c; long d; }; struct other { char c[3]; double e; };
    struct event; struct base;
    struct event *event_new(struct base *, int, short, void (*)(int, short, void *), void *);
    void event_set(struct event *, int, short, void (*)(int, short, void *), void *);
    void watch(void (*)(void *), void *);
    static int read_it(struct t *x) { return x->b + x->c; }
    static double read_other(struct other *x) { return x->e; }\n";

fn freedom(text: &str) -> (Freedom, String) {
    let checked = Program::c(&format!("{TYPES}{text}")).check();
    let ty = checked.named("t").next().expect("the type t");
    let uses: Vec<String> = ty.uses.iter().map(|found| format!("{:?} {found}", found.verdict)).collect();
    (ty.freedom(), uses.join("\n"))
}

fn movable(text: &str) {
    let (freedom, uses) = freedom(text);
    assert_eq!(freedom, Freedom::Movable, "{text}\n{uses}");
}

fn refused(text: &str, reason: &str) {
    let (freedom, uses) = freedom(text);
    assert_eq!(freedom, Freedom::Refused, "{text}\n{uses}");
    assert!(uses.lines().any(|line| line.starts_with("Refuse") && line.contains(reason)), "{uses}");
}

#[test]
fn what_a_library_gives_back_to_a_callback_may_move() {
    movable(
        "static void on_read(int fd, short what, void *arg) { read_it(arg); }
        void f(struct base *b, struct t *x) { event_new(b, 3, 1, on_read, x); }",
    );
    movable(
        "static void on_read(int fd, short what, void *arg) { struct t *x = (struct t *)arg; x->a++; }
        void f(struct event *e, struct t *x) { event_set(e, 3, 1, on_read, (void *)x); }",
    );
    movable(
        "static void seen(void *arg) { read_it(arg); } void (*handler)(void *) = seen;
        void f(struct t *x) { watch(handler, x); }",
    );
}

#[test]
fn what_a_callback_takes_for_another_type_is_a_cast() {
    let text = "static void on_read(int fd, short what, void *arg) { read_other(arg); }
        void f(struct base *b, struct t *x) { event_new(b, 3, 1, on_read, x); }";
    refused(text, "cast to or from other");
    let text = "static void seen(void *arg) { read_other(arg); } void (*handler)(void *) = seen;
        void f(struct t *x) { watch(handler, x); }";
    refused(text, "cast to or from other");
}

#[test]
fn what_a_library_may_read_is_a_crossing() {
    // A neighbouring length; a size; no callback; one that is not compiled here.
    for text in [
        "void send_later(void (*)(void *), void *, int); static void sent(void *x) { read_it(x); }
        void f(struct t *x) { send_later(sent, x, 32); }",
        "void send_later(unsigned long, void (*)(void *), void *); static void sent(void *x) { read_it(x); }
        void f(struct t *x) { send_later(sizeof *x, sent, x); }",
        "void bind(void *, int, const void *, int, void (*)(void *)); static void end(void *x) { read_it(x); }
        void f(void *to, struct t *x) { bind(to, 1, x, sizeof *x, end); }",
        "void f(struct t *x) { watch(0, x); }",
        "void theirs(void *); void f(struct t *x) { watch(theirs, x); }",
        "void given(void (*)(void *), struct t *); static void seen(void *x) { read_it(x); }
        void f(struct t *x) { given(seen, x); }",
    ] {
        refused(text, "which is not compiled here");
    }
}

#[test]
fn data_of_a_signal_comes_to_a_parameter_of_its_own_type() {
    let glib = "typedef void (*GCallback)(void); typedef void (*Notify)(void *);
        unsigned long g_signal_connect_data(void *, const char *, GCallback, void *, Notify, int);
        struct widget; void *button;\n";
    let text = "static void clicked(struct widget *w, struct t *x) { read_it(x); }
        void f(struct t *x) { g_signal_connect_data(button, \"clicked\", (GCallback)clicked, x, 0, 0); }";
    // Its result, the number of the handler, is no size.
    movable(&format!("{glib}{text}"));
    refused(
        &format!("{glib}{}", text.replace("struct t *x) { read_it", "struct other *x) { read_other")),
        "cast",
    );
    let swapped = "static void clicked(struct other *x, void *w) { read_other(x); }
        void f(struct t *x) { g_signal_connect_data(button, \"clicked\", (GCallback)clicked, x, 0, 2); }";
    refused(&format!("{glib}{swapped}"), "cast");
}

#[test]
fn options_of_a_transfer_carry_their_data_to_its_functions() {
    let curl = "typedef enum { CURLOPT_WRITEDATA = 10001, CURLOPT_POSTFIELDS = 10015, CURLOPT_WRITEFUNCTION = 20011 } option;
        int curl_easy_setopt(void *, option, ...);
        static unsigned long got(char *bytes, unsigned long size, unsigned long n, void *x) { return read_it(x); }\n";
    let text = "void f(void *h, struct t *x) { curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, got); curl_easy_setopt(h, CURLOPT_WRITEDATA, x); }";
    movable(&format!("{curl}{text}"));
    refused(&format!("{curl}{}", text.replace("WRITEDATA", "POSTFIELDS")), "curl_easy_setopt()");
    refused(&format!("{}{text}", curl.replace("read_it(x)", "read_other(x)")), "cast");
}

/// A library's own types are declared outside of the project.
#[test]
fn data_in_a_librarys_own_types_comes_back_as_it_went() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = "typedef struct { void *data; int kind; } uv_handle_t; typedef struct { void *data; int kind; long own; } uv_tcp_t;
        typedef struct { void *data; unsigned size; } dbt;\n";
    std::fs::write(folder.path().join("uv.h"), header).expect("writes");
    let of = |text: &str| {
        let text = format!("{TYPES}#include <uv.h>\n{text}");
        let call = format!("cc -std=gnu11 -I{} -c a.c", folder.path().display());
        let checked = Program::of(&[("a.c", &text)], &[&call]).check();
        let ty = checked.named("t").next().expect("the type t");
        (ty.freedom(), ty.uses.iter().map(|found| found.to_string()).collect::<Vec<_>>())
    };
    let text = "static void seen(uv_handle_t *h) { read_it(h->data); } void (*on)(uv_handle_t *) = seen;
        void f(uv_tcp_t *h, struct t *x) { h->data = x; }";
    assert_eq!(of(text).0, Freedom::Movable, "{:#?}", of(text).1);
    let cast = text.replace("read_it(h", "read_other(h");
    assert_eq!(of(&cast).0, Freedom::Refused, "{:#?}", of(&cast).1);
    let sized = "void f(dbt *d, struct t *x) { d->data = x; d->size = sizeof *x; }";
    assert_eq!(of(sized).0, Freedom::Refused, "{:#?}", of(sized).1);
}
