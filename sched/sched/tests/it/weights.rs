//! Properties of the weight tables and of the five forms of the weighted delta.

use lineup_sched::weights::delta::{Form, Likely, LoadWeight, Unlikely, scaled, unscaled};
use lineup_sched::weights::{NICE_0_WEIGHT, NICE_INVERSES, NICE_WEIGHTS, Resolution, nice_weight};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// Any number of bits is as likely as any other, so that the ends of the range are met often.
fn any_size(max_bits: u32) -> impl Strategy<Value = u64> {
    (0..=max_bits, any::<u64>()).prop_map(|(bits, value)| match bits {
        0 => 0,
        bits => (value | 1 << 63) >> (64 - bits),
    })
}

fn resolutions() -> impl Strategy<Value = Resolution> {
    prop_oneof![
        Just(Resolution::NONE),
        Just(Resolution::TEN),
        (0..=Resolution::MAX_BITS).prop_map(|bits| Resolution::new(bits).expect("within range")),
    ]
}

/// `delta · weight / over` is within the form's own bound of the rational value, everywhere it claims one.
fn within_bound(
    form: Form,
    delta: u64,
    weight: u64,
    stored: u64,
    resolution: Resolution,
) -> Result<(), TestCaseError> {
    let over = form.load_weight(stored, resolution);
    let Some(bound) = form.error_bound(delta, weight, over, resolution) else {
        prop_assert_eq!(form.checked(delta, weight, over, resolution), None);
        return Ok(());
    };
    let result = u128::from(form.apply(delta, weight, over, resolution));
    let dividend = u128::from(delta) * u128::from(weight);
    let (floor, ceiling) = (dividend / u128::from(stored), dividend.div_ceil(u128::from(stored)));
    prop_assert!(result <= floor + bound.above_ns, "{result} is above {floor} by more than {bound:?}");
    prop_assert!(ceiling <= result + bound.below_ns, "{result} is below {ceiling} by more than {bound:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn every_form_stays_within_its_bound_over_the_whole_range(
        delta in any_size(64), weight in any_size(40), stored in any_size(40), resolution in resolutions(),
    ) {
        for form in Form::ALL {
            within_bound(form, delta, weight, stored, resolution)?;
        }
    }

    #[test]
    fn a_tick_of_a_nice_task_is_off_by_nanoseconds_only(
        delta in 1..=10 * MS, nice in 0_usize..40, bits in prop_oneof![Just(0_u8), Just(10)],
    ) {
        let resolution = Resolution::new(bits).expect("within range");
        let one = NICE_0_WEIGHT << bits;
        for form in [Form::Scaled, Form::Factor, Form::Division] {
            let over = form.load_weight(NICE_WEIGHTS[nice] << bits, resolution);
            let exact = u128::from(delta) * 1024 / u128::from(NICE_WEIGHTS[nice]);
            let off = exact.abs_diff(u128::from(form.apply(delta, one, over, resolution)));
            // A product of 10 ms and 1024 has 34 bits: the second path keeps 18 of them.
            let allowed = if form == Form::Scaled { 6 + (u128::from(over.inverse) >> 17) } else { 25 };
            prop_assert!(off <= allowed, "{} is off by {off} ns", form.name());
        }
    }

    #[test]
    fn a_hint_never_changes_a_result(
        delta in any_size(50), weight in any_size(30), stored in any_size(30), resolution in resolutions(),
    ) {
        let over = Form::Scaled.load_weight(stored, resolution);
        let plain = Form::Scaled.apply(delta, weight, over, resolution);
        prop_assert_eq!(scaled::<Likely>(delta, weight, over, resolution), plain);
        prop_assert_eq!(scaled::<Unlikely>(delta, weight, over, resolution), plain);
        let over = Form::Unscaled.load_weight(stored, resolution);
        let plain = Form::Unscaled.apply(delta, weight, over, resolution);
        prop_assert_eq!(unscaled::<Likely>(delta, weight, over), plain);
        prop_assert_eq!(unscaled::<Unlikely>(delta, weight, over), plain);
    }

    #[test]
    fn scaling_up_and_down_returns_the_weight(weight in any_size(44), resolution in resolutions()) {
        let stored = resolution.scale_up(weight).expect("44 + 20 bits fit");
        prop_assert_eq!(resolution.scale_down(stored), weight);
        let kept = resolution.scale_down_kept(stored);
        prop_assert!(kept == weight || (weight == 1 && kept == 2));
    }

    #[test]
    fn no_input_makes_a_form_panic(
        delta in any::<u64>(), weight in any::<u64>(), stored in any::<u64>(), resolution in resolutions(),
    ) {
        for form in Form::ALL {
            let over = form.load_weight(stored, resolution);
            let wrapped = form.apply(delta, weight, over, resolution);
            if let Some(value) = form.checked(delta, weight, over, resolution) {
                prop_assert_eq!(value, wrapped);
            }
        }
    }
}

