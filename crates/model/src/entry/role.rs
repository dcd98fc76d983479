//! Roles. A role is any text; commands rely on the meaning of a few.

/// The meaning of a role in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleKind {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Instructions.
    System,
    /// Anything else.
    Other,
}

impl RoleKind {
    /// Returns the meaning of a role, ignoring case.
    pub fn of(role: &str) -> Self {
        match role.to_lowercase().as_str() {
            "user" | "human" => Self::User,
            "ai" | "assistant" | "model" => Self::Assistant,
            "system" | "developer" => Self::System,
            _ => Self::Other,
        }
    }
}

/// The roles of a new thread.
pub const DEFAULT_ROLES: [&str; 4] = ["User", "AI", "Vendor API", "System"];

/// Returns the default role for new entries.
pub fn default_role(roles: &[String]) -> &str {
    roles.first().map_or("User", String::as_str)
}
