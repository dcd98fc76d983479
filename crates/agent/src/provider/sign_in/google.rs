//! Google credentials: the key of a service account, or those of a user signed in with gcloud.
//!
//! ```text
//!   service_account   claims ─► RS256 with the private key ─► assertion ─┐
//!   authorized_user   refresh token, client ─────────────────────────────┴─► token_uri ─► token for one hour
//! ```

use std::path::Path;

use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use reqwest::Url;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::json;

use super::token::Token;
use super::{Secret, SignInError};
use crate::provider::endpoint::is_loopback;
use crate::provider::status::shorten;

/// The scope of tokens: full access to Google Cloud, as gcloud requests it.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Default token endpoint, unless the credentials name another.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// Lifetime of an assertion, the maximum that Google accepts.
const ASSERTION_SECONDS: i64 = 3600;

/// Maximum bytes read of a response.
const ANSWER_BYTES: usize = 64 * 1024;

/// Timeout of a request.
const WAIT: std::time::Duration = std::time::Duration::from_secs(20);

/// Credentials from a file.
#[derive(Clone)]
pub(crate) struct GoogleCredentials {
    account: Account,
    token_uri: Url,
    /// The project billed for a user's requests.
    pub(crate) quota_project: Option<String>,
    /// The project in the file.
    pub(crate) project: Option<String>,
}

#[derive(Clone)]
enum Account {
    Service { email: String, key_id: Option<String>, private_key: Secret },
    Person { client_id: String, client_secret: Secret, refresh_token: Secret },
}

#[derive(Deserialize)]
struct CredentialsFile {
    r#type: Option<String>,
    client_email: Option<String>,
    private_key_id: Option<String>,
    private_key: Option<String>,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    refresh_token: Option<Secret>,
    token_uri: Option<String>,
    project_id: Option<String>,
    quota_project_id: Option<String>,
}

