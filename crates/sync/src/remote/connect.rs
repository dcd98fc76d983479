//! Opens a remote by its address.

use super::s3::{BucketAddress, BucketRemote};
use super::{FolderRemote, HubRemote, OpenRemoteError, Remote, RemoteError};
use crate::config::{Address, RemoteConfig};

/// Credentials of a remote. Never part of an address or a configuration.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The token of a hub, or the secret key of a bucket.
    pub secret: Option<String>,
    /// The access key of a bucket.
    pub access_key: Option<String>,
}

/// Whether a place that is no remote yet becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must be one.
    Existing,
    /// An empty place becomes one.
    Create,
}

/// Opens a remote.
pub fn connect(
    config: &RemoteConfig,
    credentials: &Credentials,
    mode: OpenMode,
) -> Result<Box<dyn Remote>, OpenRemoteError> {
    match config.url.parse::<Address>()? {
        Address::Folder(folder) => Ok(match mode {
            OpenMode::Existing => Box::new(FolderRemote::in_folder(&folder)?),
            OpenMode::Create => Box::new(FolderRemote::create_in_folder(&folder)?),
        }),
        Address::Bucket { bucket, prefix } => {
            let region = config.region.clone().unwrap_or_else(|| "us-east-1".to_owned());
            let address = BucketAddress { bucket, prefix, endpoint: config.endpoint.clone(), region };
            Ok(Box::new(BucketRemote::in_bucket(&address, credentials, mode)?))
        }
        Address::Hub(address) => {
            let missing = || RemoteError::Unauthorized {
                place: address.clone(),
                reason: "this device is not logged in; run `retake remote login`".to_owned(),
            };
            let token = credentials.secret.as_deref().ok_or_else(missing)?;
            Ok(Box::new(HubRemote::open(&address, token)?))
        }
    }
}
