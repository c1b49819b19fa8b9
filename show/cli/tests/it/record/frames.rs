//! Local variables stay found while calls and pushes move the stack pointer.

use super::program::{MACHINES, c};

/// Functions that return structures take the address of the result off the stack themselves on i386.
const SOURCE: &str = r#"
struct point { int x, y, z; };
struct account { int sum, count, most; };
volatile int knob = 3;
__attribute__((noinline, noclone)) struct point make(int i) { struct point p = { i, knob, i * 2 }; return p; }
__attribute__((noinline, noclone)) void use(struct account *a) { knob += a->count; }
__attribute__((noinline, noclone)) int region(int k) {
    struct account volatile a = { 0, 0, 0 };
    for (int i = 0; i < k; i++) {
        struct point p = make(i);
        a.sum = p.x + p.y;
        if (p.z >= 4) a.most = p.z;
        use((struct account *)&a);
        a.count = i;
    }
    return a.sum;
}
int main(void) { for (int i = 0; i < 4; i++) region(10); return 0; }
"#;

#[test]
fn a_structure_on_the_stack_is_named_between_calls_that_return_structures() {
    for machine in MACHINES {
        for options in [&["-static"][..], &["-O1"], &["-fno-omit-frame-pointer"]] {
            let explanation = c(machine, SOURCE, options).explain(&["region"]);
            let region = &explanation["regions"][0];
            assert_eq!(region["coverage"]["named"], 1.0, "{machine:?} {options:?}");
            let lines = region["map"].as_array().expect("a map").iter();
            let of_account = lines.filter(|line| line["type_name"] == "account");
            let parts = of_account.flat_map(|line| line["parts"].as_array().expect("parts"));
            let mut stores: std::collections::BTreeMap<&str, f64> = Default::default();
            for part in parts {
                *stores.entry(part["name"].as_str().expect("a name")).or_default() +=
                    part["stores_per_call"].as_f64().expect("stores");
            }
            // One to begin with and one per turn, of `most` from the third on.
            let wanted = [("count", 11.0), ("most", 9.0), ("sum", 11.0)];
            for (name, count) in wanted {
                assert_eq!(stores.get(name), Some(&count), "{machine:?} {options:?} {name}: {stores:?}");
            }
        }
    }
}
