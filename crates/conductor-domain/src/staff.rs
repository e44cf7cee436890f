//! Who works with the instance from afar: operators with their ranks, and the tokens that programs carry for them (SEC-7).
//!
//! Whoever owns the data directory is no operator of this book: that person may do everything anyway. This module does
//! not know passwords, sessions or HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::{OperatorName, ProjectId, TokenId};
use crate::time::Timestamp;

/// What an operator may do; the next includes the one before. Roles are the agents' word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// Looks at everything.
    Viewer,
    /// Starts runs, answers them, stops them.
    Operator,
    /// Decides what there is to work on, what it may reach, and who works here.
    Admin,
}

impl Rank {
    /// Every rank, lowest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl std::fmt::Display for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A token that a program carries for an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Whose it is.
    pub operator: OperatorName,
    /// The most that it may do; never more than its operator.
    pub rank: Rank,
    /// The hash of its 256 random bits, which nobody can guess from it.
    pub hash: Digest,
    /// Until when.
    pub expires_at: Timestamp,
    /// The one project that it is for; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
}

/// What a token is worth now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bearer<'a> {
    /// Whose it is.
    pub operator: &'a OperatorName,
    /// What it may do.
    pub rank: Rank,
    /// The one project that it may do it in; all when absent.
    pub project: Option<&'a ProjectId>,
}

/// The operators and their tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staff {
    /// Who, with what rank.
    pub operators: BTreeMap<OperatorName, Rank>,
    /// Their tokens.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<TokenId, Token>,
}

/// Whoever comes to the pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// Whoever has the data directory, under this name; may do everything.
    Owner(OperatorName),
    /// An operator of the staff.
    Operator(OperatorName),
}

impl Holder {
    /// Tells whether two are the same to whoever ends sessions: the owner is one person, under whatever name.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Owner(_), Self::Owner(_)) => true,
            (Self::Operator(one), Self::Operator(another)) => one == another,
            (Self::Owner(_), Self::Operator(_)) | (Self::Operator(_), Self::Owner(_)) => false,
        }
    }

    /// The name.
    pub fn name(&self) -> &OperatorName {
        match self {
            Self::Owner(name) | Self::Operator(name) => name,
        }
    }
}

/// A change of the staff, or a step over the threshold of the pages, which changes nothing and is kept all the same (SEC-7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum StaffChange {
    /// Somebody comes.
    Add {
        /// Who.
        operator: OperatorName,
        /// With what rank.
        rank: Rank,
    },
    /// Somebody's rank is another one.
    Rank {
        /// Whose.
        operator: OperatorName,
        /// Which.
        rank: Rank,
    },
    /// Somebody leaves; the tokens go, too.
    Remove {
        /// Who.
        operator: OperatorName,
    },
    /// Somebody has a new password, which stands elsewhere; open sessions end.
    Password {
        /// Who.
        operator: OperatorName,
    },
    /// Somebody came in with name and password.
    SignIn {
        /// Who.
        operator: OperatorName,
    },
    /// Somebody asked for a link that opens one session.
    Link {
        /// For whom.
        holder: Holder,
    },
    /// Somebody came in by a link.
    Enter {
        /// Who.
        holder: Holder,
    },
    /// Somebody left, and one session ends.
    Leave {
        /// Who.
        holder: Holder,
    },
    /// All of somebody's links and sessions end.
    SignOut {
        /// Whose.
        holder: Holder,
    },
    /// A program gets a token.
    Issue {
        /// Its name.
        id: TokenId,
        /// What it is.
        token: Token,
    },
    /// A token is worth nothing any more.
    Revoke {
        /// Which.
        id: TokenId,
    },
}

