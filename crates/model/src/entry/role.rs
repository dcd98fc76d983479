//! What a role means. A role is any text; a few have a meaning that commands rely on.

/// What an entry's role makes it in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleKind {
    /// The person who asks.
    User,
    /// The model that answers.
    Assistant,
    /// Instructions.
    System,
    /// Anything else.
    Other,
}

impl RoleKind {
    /// The meaning of a role, whatever its case.
    pub fn of(role: &str) -> Self {
        match role.to_lowercase().as_str() {
            "user" | "human" => Self::User,
            "ai" | "assistant" | "model" => Self::Assistant,
            "system" | "developer" => Self::System,
            _ => Self::Other,
        }
    }
}

/// The roles that a thread starts with.
pub const DEFAULT_ROLES: [&str; 4] = ["User", "AI", "Vendor API", "System"];

/// The role of a new entry where none is given.
pub fn default_role(roles: &[String]) -> &str {
    roles.first().map_or("User", String::as_str)
}
