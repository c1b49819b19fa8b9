//! The place of a store: a folder, or a URL of an object store. Paths in it begin at the store.

use crate::error::{FleetError, Result};
use crate::folder::Folder;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, Error, ObjectStore, ObjectStoreScheme, RetryConfig};
use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::{Position, Url};

/// The number and duration of retries: an absent server is reported within half a minute.
const RETRIES: usize = 5;
const RETRIED_FOR: Duration = Duration::from_secs(30);

/// Variables that object stores are set up by.
const VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// Parts of the names of secret environment variables.
const SECRET: [&str; 6] = ["KEY", "SECRET", "TOKEN", "PASSWORD", "CREDENTIAL", "SAS"];

/// Shorter values are no secrets, and occur in other words.
const SHORTEST_SECRET: usize = 6;

/// The supported places, for messages.
const KNOWN: &str = "a store is a folder, or a URL of s3://, gs://, az:// or abfs://, or for reading http:// or https:// of a WebDAV server";

/// The place that `--store` names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// A folder of this machine.
    Folder(PathBuf),
    /// An object store, of this kind, and where in it.
    Bucket(Box<Url>, ObjectStoreScheme, ObjectPath),
}

impl Place {
    /// The place for a path or a URL.
    pub(crate) fn of(given: &str) -> Result<Place> {
        if !given.contains("://") {
            return Ok(Place::Folder(given.into()));
        }
        // Without the given text: it may hold a password.
        let hidden = |why: &str| FleetError::StoreUrl { given: "the URL of --store".into(), why: why.into() };
        let url = Url::parse(given).map_err(|cause| hidden(&cause.to_string()))?;
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(hidden(
                "no user, password, query or fragment: credentials come from the environment",
            ));
        }
        let wrong = |why: &str| FleetError::StoreUrl { given: given.to_owned(), why: why.into() };
        match ObjectStoreScheme::parse(&url) {
            Ok((ObjectStoreScheme::Local, _)) => {
                url.to_file_path().map(Place::Folder).map_err(|()| wrong("a file URL has a whole path"))
            }
            Ok((ObjectStoreScheme::Memory, _)) | Err(_) => Err(wrong(KNOWN)),
            Ok((scheme, path)) => Ok(Place::Bucket(Box::new(url), scheme, path)),
        }
    }

    /// Whether files can be made here. A web server cannot promise that a file is new.
    pub(crate) fn takes_files(&self) -> bool {
        !matches!(self, Place::Bucket(_, ObjectStoreScheme::Http, _))
    }

    /// The place for Ballista's programs, when they can reach it: a folder that ends with `/`.
    pub(crate) fn for_ballista(&self) -> Option<Url> {
        let mut url = match self {
            Place::Folder(folder) => {
                return Url::from_directory_path(std::path::absolute(folder).ok()?).ok();
            }
            Place::Bucket(url, ObjectStoreScheme::AmazonS3, _) if url.scheme() == "s3" => (**url).clone(),
            Place::Bucket(url, ObjectStoreScheme::Http, _) => (**url).clone(),
            Place::Bucket(..) => return None,
        };
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Some(url)
    }

    /// The object store at this place.
    pub(crate) fn objects(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        match self {
            Place::Folder(folder) => Ok(Arc::new(Folder::at(folder)?)),
            Place::Bucket(url, scheme, path) => {
                Ok(Arc::new(PrefixStore::new(bucket(url, scheme)?, path.clone())))
            }
        }
    }
}

/// An object store, set up by the environment.
fn bucket(url: &Url, scheme: &ObjectStoreScheme) -> Result<Arc<dyn ObjectStore>, Error> {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRIED_FOR, ..RetryConfig::default() };
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => {
            Arc::new(AmazonS3Builder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            Arc::new(GoogleCloudStorageBuilder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            Arc::new(MicrosoftAzureBuilder::from_env().with_url(url.as_str()).with_retry(retry).build()?)
        }
        _ => {
            // The user has said so by the URL, and nothing secret is sent.
            let plain = ClientOptions::new().with_allow_http(url.scheme() == "http");
            let server = &url[..Position::BeforePath];
            Arc::new(
                HttpBuilder::new().with_url(server).with_client_options(plain).with_retry(retry).build()?,
            )
        }
    })
}

/// A message without the environment's credentials: servers send back the request.
pub fn without_secrets(message: &str) -> String {
    let is_secret = |name: &str| {
        VARIABLES.iter().any(|start| name.starts_with(start)) && SECRET.iter().any(|part| name.contains(part))
    };
    let said = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let secrets = said.filter(|(name, value)| is_secret(name) && value.len() >= SHORTEST_SECRET);
    secrets.fold(message.to_owned(), |message, (name, value)| message.replace(&value, &format!("<{name}>")))
}
