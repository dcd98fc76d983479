//! Resolves the address and authentication of clouds, from the configuration and the environment.

#[cfg(feature = "vertex")]
use std::path::PathBuf;

use super::{ProviderConfig, ProviderEnvironment, ResolveError, variable};
use crate::provider::sign_in::TokenSource;
use crate::provider::{Platform, SignIn, Wire, platform::segment};

/// The properties of a provider on a cloud.
#[derive(Default)]
pub(super) struct PlatformProvider {
    pub(super) platform: Platform,
    /// The base of its URLs.
    pub(super) base_url: Option<String>,
    pub(super) sign_in: SignIn,
    /// Additional headers.
    pub(super) headers: Vec<(String, String)>,
}

/// The provider and model to resolve.
pub(super) struct ProviderSelection<'a> {
    pub(super) name: &'a str,
    pub(super) config: &'a ProviderConfig,
    pub(super) wire: Wire,
    pub(super) model: &'a str,
    #[cfg_attr(
        not(any(feature = "bedrock", feature = "vertex")),
        expect(dead_code, reason = "only these clouds look for other credentials")
    )]
    pub(super) has_key: bool,
}

/// The platform of a provider, from its configuration or its name.
pub(super) fn platform_of(name: &str, config: &ProviderConfig) -> Result<Platform, ResolveError> {
    match config.platform.as_deref() {
        None => Ok(Platform::of(name).unwrap_or_default()),
        Some("direct") => Ok(Platform::Direct),
        Some(given) => Platform::of(given).ok_or_else(|| ResolveError::Incomplete {
            name: name.to_owned(),
            field: "platform",
            expected: "one of azure, bedrock, vertex, direct",
        }),
    }
}

/// The default wire of a platform for a model.
pub(super) fn wire_of(platform: Platform, model: &str) -> Option<Wire> {
    match platform {
        Platform::Direct => None,
        Platform::Azure if model.starts_with("claude") => Some(Wire::Anthropic),
        Platform::Azure => Some(Wire::Responses),
        Platform::Bedrock => Some(Wire::Anthropic),
        Platform::Vertex if model.contains("claude") => Some(Wire::Anthropic),
        Platform::Vertex => Some(Wire::Gemini),
    }
}

/// Resolves the address and authentication of a provider.
pub(super) fn hosted(
    platform: Platform,
    selection: &ProviderSelection<'_>,
    variables: &ProviderEnvironment<'_>,
) -> Result<PlatformProvider, ResolveError> {
    let mut hosted = match platform {
        Platform::Direct => PlatformProvider::default(),
        Platform::Azure => azure(selection, variables)?,
        Platform::Bedrock => bedrock(selection, variables)?,
        Platform::Vertex => vertex(selection, variables)?,
    };
    if let Some(command) = &selection.config.token_command {
        hosted.sign_in = SignIn::Token(TokenSource::command(command));
    }
    Ok(PlatformProvider { platform, ..hosted })
}

/// How the user can fix a refused sign-in that uses no key.
pub(super) fn hint(platform: Platform, sign_in: &SignIn) -> Option<String> {
    let hint = match (platform, sign_in) {
        (_, SignIn::Key) => return None,
        (Platform::Bedrock, _) => {
            "check the AWS credentials, and that the account has access to the model in this region"
        }
        (Platform::Vertex, _) => {
            "check that the account may use Vertex AI in this project, and that the model is enabled there"
        }
        _ => "check what token_command writes",
    };
    Some(hint.to_owned())
}

fn azure(
    selection: &ProviderSelection<'_>,
    variables: &ProviderEnvironment<'_>,
) -> Result<PlatformProvider, ResolveError> {
    let ProviderSelection { name, config, wire, model, .. } = selection;
    let given = config.base_url.clone().or_else(|| variable(variables, "AZURE_OPENAI_ENDPOINT"));
    let given = given.ok_or_else(|| ResolveError::Incomplete {
        name: (*name).to_owned(),
        field: "base_url",
        expected: "the resource, such as https://NAME.openai.azure.com; AZURE_OPENAI_ENDPOINT is read too",
    })?;
    let (address, query) =
        given.split_once('?').map_or((given.as_str(), None), |(address, query)| (address, Some(query)));
    let address = address.trim().trim_end_matches('/');
    let path = address
        .split_once("://")
        .map_or(address, |(_, rest)| rest)
        .split_once('/')
        .map_or("", |(_, path)| path);
    // A resource without a path gets the one for its API version; an explicit path stays.
    let base = match (path.is_empty(), &config.api_version, wire) {
        (false, ..) => address.to_owned(),
        (true, _, Wire::Anthropic) => format!("{address}/anthropic"),
        (true, None, _) => format!("{address}/openai/v1"),
        (true, Some(_), Wire::Chat) => format!("{address}/openai/deployments/{}", segment(model)),
        (true, Some(_), _) => format!("{address}/openai"),
    };
    let version = config.api_version.as_ref().map(|version| format!("api-version={}", segment(version)));
    let query: Vec<String> = query.map(str::to_owned).into_iter().chain(version).collect();
    let base_url = if query.is_empty() { base } else { format!("{base}?{}", query.join("&")) };
    Ok(PlatformProvider { base_url: Some(base_url), ..PlatformProvider::default() })
}

