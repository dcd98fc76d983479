//! Error pages.

use axum::http::StatusCode;
use maud::{Markup, html};
use retake_model::object::ObjectError;
use retake_timeline::{BlameError, FileError, ReadError};
use retake_timeline::{SearchError, StoreError};

use crate::draw::document;

/// Why a page could not be rendered.
pub(crate) struct PageError {
    pub(crate) status: StatusCode,
    message: String,
}

impl PageError {
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into() }
    }

    /// A bug in the studio.
    pub(crate) fn internal() -> Self {
        let message =
            "The page could not be rendered. Your data is safe; see the server's log for details.".to_owned();
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message }
    }

    pub(crate) fn draw(&self) -> Markup {
        document(
            "Error",
            &[],
            &html! {
                main class="alone" id="failed" {
                    h1 { "This page cannot be shown" }
                    p { (self.message) }
                    p { a href="/studio" { "Back to the studio" } }
                }
            },
        )
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message: error.to_string() }
    }
}

impl From<ObjectError> for PageError {
    fn from(error: ObjectError) -> Self {
        StoreError::from(error).into()
    }
}

impl From<ReadError> for PageError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => error.into(),
            other => Self::not_found(other.to_string()),
        }
    }
}

impl From<FileError> for PageError {
    fn from(error: FileError) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message: error.to_string() }
    }
}

impl From<BlameError> for PageError {
    fn from(error: BlameError) -> Self {
        match error {
            BlameError::Read(error) => error.into(),
            other => Self::not_found(other.to_string()),
        }
    }
}

impl From<SearchError> for PageError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Store(error) => error.into(),
            other => Self::not_found(other.to_string()),
        }
    }
}
