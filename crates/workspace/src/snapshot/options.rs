//! What a workspace holds beyond the usual, and what it does not.

/// Files that are longer are not held, unless the options say otherwise.
pub const DEFAULT_LARGEST_FILE: u64 = 100 * 1024 * 1024;

/// Patterns of what is likely to hold a secret, in the language of ignore files.
pub const SECRETS: &[&str] = &[
    ".env",
    ".env.*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "!.env.dist",
    "*.env",
    "!example.env",
    "!sample.env",
    "!template.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.kdb",
    "*.ppk",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".docker/config.json",
    ".aws/credentials",
    ".config/gcloud/",
    ".azure/",
    ".kube/config",
    ".ssh/",
    ".gnupg/",
    "credentials.json",
    "application_default_credentials.json",
    "retake-keys.json",
    ".retake-keys.json.*",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
    "secrets.yml",
    "secrets.yaml",
    "secrets.json",
    "secrets.toml",
    "*.tfvars",
    "!example.tfvars",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    ".terraformrc",
    ".vault-token",
    "*.mobileprovision",
];

/// What a workspace holds. Patterns are those of ignore files, from each root down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Held even if it is ignored or likely a secret. A pattern with a slash also opens ignored folders on its
    /// way; one without does not, for it would open all of them.
    pub include: Vec<String>,
    /// Not held.
    pub exclude: Vec<String>,
    /// Likely to hold a secret, beyond the usual ([`SECRETS`]).
    pub secrets: Vec<String>,
    /// Files that are longer are not held.
    pub largest_file: u64,
    /// On how many threads; as many as there are cores if nothing is said.
    pub threads: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            include: Vec::new(),
            exclude: Vec::new(),
            secrets: Vec::new(),
            largest_file: DEFAULT_LARGEST_FILE,
            threads: None,
        }
    }
}

impl Options {
    /// How many threads to use.
    pub(super) fn workers(&self) -> usize {
        /// More gain nothing: the file system has locks of its own.
        const MOST: usize = 16;
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(cores).clamp(1, MOST)
    }
}
