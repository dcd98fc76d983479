//! Functions of the browser's developer tools: scripts before the page's own, other window shapes, network traffic.

use fantoccini::wd::WebDriverCompatibleCommand;
use serde_json::{Value, json};

use crate::browser::{Browser, Look, Scheme};

#[derive(Debug)]
struct DevtoolsCommand {
    command: String,
    parameters: Value,
}

impl WebDriverCompatibleCommand for DevtoolsCommand {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        let body = json!({"cmd": self.command, "params": self.parameters});
        (http::Method::POST, Some(body.to_string()))
    }
}

impl Browser {
    /// Sends a developer tools command.
    pub(crate) fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.command(DevtoolsCommand { command: command.to_owned(), parameters })
    }

    /// Changes how the page is displayed.
    pub(crate) fn look_as(&self, look: Look) {
        let metrics =
            json!({"width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if look.scheme == Scheme::Dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", features);
        self.until(&format!("innerWidth === {}", look.width));
    }
}
