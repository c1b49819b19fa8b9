//! Answers to clients: equal whatever the order of connections, different where a byte is that does not vary by itself.

use lineup_prove::effects::{ConnectionCollector, Effects, EffectsAgreement, RepeatedEffects};

/// A run whose clients asked and were answered so, one list for each connection.
fn serves(connections: &[&[(&str, &str)]]) -> Effects {
    let mut collector = ConnectionCollector::new(b"");
    for exchanges in connections {
        let number = collector.accepted();
        collector.called(number, "setsockopt level 6 option 1 01000000");
        for (request, answer) in *exchanges {
            collector.received(number, request.as_bytes());
            collector.sent(number, answer.as_bytes());
        }
    }
    Effects { connections: collector.finish(), ..Effects::default() }
}

fn runs(first: Effects, second: Effects) -> RepeatedEffects {
    RepeatedEffects { first, others: vec![second] }
}

fn left_out(agreement: &EffectsAgreement) -> Vec<(&str, &str)> {
    agreement.not_compared().iter().map(|one| (one.effect.as_str(), one.share.as_str())).collect()
}

/// Two clients, each of which asks for its own thing twice.
fn two_clients(answer: impl Fn(&str, u32) -> String, swapped: bool) -> Effects {
    let [a1, a2] = [1, 2].map(|turn| answer("a", turn));
    let [b1, b2] = [1, 2].map(|turn| answer("b", turn));
    let a: &[(&str, &str)] = &[("get a\n", &a1), ("get a\n", &a2)];
    let b: &[(&str, &str)] = &[("get b\n", &b1), ("get b\n", &b2)];
    if swapped { serves(&[b, a]) } else { serves(&[a, b]) }
}

#[test]
fn the_order_of_connections_does_not_count() {
    let plain = |swapped| two_clients(|name, turn| format!("{name}{turn}\n"), swapped);
    let agreement = runs(plain(false), plain(true)).agreement(&runs(plain(true), plain(true))).unwrap();
    assert_eq!(
        agreement.compared(),
        [
            "4 of 4 answers on 2 connections, each by its place in what a client asked",
            "other calls on connections"
        ]
    );
    assert!(left_out(&agreement).is_empty());
}

#[test]
fn an_answer_that_went_to_the_wrong_client_is_found() {
    let right = |swapped| two_clients(|name, turn| format!("{name}{turn}\n"), swapped);
    let wrong = two_clients(|name, turn| format!("{}{turn}\n", if name == "a" { "b" } else { "a" }), false);
    let found = runs(right(false), right(true)).agreement(&runs(wrong.clone(), wrong)).unwrap_err();
    assert!(found.effect.starts_with("answers to `get "), "{found}");
    assert!(found.how.starts_with("offset 0: "), "{found}");
}

#[test]
fn ids_and_times_are_left_out_by_their_place_in_an_answer() {
    let at = |ids: [u32; 4], value: u32| {
        let text = move |name: &str, turn: u32| {
            let id = ids[(turn as usize - 1) + if name == "a" { 0 } else { 2 }];
            format!("{name} id={id:08x} value={value}\n")
        };
        two_clients(text, ids[0].is_multiple_of(2))
    };
    let before = runs(at([1, 0x50, 7, 9], 5), at([0x22, 4, 8, 0x30], 5));
    let after = runs(at([3, 6, 0x11, 0x12], 5), at([0x70, 0x80, 0x13, 0x14], 5));
    let agreement = before.agreement(&after).unwrap();
    assert_eq!(agreement.compared()[0].split(" answers").next(), Some("4 of 4"));
    assert_eq!(left_out(&agreement), [("answers to `get a` and 3 more requests", "bytes 5 to 12 of 22")]);
    let after = runs(at([3, 6, 0x11, 0x12], 6), at([0x70, 0x80, 0x13, 0x14], 6));
    let found = before.agreement(&after).unwrap_err();
    assert_eq!(found.how, "offset 20: 35 0a against 36 0a (22 bytes)");
    assert!(found.varies);
}

