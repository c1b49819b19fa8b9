//! Small charts as inline SVG, for any report.
//!
//! They take their colours from the page's style sheet (classes `s0`, `s1`, … for the series), so that they follow
//! light, dark and print; series also differ in pattern or shape. Each has a title that describes it in words.

mod curve;
mod heat;
mod histogram;
mod interval;
mod quantile;
mod run_order;
mod scale;
mod scatter;
mod steps;

pub use curve::{Curve, curves};
pub use heat::{Heat, heat_map};
pub use histogram::{Bar, HistogramSeries, histogram_overlay};
pub use interval::{IntervalMark, ratio_interval};
pub use quantile::{QuantileSeries, quantile_plot};
pub use run_order::{RunOrderSeries, run_order};
pub use scatter::scatter;
pub use steps::{Bins, CountAxis, StepSeries, step_legend, steps};
