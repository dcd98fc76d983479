//! What only the browser's own tools can do: put a script before a page's own, press the window into another shape,
//! count what goes over the wire.

use fantoccini::wd::WebDriverCompatibleCommand;
use serde_json::{Value, json};

use crate::browser::{Browser, Look, Scheme};

#[derive(Debug)]
struct Asked {
    command: String,
    parameters: Value,
}

impl WebDriverCompatibleCommand for Asked {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        let body = json!({"cmd": self.command, "params": self.parameters});
        (http::Method::POST, Some(body.to_string()))
    }
}

impl Browser {
    /// Asks the browser's own tools for something.
    pub(crate) fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.command(Asked { command: command.to_owned(), parameters })
    }

    /// Looks at the page in another way from now on.
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
