//! Receives the forms of the pages: sends the request of the operation, and says what the answer was.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use shared::request::route::Route;
use shared::values::mask::is_secret_name;

use super::cells::query_of;
use super::described::{self, PageOperation};
use super::fields::body;
use super::markup::pretty;
use super::record::next_address;
use super::requests::location;
use super::{Asked, Console};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::http::Answer;
use crate::journal;

/// Sends the request of a form: its fields are the parameters of the operation's path and query, and members of its
/// body.
pub(super) async fn send(
    State(console): State<Arc<Console>>,
    Path(operation): Path<String>,
    Query(asked): Query<Asked>,
    given: Bytes,
) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let refused = |says: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": says})));
    let operation = described::operation(&operation).ok_or_else(|| refused("no such operation"))?;
    let organisation = console.organisation(asked.org.as_deref()).ok_or_else(|| refused("no organisation"))?;
    let given: Map<String, Value> = serde_json::from_slice(&given).map_err(|error| refused(&error.to_string()))?;
    let names: Vec<_> = operation.route.parameters().collect();
    let (of_path, others): (Vec<_>, Vec<_>) = given.into_iter().partition(|(name, _)| names.contains(&name.as_str()));
    let path: Vec<_> =
        of_path.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default())).collect();
    let mut request = ApiRequest::of(operation.route).parameters(path.iter().copied());
    if operation.route.method == "GET" {
        let texts = others.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        request = request.query(query_of(texts.filter(|(_, value)| !value.is_empty())));
    } else if !(operation.body.is_empty() && others.is_empty()) {
        request = request.body(&Value::Object(body(operation, others.into_iter().collect())));
    }
    let answer = console.api.request(organisation, request).await;
    // The form has sent its request, even if the API refuses it.
    Ok(Json(match asked.stay {
        Some(_) => line(&answer),
        None => said(organisation, operation, &path, &answer),
    }))
}

/// An answer in one line, for a form whose page stays open: the page shows no issues beside its fields.
fn line(answer: &Answer) -> Value {
    let issues = journal::issues(answer).into_iter().map(|issue| format!("{} {}", location(&issue.loc), issue.msg));
    let issues: Vec<_> = issues.collect();
    let line = format!("Answered {}. {}", answer.status, issues.join("; "));
    json!({if answer.status >= 400 { "error" } else { "message" }: line.trim_end()})
}

/// What the page says about an answer: the issues beside their fields, the place to go to, or the answer itself.
fn said(
    organisation: &OrganisationWithKey,
    operation: &PageOperation,
    path: &[(&str, &str)],
    answer: &Answer,
) -> Value {
    let line = format!("Answered {}.", answer.status);
    if answer.status >= 400 {
        let (mut issues, mut others) = (Vec::new(), line);
        for issue in journal::issues(answer) {
            match field_of(operation.route, &operation.body, &issue.loc) {
                Some((name, place)) => issues.push(json!({"field": name, "says": format!("{place}{}", issue.msg)})),
                None => others += &format!(" {} {}", location(&issue.loc), issue.msg),
            }
        }
        return json!({"error": others, "issues": issues});
    }
    let data =
        serde_json::from_str::<Value>(&answer.body).map(|mut answered| answered["data"].take()).unwrap_or_default();
    // A secret is in this one answer alone.
    let has_secret = data
        .as_object()
        .is_some_and(|members| members.iter().any(|(name, value)| is_secret_name(name) && value.is_string()));
    match next_address(organisation, operation, path, &data).filter(|_| !has_secret) {
        Some(to) => json!({"message": line, "to": to}),
        None => json!({"message": line, "answer": pretty(&data)}),
    }
}

/// The field at the location of an issue, and the place within its value.
fn field_of(route: &Route, body: &[super::fields::InputField], location: &Value) -> Option<(String, String)> {
    let [place, name, within @ ..] = location.as_array()?.as_slice() else { return None };
    let name = name.as_str()?;
    let is_field = match place.as_str()? {
        "body" => body.iter().any(|field| field.name == name),
        "path" => route.parameters().any(|parameter| parameter == name),
        "query" => route.method == "GET",
        _ => false,
    };
    let within: Vec<_> =
        within.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
    let place = if within.is_empty() { String::new() } else { format!("{}: ", within.join(".")) };
    is_field.then(|| (name.to_owned(), place))
}
