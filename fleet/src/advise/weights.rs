//! The weight of each function of each service.

use super::joined::Key;
use crate::engine::Engine;
use crate::error::Result;
use std::collections::BTreeMap;

/// The measure of a function's weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weigh {
    /// Calls per second, added up over the hosts of the service.
    Calls,
    /// The share of its time that a host spends in the function, as samples say, added up over the hosts.
    Time,
}

impl Weigh {
    /// The unit of a weight.
    pub fn unit(self) -> &'static str {
        match self {
            Weigh::Calls => "calls per second",
            Weigh::Time => "hosts' time",
        }
    }

    /// The store's weights: the mean of a host's recordings, added up over hosts.
    pub(super) fn of_store(self, engine: &Engine) -> Result<BTreeMap<Key, f64>> {
        let column = match self {
            Weigh::Calls => "calls_per_second",
            Weigh::Time => "sampled_share",
        };
        let answer = engine.ask(&format!(
            "SELECT service, region, SUM(of_host) FROM (
               SELECT r.service, g.region, r.host, AVG(g.{column}) AS of_host
               FROM regions g JOIN runs r ON r.run = g.run WHERE g.{column} > 0
               GROUP BY r.service, g.region, r.host) hosts
             GROUP BY service, region"
        ))?;
        let (services, regions) = (answer.texts(0)?, answer.texts(1)?);
        let rows = services.into_iter().zip(regions).zip(answer.numbers(2)?);
        Ok(rows.filter_map(|((service, region), weight)| Some(((service?, region?), weight?))).collect())
    }
}
