//! AWS: credentials from the environment and from profiles, and signatures (Signature Version 4).
//!
//! ```text
//!   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//!   ~/.aws/credentials [PROFILE]        aws_access_key_id, aws_secret_access_key, aws_session_token
//!   ~/.aws/config      [profile PROFILE]  the same, credential_process, region
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::{Secret, SignInError};
use crate::provider::config::run_key_command;

/// The service name in signatures.
const SERVICE: &str = "bedrock";

/// The command to suggest for sign-in methods that Retake does not support.
const EXPORT: &str = "eval \"$(aws configure export-credentials --format env)\"";

/// Credentials and the region of requests.
#[derive(Clone)]
pub struct AwsSignIn {
    region: String,
    access_key: String,
    secret_key: Secret,
    session_token: Option<Secret>,
}

/// Sources of AWS credentials.
pub(crate) struct AwsSources<'a> {
    /// The environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The configured profile.
    pub(crate) profile: Option<&'a str>,
    /// The configured region.
    pub(crate) region: Option<&'a str>,
}

type Profile = BTreeMap<String, String>;

impl AwsSources<'_> {
    /// The region, from the first source that has one.
    pub(crate) fn region(&self) -> Option<String> {
        let named = self.region.map(str::to_owned);
        let around = || ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| (self.variable)(name));
        named.or_else(around).or_else(|| self.read_profile().remove("region"))
    }

    /// Credentials, or how the user can set them, as the end of a sentence.
    pub(crate) fn sign_in(&self, region: &str) -> Result<AwsSignIn, String> {
        let variable = |name: &str| (self.variable)(name);
        // A configured profile is for this provider and overrides the environment.
        if self.profile.is_none()
            && let Some(access_key) = variable("AWS_ACCESS_KEY_ID")
        {
            let secret_key = variable("AWS_SECRET_ACCESS_KEY")
                .ok_or("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not; set both")?;
            return Ok(AwsSignIn::new(
                region,
                &access_key,
                &secret_key,
                variable("AWS_SESSION_TOKEN").as_deref(),
            ));
        }
        let profile = self.read_profile();
        let name = self.profile_name();
        if let (Some(access_key), Some(secret_key)) =
            (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"))
        {
            let token = profile.get("aws_session_token").map(String::as_str);
            return Ok(AwsSignIn::new(region, access_key, secret_key, token));
        }
        if let Some(command) = profile.get("credential_process") {
            return by_process(region, command);
        }
        if profile.keys().any(|key| key.starts_with("sso_") || key == "role_arn" || key == "login_session") {
            return Err(format!(
                "the profile {name:?} signs in by a role or by single sign-on; run `{EXPORT}`, or add to the profile: \
                 credential_process = aws configure export-credentials --profile {name}"
            ));
        }
        Err(format!(
            "set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws configure`: the \
             profile {name:?} holds no keys"
        ))
    }

    fn profile_name(&self) -> String {
        let around = || (self.variable)("AWS_PROFILE");
        self.profile.map(str::to_owned).or_else(around).unwrap_or_else(|| "default".to_owned())
    }

    /// The settings of the profile in both files. Keys in the credentials file take precedence.
    fn read_profile(&self) -> Profile {
        let home = (self.variable)("HOME").map(PathBuf::from);
        let file = |name: &str, usual: &str| {
            let named = (self.variable)(name).map(PathBuf::from);
            let path = named.or_else(|| Some(home.as_ref()?.join(".aws").join(usual)))?;
            std::fs::read_to_string(path).ok()
        };
        let name = self.profile_name();
        let config = file("AWS_CONFIG_FILE", "config").unwrap_or_default();
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials").unwrap_or_default();
        let mut found = section(&config, &format!("profile {name}"));
        if name == "default" {
            found.extend(section(&config, "default"));
        }
        found.extend(section(&credentials, &name));
        found
    }
}

impl AwsSignIn {
    fn new(region: &str, access_key: &str, secret_key: &str, session_token: Option<&str>) -> Self {
        Self {
            region: region.to_owned(),
            access_key: access_key.trim().to_owned(),
            secret_key: Secret::new(secret_key),
            session_token: session_token.filter(|token| !token.trim().is_empty()).map(Secret::new),
        }
    }

    pub(super) fn secrets(&self) -> Vec<Secret> {
        std::iter::once(self.secret_key.clone()).chain(self.session_token.clone()).collect()
    }

    /// Signs a request and adds the headers.
    pub(in crate::provider) fn sign(
        &self,
        method: &str,
        url: &Url,
        headers: &mut HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> Result<(), SignInError> {
        let failed = |error: &dyn std::error::Error| {
            SignInError::refused(format!("the request cannot be signed: {error}; check the AWS credentials"))
        };
        let token = self.session_token.as_ref().map(|token| token.reveal().to_owned());
        let identity =
            Credentials::new(self.access_key.clone(), self.secret_key.reveal(), token, None, "retake").into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(SERVICE)
            .time(now)
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| failed(&error))?
            .into();
        let signed: Vec<(&str, &str)> =
            headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
        let request =
            SignableRequest::new(method, url.as_str(), signed.into_iter(), SignableBody::Bytes(body))
                .map_err(|error| failed(&error))?;
        let (instructions, _) = sign(request, &parameters).map_err(|error| failed(&error))?.into_parts();
        for (name, value) in instructions.headers() {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| failed(&error))?;
            let mut value = HeaderValue::from_str(value).map_err(|error| failed(&error))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(())
    }
}

