//! Options: which files a workspace captures.

/// Default size limit for captured files.
pub const DEFAULT_LARGEST_FILE: u64 = 100 * 1024 * 1024;

/// Patterns of likely secrets, in the syntax of ignore files.
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

/// Which files a workspace captures. Patterns use the syntax of ignore files, relative to each root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Captured even if ignored or a likely secret. A pattern with a slash also enters ignored folders on its path; one
    /// without does not, since it would enter all of them.
    pub include: Vec<String>,
    /// Excluded.
    pub exclude: Vec<String>,
    /// Likely secrets, in addition to [`SECRETS`].
    pub secrets: Vec<String>,
    /// Size limit; larger files are excluded.
    pub largest_file: u64,
    /// Number of threads; `None` means one per core.
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
    /// Number of threads to use.
    pub(super) fn workers(&self) -> usize {
        /// More threads gain nothing, because of locks in the file system.
        const MOST: usize = 16;
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(cores).clamp(1, MOST)
    }
}
