//! Takes bodies, queries and ids out of requests, so that what is wrong with them is answered like everything else.
//!
//! This module does not know what they are for.

use std::str::FromStr;

use axum::extract::rejection::{BytesRejection, FailedToBufferBody, QueryRejection, RawFormRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, RawForm, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use conductor_domain::id::{InvalidId, RunId};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer};

use crate::door::MAX_BODY;
use crate::error::Error;
use crate::page::MAX_FORM;
use crate::page::trouble::Trouble;

/// A JSON body.
pub(crate) struct Posted<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Posted<T> {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| unread(rejection, MAX_BODY))?;
        // A list of the fields' values would do for serde, and is described nowhere.
        if bytes
            .trim_ascii_start()
            .first()
            .is_some_and(|first| *first == b'[')
        {
            return Err(Error::Invalid {
                what: "the body is not what is expected here: a list, where an object is".to_owned(),
            });
        }
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Error::Invalid {
                what: format!("the body is not what is expected here: {error}"),
            })
    }
}

fn unread(rejection: BytesRejection, limit: usize) -> Error {
    if let BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) = rejection {
        return Error::TooLarge { limit };
    }
    Error::Invalid {
        what: format!("the body cannot be read: {}", rejection.body_text()),
    }
}

/// A form that was filled in; an empty field is one that was left out.
pub(crate) struct Filled<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Filled<T> {
    type Rejection = Trouble;

    async fn from_request(request: Request, state: &S) -> Result<Self, Trouble> {
        let RawForm(bytes) = RawForm::from_request(request, state).await.map_err(|rejection| {
            if let RawFormRejection::BytesRejection(rejection) = rejection {
                return unread(rejection, MAX_FORM);
            }
            Error::Invalid {
                what: format!("the form cannot be read: {}", rejection.body_text()),
            }
        })?;
        serde_urlencoded::from_bytes(&bytes).map(Self).map_err(|error| {
            Error::Invalid {
                what: format!("the form is not what is expected here: {error}"),
            }
            .into()
        })
    }
}

/// Reads a number that may be left out, from a field that a browser sends empty.
pub(crate) fn or_empty<'de, D: Deserializer<'de>, T: FromStr>(from: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() {
        return Ok(None);
    }
    let unfit = || D::Error::custom(format!("`{text}` is no number that fits here"));
    text.parse().map(Some).map_err(|_| unfit())
}

/// Reads a number that databases can count to.
pub(crate) fn countable<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = u64::deserialize(from)?;
    if i64::try_from(number).is_err() {
        return Err(D::Error::custom(format!(
            "{number} is more than anything is counted to"
        )));
    }
    Ok(number)
}

/// The same for one that may be left out.
pub(crate) fn countable_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    countable(from).map(Some)
}

/// The query of an address.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let Query(query) =
            Query::from_request_parts(parts, state)
                .await
                .map_err(|rejection: QueryRejection| Error::Invalid {
                    what: rejection.body_text(),
                })?;
        Ok(Self(query))
    }
}

/// The run that an address names.
pub(crate) struct NamedRun(pub(crate) RunId);

impl<S: Send + Sync> FromRequestParts<S> for NamedRun {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let Path(id): Path<String> = Path::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Error::Invalid {
                what: rejection.body_text(),
            })?;
        RunId::parse(id).map(Self).map_err(|error| Error::Invalid {
            what: error.to_string(),
        })
    }
}

/// The name of something else that an address names.
pub(crate) struct Named<T>(pub(crate) T);

impl<S: Send + Sync, T: TryFrom<String, Error = InvalidId>> FromRequestParts<S> for Named<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let invalid = |what: String| Error::Invalid { what };
        let Path(name): Path<String> = Path::from_request_parts(parts, state)
            .await
            .map_err(|rejection| invalid(rejection.body_text()))?;
        T::try_from(name)
            .map(Self)
            .map_err(|error| invalid(error.to_string()))
    }
}
