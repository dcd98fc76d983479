//! Error pages.

use axum::http::StatusCode;
use maud::{Markup, html};
use retake_model::object::Unavailable;
use retake_timeline::store::{SearchError, StoreError};
use retake_timeline::{BlameError, FileError, LookError};

use crate::draw::document;

/// Why a page could not be rendered.
pub(crate) struct Failed {
    pub(crate) status: StatusCode,
    said: String,
}

impl Failed {
    pub(crate) fn not_found(said: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, said: said.into() }
    }

    /// A bug in the studio.
    pub(crate) fn broken() -> Self {
        let said =
            "The page could not be rendered. Your data is safe; see the server's log for details.".to_owned();
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, said }
    }

    pub(crate) fn draw(&self) -> Markup {
        document(
            "Error",
            &[],
            &html! {
                main class="alone" id="failed" {
                    h1 { "This page cannot be shown" }
                    p { (self.said) }
                    p { a href="/studio" { "Back to the studio" } }
                }
            },
        )
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, said: error.to_string() }
    }
}

impl From<Unavailable> for Failed {
    fn from(error: Unavailable) -> Self {
        StoreError::from(error).into()
    }
}

impl From<LookError> for Failed {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Store(error) => error.into(),
            other => Self::not_found(other.to_string()),
        }
    }
}

impl From<FileError> for Failed {
    fn from(error: FileError) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, said: error.to_string() }
    }
}

impl From<BlameError> for Failed {
    fn from(error: BlameError) -> Self {
        match error {
            BlameError::Look(error) => error.into(),
            other => Self::not_found(other.to_string()),
        }
    }
}

impl From<SearchError> for Failed {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Store(error) => error.into(),
            other => Self::not_found(other.to_string()),
        }
    }
}