/// Why the staff stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StaffRefusal {
    /// Somebody has that name.
    #[error("there is an operator `{0}` already")]
    OperatorExists(OperatorName),
    /// Nobody has that name.
    #[error("there is no operator `{0}`")]
    NoSuchOperator(OperatorName),
    /// A token has that name.
    #[error("there is a token `{0}` already")]
    TokenExists(TokenId),
    /// No token has that name.
    #[error("there is no token `{0}`")]
    NoSuchToken(TokenId),
}

impl StaffRefusal {
    /// The stable code; a page in `docs/error/` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::OperatorExists(_) => "CDR0220",
            Self::NoSuchOperator(_) => "CDR0221",
            Self::TokenExists(_) => "CDR0222",
            Self::NoSuchToken(_) => "CDR0223",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OperatorExists(_) => "`conductor operator rank` changes what somebody may do",
            Self::NoSuchOperator(_) => {
                "`conductor operator list` shows them; `conductor operator add` adds one"
            }
            Self::TokenExists(_) => "choose another name, or revoke that one first",
            Self::NoSuchToken(_) => "`conductor token list` shows them",
        }
    }
}

impl Staff {
    /// Tells what a token is worth now. Nothing when it is unknown, over, or its operator is gone.
    pub fn bearer(&self, hash: &Digest, now: Timestamp) -> Option<Bearer<'_>> {
        let token = self.tokens.values().find(|token| token.hash == *hash)?;
        let rank = self.operators.get(&token.operator)?;
        (now < token.expires_at).then(|| Bearer {
            operator: &token.operator,
            rank: token.rank.min(*rank),
            project: token.project.as_ref(),
        })
    }

    /// Tells whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.operators.is_empty()
    }

    /// Decides whether a change can be made, and whether it changes anything.
    pub(crate) fn accepts(&self, change: &StaffChange) -> Result<bool, StaffRefusal> {
        let known = |operator: &OperatorName| {
            self.operators
                .get(operator)
                .copied()
                .ok_or_else(|| StaffRefusal::NoSuchOperator(operator.clone()))
        };
        match change {
            StaffChange::Add { operator, .. } if self.operators.contains_key(operator) => {
                Err(StaffRefusal::OperatorExists(operator.clone()))
            }
            StaffChange::Add { .. } => Ok(true),
            StaffChange::Rank { operator, rank } => Ok(known(operator)? != *rank),
            StaffChange::Remove { operator }
            | StaffChange::Password { operator }
            | StaffChange::SignIn { operator } => known(operator).map(|_rank| true),
            StaffChange::Link { holder }
            | StaffChange::Enter { holder }
            | StaffChange::Leave { holder }
            | StaffChange::SignOut { holder } => match holder {
                Holder::Owner(_) => Ok(true),
                Holder::Operator(operator) => known(operator).map(|_rank| true),
            },
            StaffChange::Issue { id, token } => {
                known(&token.operator)?;
                if self.tokens.contains_key(id) {
                    return Err(StaffRefusal::TokenExists(id.clone()));
                }
                Ok(true)
            }
            StaffChange::Revoke { id } if self.tokens.contains_key(id) => Ok(true),
            StaffChange::Revoke { id } => Err(StaffRefusal::NoSuchToken(id.clone())),
        }
    }

    /// Folds a change in.
    pub(crate) fn fold(&mut self, change: &StaffChange) {
        match change {
            StaffChange::Add { operator, rank } | StaffChange::Rank { operator, rank } => {
                self.operators.insert(operator.clone(), *rank);
            }
            StaffChange::Remove { operator } => {
                self.operators.remove(operator);
                self.tokens.retain(|_id, token| token.operator != *operator);
            }
            StaffChange::Password { .. }
            | StaffChange::SignIn { .. }
            | StaffChange::Link { .. }
            | StaffChange::Enter { .. }
            | StaffChange::Leave { .. }
            | StaffChange::SignOut { .. } => {}
            StaffChange::Issue { id, token } => {
                self.tokens.insert(id.clone(), token.clone());
            }
            StaffChange::Revoke { id } => {
                self.tokens.remove(id);
            }
        }
    }
}