impl GoogleCredentials {
    /// Parses a credentials file; the error is the end of a sentence about that file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let written: CredentialsFile = serde_json::from_str(text)
            .map_err(|error| format!("it is not the JSON of Google credentials ({error})"))?;
        let missing = |field: &str| format!("the field {field} is missing");
        let account = match written.r#type.as_deref() {
            Some("service_account") => Account::Service {
                email: written.client_email.ok_or_else(|| missing("client_email"))?,
                key_id: written.private_key_id,
                private_key: Secret::new(&written.private_key.ok_or_else(|| missing("private_key"))?),
            },
            Some("authorized_user") => Account::Person {
                client_id: written.client_id.ok_or_else(|| missing("client_id"))?,
                client_secret: written.client_secret.ok_or_else(|| missing("client_secret"))?,
                refresh_token: written.refresh_token.ok_or_else(|| missing("refresh_token"))?,
            },
            other => {
                let kind = shorten(other.unwrap_or("no type"));
                return Err(format!(
                    "credentials of type {kind:?} cannot be used directly; set token_command = \"gcloud auth \
                     application-default print-access-token\" instead"
                ));
            }
        };
        let token_uri = Url::parse(written.token_uri.as_deref().unwrap_or(TOKEN_URI))
            .ok()
            .filter(|url| url.scheme() == "https" || is_loopback(url))
            .ok_or("token_uri is not an https address")?;
        let (quota_project, project) = (written.quota_project_id, written.project_id);
        Ok(Self { account, token_uri, quota_project, project })
    }

    /// Reads a credentials file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Self::parse(&text)
    }

    pub(super) fn token_uri(&self) -> &Url {
        &self.token_uri
    }

    pub(super) fn name(&self) -> String {
        match &self.account {
            Account::Service { email, key_id, .. } => format!("google {} {email} {key_id:?}", self.token_uri),
            Account::Person { client_id, refresh_token, .. } => {
                // Includes the token to distinguish users of one client. The name never leaves the process
                // memory.
                format!("google {} {client_id} {}", self.token_uri, refresh_token.reveal())
            }
        }
    }

    pub(super) fn secrets(&self) -> Vec<Secret> {
        match &self.account {
            Account::Service { private_key, .. } => vec![private_key.clone()],
            Account::Person { client_secret, refresh_token, .. } => {
                vec![client_secret.clone(), refresh_token.clone()]
            }
        }
    }

    /// Fetches a new token.
    pub(super) async fn fetch(
        &self,
        connector: &reqwest::Client,
        now: Timestamp,
    ) -> Result<Token, SignInError> {
        #[derive(Deserialize)]
        struct GuardedBody {
            access_token: Option<Secret>,
            expires_in: Option<u64>,
            error: Option<String>,
            error_description: Option<String>,
        }
        let mut form = Url::parse("form:").expect("a fixed address");
        match &self.account {
            Account::Service { .. } => form
                .query_pairs_mut()
                .append_pair("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
                .append_pair("assertion", &self.assertion(now)?),
            Account::Person { client_id, client_secret, refresh_token } => form
                .query_pairs_mut()
                .append_pair("grant_type", "refresh_token")
                .append_pair("client_id", client_id)
                .append_pair("client_secret", client_secret.reveal())
                .append_pair("refresh_token", refresh_token.reveal()),
        };
        let host = self.token_uri.host_str().unwrap_or_default();
        let unreachable =
            || SignInError::unreachable(format!("{host} cannot be reached; check the network connection"));
        let asked = connector
            .post(self.token_uri.clone())
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.query().unwrap_or_default().to_owned())
            .timeout(WAIT)
            .send();
        let mut response = asked.await.map_err(|_| unreachable())?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| unreachable())? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > ANSWER_BYTES {
                return Err(SignInError::unreachable(format!("{host} returned more than a token")));
            }
        }
        let given = serde_json::from_slice::<GuardedBody>(&bytes).ok();
        if let Some(GuardedBody { access_token: Some(secret), expires_in, .. }) = given
            && status.is_success()
            && secret.is_usable()
        {
            return Ok(Token::lasting(secret, now, expires_in.unwrap_or(3600)));
        }
        if status.is_server_error() {
            return Err(SignInError::unreachable(format!("{host} failed [{}]", status.as_u16())));
        }
        let given = serde_json::from_slice::<GuardedBody>(&bytes).ok();
        let message = given.and_then(|given| given.error_description.or(given.error)).unwrap_or_default();
        let message = self
            .secrets()
            .iter()
            .fold(shorten(&message), |message, secret| secret.redact(&message).into_owned());
        let next = match &self.account {
            Account::Service { email, .. } => {
                format!("check the key of {email}, and the clock of this machine")
            }
            Account::Person { .. } => "run `gcloud auth application-default login`".to_owned(),
        };
        Err(SignInError::refused(format!(
            "Google refused the credentials ({message}) [{}]; {next}",
            status.as_u16()
        )))
    }

    /// The signed assertion that a service account exchanges for a token.
    fn assertion(&self, now: Timestamp) -> Result<String, SignInError> {
        let Account::Service { email, key_id, private_key } = &self.account else {
            return Err(SignInError::refused("only a service account signs for itself"));
        };
        let bad = |what: &str| {
            SignInError::refused(format!("the private_key of {email} {what}; download a new key"))
        };
        let key = PrivatePkcs8KeyDer::from_pem_slice(private_key.reveal().as_bytes())
            .map_err(|_| bad("is not a PKCS #8 key in PEM"))?;
        let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der())
            .map_err(|_| bad("is not an RSA key that can sign"))?;
        let mut header = json!({"alg": "RS256", "typ": "JWT"});
        if let Some(key_id) = key_id {
            header["kid"] = key_id.as_str().into();
        }
        let issued = now.as_second();
        let claims = json!({
            "iss": email,
            "scope": SCOPE,
            "aud": self.token_uri.as_str(),
            "iat": issued,
            "exp": issued + ASSERTION_SECONDS,
        });
        let encode = |value: &serde_json::Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| bad("cannot sign"))?;
        Ok(format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_credentials_are_an_error_with_an_action() {
        let check = |text: &str, words: &str| {
            let error = GoogleCredentials::parse(text).err().unwrap_or_default();
            assert!(error.contains(words), "{text}: {error}");
        };
        check("nonsense", "not the JSON");
        check("{}", "token_command");
        check(r#"{"type":"external_account"}"#, "print-access-token");
        check(r#"{"type":"service_account","client_email":"a@b"}"#, "private_key");
        check(r#"{"type":"authorized_user","client_id":"c"}"#, "client_secret");
        check(
            r#"{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r","token_uri":"http://a.test"}"#,
            "https",
        );
    }
}
