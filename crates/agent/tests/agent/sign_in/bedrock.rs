//! Bedrock: recomputes every signature from the received request, following the AWS documentation.

use std::time::Duration;

use data_encoding::{BASE64, HEXLOWER};
use retake_agent::provider::live::fetch;
use retake_agent::provider::{Fault, Wire};
use retake_testing::fault_server::{FaultServer, Request, Script, ScriptStep, events, text_answer};
use ring::{digest, hmac};
use serde_json::{Value, json};

use super::{call, endpoint, text};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const ENVIRONMENT: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", SECRET),
    ("AWS_SESSION_TOKEN", "session-token-1"),
    ("AWS_REGION", "eu-west-1"),
];
const MODEL: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

/// The CRC of frames, computed bit by bit.
fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    (!crc).to_be_bytes()
}

fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).expect("short"));
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).expect("short").to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).expect("short").to_be_bytes();
    let mut bytes = [length(16 + head.len() + payload.len()), length(head.len())].concat();
    bytes.extend(crc(&bytes));
    bytes.extend(head);
    bytes.extend_from_slice(payload.as_bytes());
    bytes.extend(crc(&bytes));
    bytes
}

/// An answer in the Anthropic wire format, in frames.
fn framed(answer: &str) -> Script {
    let acts = events(Wire::Anthropic, &text_answer(answer)).into_iter().filter_map(|event| {
        let data = event.lines().find_map(|line| line.strip_prefix("data: "))?.to_owned();
        let payload = json!({"bytes": BASE64.encode(data.as_bytes()), "p": "abcdefgh"}).to_string();
        Some(ScriptStep::Send(frame(&[(":event-type", "chunk"), (":message-type", "event")], &payload)))
    });
    let kind = ("content-type".to_owned(), "application/vnd.amazon.eventstream".to_owned());
    Script { status: 200, headers: vec![kind], acts: acts.collect() }
}

/// Checks the signature of a received request as documented by AWS.
fn verified(method: &str, request: &Request) -> Result<(), String> {
    let hex = |bytes: &[u8]| HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref());
    let mac = |key: &[u8], text: &str| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
    };
    let authorization = request.header("authorization").ok_or("no authorization")?;
    let rest = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("another algorithm")?;
    let part = |name: &str| {
        rest.split(", ").find_map(|part| part.strip_prefix(name)).ok_or_else(|| format!("no {name}"))
    };
    let (credential, signed, signature) =
        (part("Credential=")?, part("SignedHeaders=")?, part("Signature=")?);
    let scope = credential.strip_prefix("AKIDEXAMPLE/").ok_or("another key")?;
    let date = request.header("x-amz-date").ok_or("no date")?;
    // The received path is percent-encoded once more; the query has at most one pair here.
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let path: String = path
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    let headers: Vec<String> = signed
        .split(';')
        .map(|name| format!("{name}:{}\n", request.header(name).unwrap_or_default()))
        .collect();
    let canonical = format!(
        "{method}\n{path}\n{query}\n{}\n{signed}\n{}",
        headers.concat(),
        hex(request.body.as_bytes())
    );
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(canonical.as_bytes()));
    let key = scope.split('/').fold(format!("AWS4{SECRET}").into_bytes(), |key, text| mac(&key, text));
    for needed in ["host", "x-amz-date", "x-amz-security-token"] {
        if !signed.split(';').any(|name| name == needed) {
            return Err(format!("{needed} is not signed"));
        }
    }
    if HEXLOWER.encode(&mac(&key, &to_sign)) == signature { Ok(()) } else { Err(canonical) }
}

#[test]
fn a_bedrock_request_is_signed_and_its_frames_are_decoded() {
    for size in [1, 5, 100_000] {
        let server =
            FaultServer::with(vec![framed("hello from Bedrock").in_chunks_of(size)]).expect("a port");
        let config = json!({"base_url": server.url()});
        let endpoint = endpoint("bedrock", MODEL, &config, &ENVIRONMENT).expect("an endpoint");
        assert_eq!(text(&call(&endpoint).expect("an answer")), "hello from Bedrock");
        let request = &server.requests()[0];
        assert_eq!(
            request.path,
            "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
        );
        assert_eq!(verified("POST", request), Ok(()));
        // Control: changing one byte of the body invalidates the signature.
        let forged = Request { body: request.body.replace("max_tokens", "mox_tokens"), ..request.clone() };
        assert!(verified("POST", &forged).is_err());
        let body: Value = serde_json::from_str(&request.body).expect("JSON");
        assert_eq!(body, json!({"max_tokens": 5, "messages": [], "anthropic_version": "bedrock-2023-05-31"}));
        let shown = format!("{endpoint:?}");
        assert!(!shown.contains(SECRET) && !shown.contains("session-token"), "{shown}");
        assert_eq!(endpoint.redact(&format!("{SECRET} session-token-1")), "[key] [key]");
    }
}

