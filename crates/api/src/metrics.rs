//! Prometheus metrics.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Family<Route, Histogram>,
    pub(crate) connections: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) turns: Gauge,
    pub(crate) sequence: Gauge,
    pub(crate) slow_readers: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: String,
    route: String,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("retake");
        let requests = Family::<Labels, Counter>::default();
        registry.register("requests", "Requests answered", requests.clone());
        let seconds = Family::<Route, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.000_5, 2.0, 16))
        });
        registry.register("request_seconds", "Duration of requests", seconds.clone());
        let gauge = |registry: &mut Registry, name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let connections = gauge(&mut registry, "connections", "Open connections");
        let streams = gauge(&mut registry, "event_streams", "Open event streams");
        let turns = gauge(&mut registry, "turns", "Turns running in this server");
        let sequence =
            gauge(&mut registry, "last_sequence", "Sequence number of the last operation in the log");
        let slow_readers = Counter::default();
        registry.register(
            "slow_readers",
            "Connections closed because the client did not read",
            slow_readers.clone(),
        );
        Self { registry, requests, seconds, connections, streams, turns, sequence, slow_readers }
    }

    /// Counts a response. `route` is the pattern and not the path, because labels must be bounded.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let (method, route) = (method.to_owned(), route.to_owned());
        self.seconds
            .get_or_create(&Route { method: method.clone(), route: route.clone() })
            .observe(took.as_secs_f64());
        self.requests.get_or_create(&Labels { method, route, status }).inc();
    }

    /// All metrics in the `OpenMetrics` format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}
