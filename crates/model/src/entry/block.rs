//! The parts of an entry.

use minicbor::{Decode, Encode};

use super::fields::Fields;
use crate::content::ContentId;
use crate::json::Json;

/// A part of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Block {
    /// Text, Markdown as a rule.
    #[n(0)]
    Text {
        /// The text.
        #[n(0)]
        text: String,
        /// Fields that Retake does not know.
        #[n(1)]
        extra: Fields,
    },
    /// What the model thought before it answered.
    #[n(1)]
    Thinking {
        /// The thought.
        #[n(0)]
        text: String,
        /// The provider's seal on it, which only holds while the entry is unedited.
        #[n(1)]
        signature: Option<String>,
        /// Fields that Retake does not know.
        #[n(2)]
        extra: Fields,
    },
    /// A tool that the model wants run.
    #[n(2)]
    ToolCall {
        /// The provider's name for this call.
        #[n(0)]
        call: String,
        /// The tool.
        #[n(1)]
        name: String,
        /// What the tool is given.
        #[n(2)]
        input: Json,
        /// Fields that Retake does not know.
        #[n(3)]
        extra: Fields,
    },
    /// What came of a tool call.
    #[n(3)]
    ToolResult {
        /// The call that this answers.
        #[n(0)]
        call: String,
        /// What the tool said.
        #[n(1)]
        text: String,
        /// Whether the tool failed.
        #[n(2)]
        failed: bool,
        /// Fields that Retake does not know.
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
        /// Fields that Retake does not know.
        #[n(2)]
        extra: Fields,
    },
    /// A part of a type that Retake does not know, kept as it came.
    #[n(5)]
    Unknown {
        /// Its type.
        #[n(0)]
        kind: String,
        /// All else that it holds.
        #[n(1)]
        extra: Fields,
    },
}

impl Block {
    /// A block of text.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), extra: Fields::default() }
    }

    /// The text of a text block.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The bytes of a picture.
    pub fn picture(&self) -> Option<ContentId> {
        match self {
            Self::Image { blob, .. } => Some(*blob),
            _ => None,
        }
    }

    /// Its fields that Retake does not know.
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

    /// Its type, as it is written in JSON.
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

    /// Every word that a search should find, each part on a line of its own.
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
