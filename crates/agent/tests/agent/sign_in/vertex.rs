//! Vertex AI: the assertion of a service account is verified with its public key; a user's token is
//! refreshed.

use data_encoding::BASE64URL_NOPAD;
use retake_agent::provider::{Fault, Wire};
use retake_testing::fault_server::{FaultServer, Request, Script, events, text_answer};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use super::{call, endpoint, text};

/// For tests only.
const PRIVATE_KEY: &str = include_str!("test-only-key.pem");
const PUBLIC_KEY: &[u8] = include_bytes!("test-only-key.der");

fn credentials(folder: &tempfile::TempDir, value: &Value) -> String {
    let path = folder.path().join("credentials.json");
    std::fs::write(&path, value.to_string()).expect("written");
    path.to_str().expect("text").to_owned()
}

/// The value of a form field.
fn field(body: &str, name: &str) -> String {
    let url = reqwest::Url::parse(&format!("form:?{body}")).expect("a form");
    let found = url.query_pairs().find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Checks signature, audience and dates of an assertion as documented by Google.
fn verified(request: &Request, observer: &str) -> Result<(), String> {
    if field(&request.body, "grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
        return Err("grant_type".to_owned());
    }
    let assertion = field(&request.body, "assertion");
    let (signed, signature) = assertion.rsplit_once('.').ok_or("no signature")?;
    let decode = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|error| error.to_string());
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, PUBLIC_KEY)
        .verify(signed.as_bytes(), &decode(signature)?)
        .map_err(|_| "the signature is wrong")?;
    let (header, claims) = signed.split_once('.').ok_or("no claims")?;
    let parse = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).map_err(|error| error.to_string());
    let (header, claims) = (parse(decode(header)?)?, parse(decode(claims)?)?);
    let expected = header == json!({"alg": "RS256", "typ": "JWT", "kid": "key-7"})
        && claims["iss"] == "robot@retake.test"
        && claims["aud"] == observer
        && claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
        && claims["exp"].as_i64() == claims["iat"].as_i64().map(|issued| issued + 3600);
    if expected { Ok(()) } else { Err(format!("{header} {claims}")) }
}

fn server(wire: Wire, token: Script) -> FaultServer {
    FaultServer::start(move |request, _| match request.path.as_str() {
        "/token" => token.clone(),
        _ if request.header("authorization") != Some("Bearer ya29.token-1") => Script::status(401, "{}"),
        _ => Script::events(events(wire, &text_answer("hello"))),
    })
    .expect("a port")
}

fn given() -> Script {
    Script::status(200, r#"{"access_token":"ya29.token-1","expires_in":3599,"token_type":"Bearer"}"#)
}

#[test]
fn a_service_account_requests_a_token_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(Wire::Anthropic, given());
    let uri = format!("{}/token", server.url());
    let account = json!({
        "type": "service_account", "project_id": "proj", "private_key_id": "key-7", "private_key": PRIVATE_KEY,
        "client_email": "robot@retake.test", "token_uri": uri,
    });
    let file = credentials(&folder, &account);
    let environment = [("GOOGLE_APPLICATION_CREDENTIALS", file.as_str())];
    let config = json!({"base_url": format!("{}/v1/projects/proj", server.url())});
    for _ in 0..2 {
        let endpoint =
            endpoint("vertex", "claude-sonnet-4-5@20250929", &config, &environment).expect("an endpoint");
        assert_eq!(text(&call(&endpoint).expect("an answer")), "hello");
        let shown = format!("{endpoint:?}");
        assert!(!shown.contains("ya29") && !shown.contains("PRIVATE"), "{shown}");
        assert_eq!(endpoint.redact("got ya29.token-1"), "got [key]");
    }
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| request.path == "/token").count(), 1, "the token is kept");
    assert_eq!(verified(&requests[0], &uri), Ok(()));
    // Control: changing one letter of the assertion invalidates it.
    let mut forged = requests[0].clone();
    forged.body = forged.body.replace("assertion=e", "assertion=f");
    assert!(verified(&forged, &uri).is_err());
    assert_eq!(requests[1].path, "/v1/projects/proj/models/claude-sonnet-4-5@20250929:streamRawPredict");
    let body: Value = serde_json::from_str(&requests[1].body).expect("JSON");
    assert_eq!((&body["anthropic_version"], &body["model"]), (&json!("vertex-2023-10-16"), &Value::Null));
}

