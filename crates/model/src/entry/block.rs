//! Blocks: the parts of an entry.

use minicbor::{Decode, Encode};

use super::fields::Fields;
use crate::content::ContentId;
use crate::json::Json;

/// A part of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Block {
    /// Text, usually Markdown.
    #[n(0)]
    Text {
        /// The text.
        #[n(0)]
        text: String,
        /// Unknown fields.
        #[n(1)]
        extra: Fields,
    },
    /// The model's thinking before its answer.
    #[n(1)]
    Thinking {
        /// The thinking text.
        #[n(0)]
        text: String,
        /// The provider's signature, valid only while the entry is unedited.
        #[n(1)]
        signature: Option<String>,
        /// Unknown fields.
        #[n(2)]
        extra: Fields,
    },
    /// A tool call by the model.
    #[n(2)]
    ToolCall {
        /// The provider's id of this call.
        #[n(0)]
        call: String,
        /// The tool's name.
        #[n(1)]
        name: String,
        /// The tool's input.
        #[n(2)]
        input: Json,
        /// Unknown fields.
        #[n(3)]
        extra: Fields,
    },
    /// The result of a tool call.
    #[n(3)]
    ToolResult {
        /// The id of the call.
        #[n(0)]
        call: String,
        /// The tool's output.
        #[n(1)]
        text: String,
        /// Whether the tool failed.
        #[n(2)]
        failed: bool,
        /// Unknown fields.
        #[n(3)]
        extra: Fields,
    },
    /// A picture.
    #[n(4)]
    Image {
        /// Its media type, such as `image/png`.
        #[n(0)]
        media: String,
        /// Its bytes, as a blob.
        #[n(1)]
        blob: ContentId,
        /// Unknown fields.
        #[n(2)]
        extra: Fields,
    },
    /// A block of an unknown type, stored verbatim.
    #[n(5)]
    Unknown {
        /// Its type.
        #[n(0)]
        kind: String,
        /// All other fields.
        #[n(1)]
        extra: Fields,
    },
}

impl Block {
    /// Creates a text block.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), extra: Fields::default() }
    }

    /// Returns the text of a text block.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the blob of a picture.
    pub fn picture(&self) -> Option<ContentId> {
        match self {
            Self::Image { blob, .. } => Some(*blob),
            _ => None,
        }
    }

    /// Returns the unknown fields.
    pub fn extra(&self) -> &Fields {
        match self {
            Self::Text { extra, .. }
            | Self::Thinking { extra, .. }
            | Self::ToolCall { extra, .. }
            | Self::ToolResult { extra, .. }
            | Self::Image { extra, .. }
            | Self::Unknown { extra, .. } => extra,
        }
    }

    /// Returns the type's name in JSON.
    pub fn kind(&self) -> &str {
        match self {
            Self::Text { .. } => "text",
            Self::Thinking { .. } => "thinking",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::Image { .. } => "image",
            Self::Unknown { kind, .. } => kind,
        }
    }

    pub(super) fn size(&self) -> usize {
        let own = match self {
            Self::Text { text, .. } => text.len(),
            Self::Thinking { text, signature, .. } => text.len() + signature.as_ref().map_or(0, String::len),
            Self::ToolCall { call, name, input, .. } => call.len() + name.len() + input.as_str().len(),
            Self::ToolResult { call, text, .. } => call.len() + text.len(),
            Self::Image { media, .. } => media.len(),
            Self::Unknown { kind, .. } => kind.len(),
        };
        own + self.extra().size()
    }

    /// Appends all text that search indexes, each part on a separate line.
    pub(super) fn add_words(&self, words: &mut String) {
        let mut add = |part: &str| {
            words.push_str(part);
            words.push('\n');
        };
        match self {
            Self::Text { text, .. } | Self::Thinking { text, .. } | Self::ToolResult { text, .. } => {
                add(text);
                add("");
            }
            Self::ToolCall { name, input, .. } => {
                add(name);
                add(input.as_str());
            }
            Self::Image { media, .. } => {
                add(media);
                add("");
            }
            Self::Unknown { kind, extra } => {
                add(kind);
                extra.iter().for_each(|(_, value)| add(value.as_str()));
            }
        }
    }
}