#[test]
fn a_bedrock_api_key_is_sent_as_a_bearer_token() {
    let server = FaultServer::with(vec![framed("hello")]).expect("a port");
    let config = json!({"base_url": server.url()});
    let environment = [("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-1"), ("AWS_REGION", "us-east-1")];
    let endpoint = endpoint("bedrock", MODEL, &config, &environment).expect("an endpoint");
    assert_eq!(text(&call(&endpoint).expect("an answer")), "hello");
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer bedrock-api-key-1"));
    assert_eq!((request.header("x-api-key"), request.header("x-amz-date")), (None, None));
}

#[test]
fn bedrock_failures_are_classified() {
    let check = |script: Script, fault: Fault, words: &str| {
        let server = FaultServer::with(vec![script]).expect("a port");
        let config = json!({"base_url": server.url()});
        let error = call(&endpoint("bedrock", MODEL, &config, &ENVIRONMENT).expect("an endpoint"))
            .expect_err("no answer");
        assert_eq!(error.fault, fault, "{error}");
        assert!(error.message.contains(words), "{error}");
        assert!(!error.message.contains("session-token-1"), "{error}");
    };
    let thrown = |kind: &str, message: &str| {
        let payload = json!({"message": message}).to_string();
        ScriptStep::Send(frame(&[(":exception-type", kind), (":message-type", "exception")], &payload))
    };
    check(
        framed("hello").with_fault_after(3, thrown("throttlingException", "slow down")),
        Fault::Busy,
        "slow down",
    );
    check(framed("hello").with_fault_after(3, thrown("validationException", "bad")), Fault::Refused, "bad");
    check(framed("hello").with(2, ScriptStep::Send(vec![0, 0, 0, 1])), Fault::Protocol, "frame");
    check(
        framed("hello").with_fault_after(3, ScriptStep::Send(vec![0, 0, 0, 40])),
        Fault::Protocol,
        "ended within a frame",
    );
    check(
        Script::status(403, r#"{"message":"The security token session-token-1 is invalid."}"#),
        Fault::Key,
        "check the AWS credentials",
    );
}

#[test]
fn errors_name_the_missing_bedrock_setting() {
    let refused = |config: Value, environment: &[(&str, &str)]| {
        endpoint("bedrock", MODEL, &config, environment).expect_err("not usable")
    };
    assert!(refused(json!({}), &ENVIRONMENT[..3]).contains("AWS_REGION"));
    assert!(refused(json!({"region": "evil.test/"}), &ENVIRONMENT).contains("region"));
    assert!(refused(json!({}), &ENVIRONMENT[3..]).contains("aws configure"));
    assert!(refused(json!({"wire": "chat"}), &ENVIRONMENT).contains("wire"));
    let endpoint = endpoint("bedrock", MODEL, &json!({}), &ENVIRONMENT).expect("an endpoint");
    assert_eq!(endpoint.base_url, "https://bedrock-runtime.eu-west-1.amazonaws.com");
}

#[test]
fn the_inference_profiles_of_claude_are_the_live_models() {
    let list = json!({"inferenceProfileSummaries": [
        {"inferenceProfileId": "eu.anthropic.claude-b", "models": []},
        {"inferenceProfileId": "eu.amazon.nova", "models": []},
    ]});
    let server = FaultServer::with(vec![Script::status(200, &list.to_string())]).expect("a port");
    let config = json!({"base_url": server.url()});
    let endpoint = endpoint("bedrock", MODEL, &config, &ENVIRONMENT).expect("an endpoint");
    let found = fetch(&[*endpoint], Duration::from_secs(5));
    assert_eq!(found, [Ok(vec!["eu.anthropic.claude-b".to_owned()])]);
    let request = &server.requests()[0];
    assert_eq!(request.path, "/inference-profiles?maxResults=1000");
    assert_eq!(verified("GET", request), Ok(()));
}