#[test]
fn user_credentials_are_refreshed_and_charge_their_project() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(Wire::Gemini, given());
    let person = json!({
        "type": "authorized_user", "client_id": "id-1", "client_secret": "client-secret-1",
        "refresh_token": "1//refresh-1", "quota_project_id": "payer",
        "token_uri": format!("{}/token", server.url()),
    });
    let file = credentials(&folder, &person);
    let config = json!({"base_url": server.url(), "credentials_file": file});
    let endpoint = endpoint("vertex", "gemini-2.5-flash", &config, &[]).expect("an endpoint");
    assert_eq!(text(&call(&endpoint).expect("an answer")), "hello");
    let requests = server.requests();
    let sent = ["grant_type", "client_id", "client_secret", "refresh_token"]
        .map(|name| field(&requests[0].body, name));
    assert_eq!(sent, ["refresh_token", "id-1", "client-secret-1", "1//refresh-1"]);
    assert_eq!(requests[1].path, "/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(requests[1].header("x-goog-user-project"), Some("payer"));
    assert_eq!(requests[1].header("x-goog-api-key"), None);
}

#[test]
fn a_refused_sign_in_has_an_action_and_shows_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let body =
        r#"{"error":"invalid_grant","error_description":"Token 1//refresh-2 has been expired or revoked."}"#;
    let server = server(Wire::Gemini, Script::status(400, body));
    let person = json!({
        "type": "authorized_user", "client_id": "id-2", "client_secret": "client-secret-2",
        "refresh_token": "1//refresh-2", "token_uri": format!("{}/token", server.url()),
    });
    let file = credentials(&folder, &person);
    let config = json!({"base_url": server.url(), "credentials_file": file});
    let endpoint = endpoint("vertex", "gemini-2.5-flash", &config, &[]).expect("an endpoint");
    let error = call(&endpoint).expect_err("revoked");
    assert_eq!((error.fault, error.retryable), (Fault::Key, false));
    assert!(error.message.contains("gcloud auth application-default login"), "{error}");
    assert!(
        error.message.contains("[key] has been expired") && !error.message.contains("refresh-2"),
        "{error}"
    );
}

#[test]
fn vertex_addresses_follow_the_location_and_errors_name_the_missing_setting() {
    let token = |config: Value| {
        let mut config = config;
        config["token_command"] = "printf t".into();
        config
    };
    let base = |config: Value, model: &str, environment: &[(&str, &str)]| {
        endpoint("vertex", model, &token(config), environment).map(|endpoint| endpoint.base_url)
    };
    assert_eq!(
        base(json!({"project": "p"}), "gemini-2.5-flash", &[]).expect("an address"),
        "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google"
    );
    let around = [("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "europe-west1")];
    assert_eq!(
        base(json!({}), "claude-opus-4-6", &around).expect("an address"),
        "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/anthropic"
    );
    let missing = base(json!({}), "gemini-2.5-flash", &[]).expect_err("no project");
    assert!(missing.contains("GOOGLE_CLOUD_PROJECT"), "{missing}");
    let elsewhere = base(json!({"project": "p", "region": "evil.test/"}), "gemini-2.5-flash", &[]);
    assert!(elsewhere.expect_err("no location").contains("region"));
    let nobody = endpoint("vertex", "gemini-2.5-flash", &json!({"project": "p"}), &[]).expect_err("nobody");
    assert!(nobody.contains("gcloud auth application-default login"), "{nobody}");
}