impl std::fmt::Debug for AwsSignIn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AwsSignIn").field("region", &self.region).finish_non_exhaustive()
    }
}

/// Runs the user's `credential_process`, as the AWS tools do.
fn by_process(region: &str, command: &str) -> Result<AwsSignIn, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct GuardedBody {
        access_key_id: String,
        secret_access_key: String,
        session_token: Option<String>,
    }
    let output = run_key_command(command).map_err(|error| error.to_string())?;
    let given: GuardedBody = serde_json::from_str(output.reveal()).map_err(|_| {
        "credential_process wrote no credentials; run it by hand to see what it writes".to_owned()
    })?;
    Ok(AwsSignIn::new(region, &given.access_key_id, &given.secret_access_key, given.session_token.as_deref()))
}

/// Parses a section of a file.
fn section(text: &str, heading: &str) -> Profile {
    let mut within = false;
    let mut found = Profile::new();
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(named) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            within = named.split_whitespace().eq(heading.split_whitespace());
        } else if within
            && !line.starts_with(['#', ';', ' ', '\t'])
            && let Some((key, value)) = line.split_once('=')
        {
            // A comment must follow white space, because keys may contain these characters.
            let value = [" #", " ;", "\t#", "\t;"]
                .iter()
                .fold(value, |value, sign| value.split(sign).next().unwrap_or(value));
            found.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_request_matches_the_published_signature() {
        // The request, time and keys of `get-vanilla` in the AWS signature test suite.
        let sign_in =
            AwsSignIn::new("us-east-1", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None);
        let url = Url::parse("https://example.amazonaws.com/").expect("an address");
        let mut headers = HeaderMap::new();
        let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_mins(24_015_636);
        sign_in.sign("GET", &url, &mut headers, b"", now).expect("signed");
        let authorization = headers["authorization"].to_str().expect("text");
        let scope = "Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request";
        assert!(authorization.contains(scope), "{authorization}");
        assert!(authorization.ends_with(&format!("Signature={}", by_recipe())), "{authorization}");
    }

    /// The algorithm of the AWS documentation, with `ring`.
    fn by_recipe() -> String {
        use ring::{digest, hmac};
        let hex = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
        let mac = |key: &[u8], text: &str| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
        };
        let signature = |service: &str| {
            let empty = hex(digest::digest(&digest::SHA256, b"").as_ref());
            let canonical = format!(
                "GET\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n{empty}"
            );
            let hashed = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
            let to_sign = format!(
                "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/{service}/aws4_request\n{hashed}"
            );
            let key = mac(b"AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830");
            let key = ["us-east-1", service, "aws4_request"].iter().fold(key, |key, text| mac(&key, text));
            hex(&mac(&key, &to_sign))
        };
        // Check the algorithm itself against the signature that AWS publishes for the vector.
        assert_eq!(signature("service"), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
        signature(SERVICE)
    }

    #[test]
    fn credentials_are_found_like_by_the_aws_tools() {
        let folder = tempfile::tempdir().expect("a folder");
        let (config, credentials) = (folder.path().join("config"), folder.path().join("credentials"));
        std::fs::write(
            &config,
            "[default]\nregion = eu-west-1 # here\n[profile work]\nregion=us-west-2\ncredential_process = printf \
             '{\"Version\":1,\"AccessKeyId\":\"A3\",\"SecretAccessKey\":\"S3\",\"SessionToken\":\"T3\"}'\n[profile \
             sso]\nsso_session = corp\n",
        )
        .expect("written");
        std::fs::write(
            &credentials,
            "; mine\n[default]\naws_access_key_id = A2\naws_secret_access_key=S2#x\n",
        )
        .expect("written");
        let check = |environment: &[(&str, &str)], profile: Option<&str>, region: &str, expected: &str| {
            let variable = |name: &str| match name {
                "AWS_CONFIG_FILE" => config.to_str().map(str::to_owned),
                "AWS_SHARED_CREDENTIALS_FILE" => credentials.to_str().map(str::to_owned),
                _ => {
                    environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
                }
            };
            let sources = AwsSources { variable: &variable, profile, region: None };
            assert_eq!(sources.region().unwrap_or_default(), region, "{environment:?}");
            let found = match sources.sign_in(region) {
                Ok(found) => {
                    let token = found.session_token.as_ref().map_or("", Secret::reveal);
                    format!("{} {} {token}", found.access_key, found.secret_key.reveal())
                }
                Err(hint) => hint,
            };
            assert!(found.contains(expected), "{found}");
        };
        check(&[], None, "eu-west-1", "A2 S2#x ");
        let both =
            [("AWS_ACCESS_KEY_ID", "A1"), ("AWS_SECRET_ACCESS_KEY", "S1"), ("AWS_SESSION_TOKEN", "T1")];
        check(&both, None, "eu-west-1", "A1 S1 T1");
        check(&both, Some("work"), "us-west-2", "A3 S3 T3");
        check(&both[..1], None, "eu-west-1", "AWS_SECRET_ACCESS_KEY is not; set both");
        check(&[("AWS_PROFILE", "sso"), ("AWS_REGION", "r")], None, "r", "export-credentials");
        check(&[("AWS_PROFILE", "nobody")], None, "", "aws configure");
    }
}