#[cfg(feature = "bedrock")]
fn bedrock(
    selection: &ProviderSelection<'_>,
    variables: &ProviderEnvironment<'_>,
) -> Result<PlatformProvider, ResolveError> {
    use crate::provider::sign_in::aws::AwsSources;
    let ProviderSelection { name, config, wire, has_key, .. } = selection;
    if *wire != Wire::Anthropic {
        let expected = "anthropic: Retake supports only Claude on Bedrock";
        return Err(ResolveError::Incomplete { name: (*name).to_owned(), field: "wire", expected });
    }
    let variable = |name: &str| variable(variables, name);
    let sources = AwsSources {
        variable: &variable,
        profile: config.profile.as_deref(),
        region: config.region.as_deref(),
    };
    let region =
        sources.region().filter(|region| is_label(region)).ok_or_else(|| ResolveError::Incomplete {
            name: (*name).to_owned(),
            field: "region",
            expected: "a region such as us-east-1; AWS_REGION and the region of an AWS profile are read too",
        })?;
    let sign_in = if *has_key || config.token_command.is_some() {
        SignIn::Key
    } else {
        let found = sources.sign_in(&region);
        SignIn::Aws(Box::new(
            found.map_err(|hint| ResolveError::NoKey { provider: (*name).to_owned(), hint })?,
        ))
    };
    let base_url = format!("https://bedrock-runtime.{region}.amazonaws.com");
    Ok(PlatformProvider {
        base_url: Some(config.base_url.clone().unwrap_or(base_url)),
        sign_in,
        ..PlatformProvider::default()
    })
}

#[cfg(not(feature = "bedrock"))]
fn bedrock(_: &ProviderSelection<'_>, _: &ProviderEnvironment<'_>) -> Result<PlatformProvider, ResolveError> {
    Err(ResolveError::NotBuilt { platform: "Amazon Bedrock", feature: "bedrock" })
}

#[cfg(feature = "vertex")]
fn vertex(
    selection: &ProviderSelection<'_>,
    variables: &ProviderEnvironment<'_>,
) -> Result<PlatformProvider, ResolveError> {
    use crate::provider::sign_in::google::GoogleCredentials;
    let ProviderSelection { name, config, wire, .. } = selection;
    let missing = |field, expected| ResolveError::Incomplete { name: (*name).to_owned(), field, expected };
    let credentials = if selection.has_key || config.token_command.is_some() {
        None
    } else {
        let path = google_file(config, variables).ok_or_else(|| ResolveError::NoKey {
            provider: (*name).to_owned(),
            hint: format!(
                "run `gcloud auth application-default login`, set GOOGLE_APPLICATION_CREDENTIALS to the file of a \
                 service account, or set providers.{name}.credentials_file"
            ),
        })?;
        let read = GoogleCredentials::read(&path)
            .map_err(|reason| super::KeyFileError::Unreadable { path, reason })?;
        Some(read)
    };
    let environment = |names: &[&str]| names.iter().find_map(|name| variable(variables, name));
    let project = config
        .project
        .clone()
        .or_else(|| environment(&["GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"]))
        .or_else(|| {
            let credentials = credentials.as_ref()?;
            credentials.project.clone().or_else(|| credentials.quota_project.clone())
        });
    let location = config
        .region
        .clone()
        .or_else(|| environment(&["GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"]))
        .unwrap_or_else(|| "global".to_owned());
    let location = Some(location)
        .filter(|location| is_label(location))
        .ok_or_else(|| missing("region", "a location such as global or europe-west1"))?;
    let host = match location.as_str() {
        "global" => "aiplatform.googleapis.com".to_owned(),
        "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
        location => format!("{location}-aiplatform.googleapis.com"),
    };
    let publisher = if *wire == Wire::Anthropic { "anthropic" } else { "google" };
    let base_url = if let Some(given) = &config.base_url {
        given.clone()
    } else {
        let project = project.ok_or_else(|| {
            missing("project", "the id of a Google Cloud project; GOOGLE_CLOUD_PROJECT is read too")
        })?;
        let project = segment(&project);
        format!("https://{host}/v1/projects/{project}/locations/{location}/publishers/{publisher}")
    };
    // Requests with user credentials must name the project to bill.
    let payer = credentials.as_ref().and_then(|credentials| credentials.quota_project.clone());
    let headers = payer.map(|payer| ("x-goog-user-project".to_owned(), payer)).into_iter().collect();
    let sign_in =
        credentials.map_or(SignIn::Key, |credentials| SignIn::Token(TokenSource::google(credentials)));
    Ok(PlatformProvider { base_url: Some(base_url), sign_in, headers, ..PlatformProvider::default() })
}

#[cfg(not(feature = "vertex"))]
fn vertex(_: &ProviderSelection<'_>, _: &ProviderEnvironment<'_>) -> Result<PlatformProvider, ResolveError> {
    Err(ResolveError::NotBuilt { platform: "Vertex AI", feature: "vertex" })
}

/// The configured credentials file, or that of Application Default Credentials.
#[cfg(feature = "vertex")]
fn google_file(config: &ProviderConfig, variables: &ProviderEnvironment<'_>) -> Option<PathBuf> {
    let home = variable(variables, "HOME").map(PathBuf::from);
    if let Some(path) = &config.credentials_file {
        return Some(match (path.strip_prefix("~"), &home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.clone(),
        });
    }
    if let Some(path) = variable(variables, "GOOGLE_APPLICATION_CREDENTIALS") {
        return Some(PathBuf::from(path));
    }
    let folder = variable(variables, "CLOUDSDK_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| Some(home?.join(".config/gcloud")))?;
    Some(folder.join("application_default_credentials.json")).filter(|path| path.is_file())
}

/// Whether a text is safe as part of a host name: other characters could lead to another host.
#[cfg(any(feature = "bedrock", feature = "vertex"))]
fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
