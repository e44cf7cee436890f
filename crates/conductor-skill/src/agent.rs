//! Where known agents look for skills, below the home directory of whoever runs them.
//!
//! An agent that is not listed is reached by `path`. This module does not know whether an agent is installed.

/// Agents and their directories of skills.
const AGENTS: [(&str, &str); 12] = [
    ("claude-code", "~/.claude/skills"),
    ("codex", "~/.codex/skills"),
    ("gemini-cli", "~/.gemini/skills"),
    ("cursor", "~/.cursor/skills"),
    ("github-copilot", "~/.copilot/skills"),
    ("opencode", "~/.config/opencode/skills"),
    ("goose", "~/.config/goose/skills"),
    ("amp", "~/.config/agents/skills"),
    ("kimi-cli", "~/.config/agents/skills"),
    ("qwen-code", "~/.qwen/skills"),
    ("windsurf", "~/.codeium/windsurf/skills"),
    ("universal", "~/.agents/skills"),
];

/// The agent whose directory is meant when none is named.
pub const DEFAULT: &str = "claude-code";

/// Finds an agent's directory of skills.
pub fn directory(agent: &str) -> Option<&'static str> {
    AGENTS
        .iter()
        .find(|(name, _)| *name == agent)
        .map(|(_, directory)| *directory)
}

/// Every agent that is known.
pub fn names() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().map(|(name, _)| *name)
}