#[test]
fn clients_that_share_their_requests_otherwise_in_each_run_are_compared_by_request() {
    let ping = ("ping\n", "pong\n");
    let spread = |first: usize, answer: &'static str| {
        let all = vec![ping; 9];
        let mut all: Vec<(&str, &str)> = all;
        all[4] = ("name\n", answer);
        let (one, other) = all.split_at(first);
        serves(&[one, other])
    };
    let before = runs(spread(3, "lineup\n"), spread(6, "lineup\n"));
    let agreement =
        before.agreement(&runs(spread(2, "lineup\n"), spread(5, "lineup\n"))).expect("equal answers");
    assert_eq!(agreement.compared()[0], "9 of 9 answers on 2 connections, by request, on any connection");
    let found = before.agreement(&runs(spread(2, "lineap\n"), spread(5, "lineap\n"))).unwrap_err();
    assert_eq!(found.to_string(), "answers to `name`: offset 4: 75 70 0a against 61 70 0a (7 bytes)");
}

#[test]
fn requests_that_are_cut_otherwise_are_compared_as_the_stream_that_they_are() {
    let cut = |parts: &[(&'static str, &'static str)]| serves(&[parts]);
    let together = cut(&[("a\nb\n", "A\nB\n")]);
    let apart = cut(&[("a\n", "A\n"), ("b\n", "B\n")]);
    let agreement = runs(together.clone(), apart.clone()).agreement(&runs(apart.clone(), apart)).unwrap();
    assert_eq!(agreement.compared()[0], "1 of 1 answers on 1 connections, by all that each client sent");
    let wrong = cut(&[("a\n", "A\n"), ("b\n", "C\n")]);
    let found = runs(together.clone(), together).agreement(&runs(wrong.clone(), wrong)).unwrap_err();
    assert!(found.how.starts_with("offset 2: 42"), "{found}");
}

#[test]
fn random_requests_are_compared_by_their_form() {
    let asks = |keys: [u32; 3], answer: &'static str| {
        let requests = keys.map(|key| format!("get key:{key}\n"));
        let exchanges: Vec<(&str, &str)> = requests.iter().map(|one| (one.as_str(), answer)).collect();
        serves(&[&exchanges])
    };
    let before = runs(asks([1, 2, 3], "none\n"), asks([4, 2, 5], "none\n"));
    let agreement = before.agreement(&runs(asks([6, 2, 7], "none\n"), asks([8, 9, 2], "none\n"))).unwrap();
    assert_eq!(agreement.compared()[0], "3 of 3 answers on 1 connections, by request, on any connection");
    let found = before.agreement(&runs(asks([6, 2, 7], "some\n"), asks([8, 9, 2], "some\n"))).unwrap_err();
    assert!(found.effect.starts_with("answers to requests of the form `get key:#`"), "{found}");
}

#[test]
fn a_lost_answer_and_a_lost_connection_are_found() {
    let three = serves(&[&[("a\n", "A\n"), ("a\n", "A\n"), ("a\n", "A\n")]]);
    let two = serves(&[&[("a\n", "A\n"), ("a\n", "A\n"), ("a\n", "")]]);
    let twice = |effects: &Effects| runs(effects.clone(), effects.clone());
    let found = twice(&three).agreement(&twice(&two)).unwrap_err();
    assert!(found.effect.starts_with("answers to `a\\n`"), "{found}");
    let none = serves(&[]);
    let found = twice(&three).agreement(&twice(&none)).unwrap_err();
    assert_eq!(found.to_string(), "number of connections: 1 against 0");
}

#[test]
fn another_call_on_a_connection_is_found() {
    let with = |option: &str| {
        let mut collector = ConnectionCollector::new(b"");
        let number = collector.accepted();
        collector.called(number, option);
        let effects = Effects { connections: collector.finish(), ..Effects::default() };
        runs(effects.clone(), effects)
    };
    let found = with("setsockopt 1").agreement(&with("setsockopt 2")).unwrap_err();
    assert_eq!(found.effect, "other calls on connections");
}