#[test]
fn each_nice_step_is_about_a_quarter() {
    for pair in NICE_WEIGHTS.windows(2) {
        let ratio = pair[0] as f64 / pair[1] as f64;
        assert!((1.15..1.35).contains(&ratio), "{pair:?}: {ratio}");
    }
    assert_eq!(nice_weight(0), Some(NICE_0_WEIGHT));
    assert_eq!((nice_weight(19), nice_weight(-21)), (Some(15), None));
}

#[test]
fn an_inverse_times_its_weight_is_two_to_the_32_within_half_a_weight() {
    for (weight, inverse) in NICE_WEIGHTS.iter().zip(NICE_INVERSES) {
        assert!((weight * inverse).abs_diff(1 << 32) * 2 <= *weight, "{weight}: {inverse}");
    }
    // Three of the published table's entries.
    assert_eq!((NICE_INVERSES[0], NICE_INVERSES[20], NICE_INVERSES[39]), (48_388, 4_194_304, 286_331_153));
}

#[test]
fn worked_by_hand() {
    let none = Resolution::NONE;
    // 1 ms of a task of weight 2048 passes as half a millisecond: 1024 · 10⁶ stays under 2³².
    let over = Form::Scaled.load_weight(2048, none);
    assert_eq!(over, LoadWeight { stored: 2048, inverse: 2_097_152 });
    assert_eq!(Form::Scaled.apply(MS, 1024, over, none), 500_000);
    // A group of weight 2 ages 512 times as fast.
    assert_eq!(Form::Scaled.apply(MS, 1024, Form::Scaled.load_weight(2, none), none), 512_000_000);
    // A third, where the inverse 1398101 is 1/3 too small: 10⁹ · 1024/3072 · (1 − 2.4·10⁻⁷).
    let third = Form::Scaled.load_weight(3072, none);
    assert_eq!(third.inverse, 1_398_101);
    assert_eq!(Form::Scaled.apply(1000 * MS, 1024, third, none), 333_333_254);
    assert_eq!(
        Form::Division.apply(1000 * MS, 1024, Form::Division.load_weight(3072, none), none),
        333_333_333
    );
}

#[test]
fn unscaled_weights_lose_precision_in_the_inverse() {
    let ten = Resolution::TEN;
    let queue = (50 * 1024) << 10;
    let exact = 6 * MS / 50;
    let off = |form: Form| form.apply(6 * MS, 1024 << 10, form.load_weight(queue, ten), ten).abs_diff(exact);
    // 2³² / (50·2²⁰) = 81.92 is cut to 81: one part in 89 is lost. Scaled down it is 83886.08: nothing is.
    assert_eq!(off(Form::Unscaled), 1_348);
    assert!(off(Form::Scaled) <= 1 && off(Form::Factor) <= 1 && off(Form::Division) == 0);
}

#[test]
fn overflow_is_where_each_form_says() {
    let ten = Resolution::TEN;
    let weight = 1024 << 10;
    let checked = |form: Form, delta: u64| form.checked(delta, weight, form.load_weight(weight, ten), ten);
    // 2⁴⁴ ns are 4.9 hours: the product with a 2²⁰ weight needs 65 bits, scaled down 54.
    assert_eq!(checked(Form::Division, 1 << 44), None);
    assert_eq!(checked(Form::Unscaled, 1 << 44), None);
    assert_eq!(checked(Form::Scaled, 1 << 44), Some(1 << 44));
    // The inverse of 1024 from 2³² − 1 is 4194303: one part in 2²² too small.
    assert_eq!(checked(Form::Factor, 1 << 50), Some((1 << 50) - (1 << 28)));
    // A divisor that vanished when scaled down has no quotient, except where it is kept from vanishing.
    let small = |form: Form| form.checked(MS, weight, form.load_weight(2, ten), ten);
    assert_eq!(small(Form::Scaled), None);
    assert_eq!(small(Form::Factor), Some(511_999_999));
}
