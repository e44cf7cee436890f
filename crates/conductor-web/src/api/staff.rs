//! The words about who works here.
//!
//! This module does not know who may say them.

use conductor_domain::id::{OperatorName, ProjectId, TokenId};
use conductor_domain::staff::Rank;
use conductor_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorView {
    /// The name.
    #[schemars(with = "String")]
    pub name: OperatorName,
    /// `viewer`, `operator` or `admin`.
    #[schemars(with = "String")]
    pub rank: Rank,
}

/// Everybody who works here from afar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorList {
    /// By name.
    pub operators: Vec<OperatorView>,
}

/// Adds an operator.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddOperator {
    /// The name.
    #[schemars(with = "String")]
    pub name: OperatorName,
    /// `viewer`, `operator` or `admin`.
    #[schemars(with = "String")]
    pub rank: Rank,
    /// The first password, of 12 characters or more.
    pub password: String,
}

impl std::fmt::Debug for AddOperator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddOperator")
            .field("name", &self.name)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

/// Changes what an operator may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeRank {
    /// `viewer`, `operator` or `admin`.
    #[schemars(with = "String")]
    pub rank: Rank,
}

/// Sets an operator's password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPassword {
    /// The new one, of 12 characters or more.
    pub password: String,
}

/// Ends somebody's links and sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignOut {
    /// Whose; your own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub operator: Option<OperatorName>,
}

impl std::fmt::Debug for SetPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetPassword").finish_non_exhaustive()
    }
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// Its name.
    #[schemars(with = "String")]
    pub id: TokenId,
    /// Whose it is.
    #[schemars(with = "String")]
    pub operator: OperatorName,
    /// The most that it may do.
    #[schemars(with = "String")]
    pub rank: Rank,
    /// Until when.
    #[schemars(with = "i64")]
    pub expires_at: Timestamp,
    /// The one project that it is for; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub project: Option<ProjectId>,
}

/// The tokens: one's own, and for admins everybody's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// By name.
    pub tokens: Vec<TokenView>,
}

/// Asks for a token that a program can carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssueToken {
    /// Its name.
    #[schemars(with = "String")]
    pub id: TokenId,
    /// The most that it may do: `viewer`, `operator` or `admin`; never more than whoever asks.
    #[schemars(with = "String")]
    pub rank: Rank,
    /// For how many days, 1 to 365; 30 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
    /// For whom, when an admin asks for somebody else; for oneself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub operator: Option<OperatorName>,
    /// The one project whose runs it may see and steer; all, and everything else of its rank, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub project: Option<ProjectId>,
}

/// A new token with its secret, which is shown this once and kept nowhere.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedToken {
    /// What was issued.
    pub token: TokenView,
    /// What a program sends as `Authorization: Bearer <secret>`.
    pub secret: String,
}

impl std::fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedToken")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
