//! Prometheus metrics.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Family<Route, Histogram>,
    pub(super) connections: Gauge,
    pub(super) streams: Gauge,
    pub(super) limited: Counter,
    pub(super) bytes_in: Counter,
    pub(super) bytes_out: Counter,
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
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("retake_hub");
        let requests = Family::<Labels, Counter>::default();
        registry.register("requests", "Requests answered", requests.clone());
        let seconds = Family::<Route, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.000_5, 2.0, 16))
        });
        registry.register("request_seconds", "Duration of requests", seconds.clone());
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let streams = Gauge::default();
        registry.register("feeds", "Devices that wait for news", streams.clone());
        let counter = |registry: &mut Registry, name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let limited = counter(&mut registry, "limited", "Requests refused by a rate limit");
        let bytes_in = counter(&mut registry, "received_bytes", "Bytes of request bodies");
        let bytes_out = counter(&mut registry, "sent_bytes", "Bytes of response bodies");
        Self { registry, requests, seconds, connections, streams, limited, bytes_in, bytes_out }
    }

    /// Counts a response. `route` is the pattern and not the path, because labels must be bounded.
    pub(super) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let (method, route) = (method.to_owned(), route.to_owned());
        let labels = Route { method: method.clone(), route: route.clone() };
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        self.requests.get_or_create(&Labels { method, route, status }).inc();
    }

    /// All metrics in the `OpenMetrics` format.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}
