//! The roles of the functions, as IAM enforces them: the database and the bucket refuse calls that the role of the
//! calling function does not allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use shared::table::keys::{PK, RATE};
use tokio::task_local;

use crate::Trouble;
use crate::bucket::{FAILED_RECORDS_BUCKET, FAILED_RECORDS_NAME};
use crate::template::{EventSource, Permission, Template};

task_local! {
    /// The function that this task runs.
    static FUNCTION: String;
}

/// Gets a function, a permission that it needs, and whether its role has it. Decides whether the call is made.
pub type Permit = fn(&str, &str, bool) -> bool;

/// The calls that each function may make.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// By function: `dynamodb:PutItem` on the table, `dynamodb:Query index/Due` on one of its indexes,
    /// `dynamodb:UpdateItem RATE#*` on the items whose partition key begins so, `s3:PutObject` on the objects of the
    /// bucket of files, `s3:PutObject FailedRecordsBucket` on the objects of the other one, and so on.
    allowed: Arc<BTreeMap<String, BTreeSet<String>>>,
    permit: Option<Permit>,
}

/// Runs `work` as the function of this name.
pub async fn as_function<T>(name: &str, work: impl Future<Output = T>) -> T {
    // Boxed: otherwise each caller would contain the memory of the function.
    FUNCTION.scope(name.to_owned(), Box::pin(work)).await
}

impl Roles {
    /// The roles of a template. If there is a `permit`, it decides instead of them.
    ///
    /// # Errors
    /// [`Trouble`] where the code cannot interpret a statement about the table or the bucket.
    pub fn of(template: &Template, permit: Option<Permit>) -> Result<Self, Trouble> {
        // Lambda puts the batches that a function on the stream gave up into a bucket, with the permissions of that
        // function. The function itself makes no such call.
        let is_lambda_s = |function: &str, permission: &Permission| {
            let of = |source: &EventSource| source.function == function && source.destination.is_some();
            permission.resource.contains(FAILED_RECORDS_BUCKET) && template.sources.iter().any(of)
        };
        let allowed = template.permissions.iter().map(|(function, permissions)| {
            let of_function = permissions.iter().filter(|permission| !is_lambda_s(function, permission));
            let allowed: Result<Vec<_>, _> = of_function.map(allowed).collect();
            Ok((function.clone(), allowed?.into_iter().flatten().collect()))
        });
        Ok(Self { allowed: Arc::new(allowed.collect::<Result<_, Trouble>>()?), permit })
    }

    /// The calls that each function may make.
    pub fn allowed(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.allowed
    }

    /// `inner`, which gets only calls that the role of the calling function allows. Calls from outside a function are
    /// not checked.
    pub fn connector(&self, inner: SharedHttpConnector) -> SharedHttpConnector {
        SharedHttpConnector::new(RoleConnector { roles: self.clone(), inner })
    }

    /// A permission that a function lacks for the signed addresses in an answer: a request to such an address has the
    /// permissions of the role that signed it.
    pub fn lacks_for_addresses(&self, function: &str, body: &str) -> Option<String> {
        if !body.contains("X-Amz-Signature=") {
            return None;
        }
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let upload = body["data"]["upload"]["method"].as_str();
        let download = body["data"]["download_url"].as_str().map(|_| "GET");
        let needed = upload.into_iter().chain(download).flat_map(|method| of_object(object_action(method)));
        needed.into_iter().find(|permission| !self.permits(function, permission))
    }

    fn permits(&self, function: &str, permission: &str) -> bool {
        let allowed = self.allowed.get(function).is_some_and(|allowed| {
            // A role that may update every item may also update token buckets.
            allowed.contains(permission)
                || permission.strip_suffix(&of_buckets()).is_some_and(|all| allowed.contains(all))
        });
        self.permit.map_or(allowed, |permit| permit(function, permission, allowed))
    }
}

#[derive(Debug)]
struct RoleConnector {
    roles: Roles,
    inner: SharedHttpConnector,
}

impl HttpConnector for RoleConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let lacks = FUNCTION.try_with(|function| {
            // `permit` is called for all of them, even if it refuses the first one.
            let needed = needed(&request).into_iter();
            let lacking: Vec<_> = needed.filter(|permission| !self.roles.permits(function, permission)).collect();
            lacking
                .into_iter()
                .next()
                .map(|permission| format!("{function} is not authorized to perform: {permission}"))
        });
        match lacks.ok().flatten() {
            None => self.inner.call(request),
            Some(message) if request.headers().get("x-amz-target").is_none() => refusal(403, message),
            Some(message) => {
                let kind = "com.amazon.coral.service#AccessDeniedException";
                refusal(400, json!({"__type": kind, "Message": message}).to_string())
            }
        }
    }
}

fn refusal(status: u16, body: String) -> HttpConnectorFuture {
    let status = StatusCode::try_from(status).expect("it is a status");
    HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body))))
}

/// The end of a permission for the items of the token buckets only.
fn of_buckets() -> String {
    format!(" {RATE}*")
}

/// The permissions of a statement on the table with its indexes and on the bucket with its objects; empty for any other
/// statement.
fn allowed(permission: &Permission) -> Result<Vec<String>, Trouble> {
    let not_understood = || Trouble(format!("a role's statement on {} is not understood", permission.resource));
    let all = |end: &str| permission.actions.iter().map(|action| format!("{action}{end}")).collect();
    let resource: Value = serde_json::from_str(&permission.resource).unwrap_or_default();
    let name = resource["!GetAtt"].as_str().or(resource["!Sub"].as_str()).unwrap_or_default();
    let of_keys = json!({"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [format!("{RATE}*")]}}).to_string();
    let lists = permission.actions.iter().all(|action| action == LIST_BUCKET);
    match (name, permission.condition.as_str()) {
        ("Table.Arn" | "${FilesBucket.Arn}/*", "null") => Ok(all("")),
        ("${FailedRecordsBucket.Arn}/*", "null") => Ok(all(&of_failed_records())),
        ("FailedRecordsBucket.Arn", "null") if lists => Ok(all(&of_failed_records())),
        ("Table.Arn", condition) if condition == of_keys => Ok(all(&of_buckets())),
        ("FilesBucket.Arn", "null") if lists => Ok(all("")),
        (name, "null") => match name.strip_prefix("${Table.Arn}/index/") {
            Some(index) if index.chars().all(char::is_alphanumeric) => Ok(all(&format!(" index/{index}"))),
            Some(_) => Err(not_understood()),
            None if ["${Table.Arn}/stream/*", "Table.StreamArn"].contains(&name) => Ok(Vec::new()),
            None if ["Table", "FilesBucket", FAILED_RECORDS_BUCKET].iter().any(|of| name.contains(of)) => {
                Err(not_understood())
            }
            None => Ok(Vec::new()),
        },
        _ => Err(not_understood()),
    }
}

/// The one action on the bucket itself rather than on its objects.
pub const LIST_BUCKET: &str = "s3:ListBucket";

/// The end of a permission for the bucket of batches that the stream gave up.
pub fn of_failed_records() -> String {
    format!(" {FAILED_RECORDS_BUCKET}")
}

/// The S3 action of a request.
pub fn bucket_action(method: &str, uri: &str) -> &'static str {
    if uri.contains("?list-type=") { "ListObjectsV2" } else { object_action(method) }
}

/// The S3 action of a request about an object.
pub fn object_action(method: &str) -> &'static str {
    match method {
        "GET" => "GetObject",
        "DELETE" => "DeleteObject",
        _ => "PutObject",
    }
}

/// The permissions for a request about an object. S3 reveals that an object is missing only to a role that may list the
/// bucket.
fn of_object(action: &str) -> Vec<String> {
    match action {
        "ListObjectsV2" => vec![LIST_BUCKET.to_owned()],
        "GetObject" => vec!["s3:GetObject".to_owned(), LIST_BUCKET.to_owned()],
        action => vec![format!("s3:{action}")],
    }
}

/// The permissions for a request of the SDK.
fn needed(request: &HttpRequest) -> BTreeSet<String> {
    if let Some(target) = request.headers().get("x-amz-target") {
        return of_call(target.rsplit('.').next().unwrap_or_default(), request.body().bytes());
    }
    // The path of an address begins with the name of the bucket.
    let is_kept = request.uri().contains(&format!("/{FAILED_RECORDS_NAME}/"));
    let of = if is_kept { of_failed_records() } else { String::new() };
    let needed = of_object(bucket_action(request.method(), request.uri()));
    needed.into_iter().map(|permission| permission + &of).collect()
}

/// The parts of a call on which its permissions depend.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct CallBody {
    key: BTreeMap<String, Value>,
    index_name: Option<String>,
    transact_items: Vec<Action>,
}

/// An action of a transaction.
#[derive(Deserialize)]
enum Action {
    ConditionCheck(IgnoredAny),
    Delete(IgnoredAny),
    Get(IgnoredAny),
    Put(IgnoredAny),
    Update(IgnoredAny),
}

/// The permissions for a call of the database. A transaction needs the permissions of its actions, and none of its own.
/// A read of an index needs the permission for the index. Taking tokens needs only the permission to update the items
/// of the buckets.
fn of_call(action: &str, body: Option<&[u8]>) -> BTreeSet<String> {
    let is_looked_into = action == "UpdateItem" || action == "Query" || action.starts_with("Transact");
    let body = body.filter(|_| is_looked_into).and_then(|body| serde_json::from_slice(body).ok());
    let CallBody { key, index_name, transact_items } = body.unwrap_or_default();
    if action == "UpdateItem" && key.get(PK).is_some_and(|pk| pk["S"].as_str().is_some_and(|pk| pk.starts_with(RATE))) {
        return [format!("dynamodb:UpdateItem{}", of_buckets())].into();
    }
    if !action.starts_with("Transact") {
        let index = index_name.map(|index| format!(" index/{index}"));
        return [format!("dynamodb:{action}{}", index.unwrap_or_default())].into();
    }
    let permission = |action| match action {
        Action::ConditionCheck(_) => "dynamodb:ConditionCheckItem",
        Action::Delete(_) => "dynamodb:DeleteItem",
        Action::Get(_) => "dynamodb:GetItem",
        Action::Put(_) => "dynamodb:PutItem",
        Action::Update(_) => "dynamodb:UpdateItem",
    };
    transact_items.into_iter().map(|action| permission(action).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::BUCKET_NAME;

    #[test]
    fn a_call_needs_the_permissions_that_iam_checks() {
        let condition = json!({"ConditionExpression": "attribute_exists(pk)", "ReturnValues": "ALL_NEW"});
        let transaction = json!({"TransactItems": [{"Put": condition}, {"ConditionCheck": condition}, {"Update": {}}]});
        for (action, body, wanted) in [
            ("BatchGetItem", json!({"RequestItems": {}}), vec!["dynamodb:BatchGetItem"]),
            ("Query", json!({"KeyConditionExpression": "pk = :pk"}), vec!["dynamodb:Query"]),
            ("Query", json!({"IndexName": "Due"}), vec!["dynamodb:Query index/Due"]),
            ("UpdateItem", condition.clone(), vec!["dynamodb:UpdateItem"]),
            ("UpdateItem", json!({"Key": {"pk": {"S": "ORG#1"}}}), vec!["dynamodb:UpdateItem"]),
            ("UpdateItem", json!({"Key": {"pk": {"S": "RATE#1"}}}), vec!["dynamodb:UpdateItem RATE#*"]),
            ("PutItem", condition.clone(), vec!["dynamodb:PutItem"]),
            (
                "TransactWriteItems",
                transaction,
                vec!["dynamodb:ConditionCheckItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
            ),
            ("TransactGetItems", json!({"TransactItems": [{"Get": {}}]}), vec!["dynamodb:GetItem"]),
        ] {
            let needed = of_call(action, Some(body.to_string().as_bytes()));
            assert_eq!(needed.into_iter().collect::<Vec<_>>(), wanted, "{action}");
        }
        for (method, wanted) in [
            ("PUT", vec!["s3:PutObject"]),
            ("DELETE", vec!["s3:DeleteObject"]),
            ("GET", vec!["s3:GetObject", "s3:ListBucket"]),
        ] {
            assert_eq!(of_object(bucket_action(method, "http://s3/bucket/key")), wanted, "{method}");
        }
        for (bucket, of) in [(BUCKET_NAME, String::new()), (FAILED_RECORDS_NAME, of_failed_records())] {
            let mut request = HttpRequest::new(SdkBody::empty());
            request.set_uri(format!("http://s3/{bucket}/?list-type=2&X-Amz-Signature=0")).unwrap();
            assert_eq!(needed(&request), [format!("{LIST_BUCKET}{of}")].into());
        }
    }

    #[test]
    fn a_role_allows_the_actions_of_its_statements() {
        let statement = |actions: &[&str], resource: Value, condition: Value| Permission {
            actions: actions.iter().map(|action| (*action).to_owned()).collect(),
            resource: resource.to_string(),
            condition: condition.to_string(),
        };
        let of_keys = json!({"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["RATE#*"]}});
        let table = || json!({"!GetAtt": "Table.Arn"});
        for (statement, wanted) in [
            (statement(&["a:B", "a:C"], table(), Value::Null), Some(vec!["a:B", "a:C"])),
            (statement(&["a:B"], table(), of_keys), Some(vec!["a:B RATE#*"])),
            (statement(&["a:B"], table(), json!({"StringLike": {"x": "y"}})), None),
            (statement(&["a:B"], json!({"!Sub": "${Table.Arn}/index/Due"}), Value::Null), Some(vec!["a:B index/Due"])),
            (statement(&["a:B"], json!({"!Sub": "${Table.Arn}/index/*"}), Value::Null), None),
            (statement(&["a:B"], json!({"!Sub": "${FilesBucket.Arn}/*"}), Value::Null), Some(vec!["a:B"])),
            (
                statement(&["s3:ListBucket"], json!({"!GetAtt": "FilesBucket.Arn"}), Value::Null),
                Some(vec!["s3:ListBucket"]),
            ),
            (statement(&["s3:PutObject"], json!({"!GetAtt": "FilesBucket.Arn"}), Value::Null), None),
            (
                statement(&["a:B"], json!({"!Sub": "${FailedRecordsBucket.Arn}/*"}), Value::Null),
                Some(vec!["a:B FailedRecordsBucket"]),
            ),
            (
                statement(&["s3:ListBucket"], json!({"!GetAtt": "FailedRecordsBucket.Arn"}), Value::Null),
                Some(vec!["s3:ListBucket FailedRecordsBucket"]),
            ),
            (statement(&["s3:GetObject"], json!({"!GetAtt": "FailedRecordsBucket.Arn"}), Value::Null), None),
            (statement(&["a:B"], json!({"!GetAtt": "LogGroup.Arn"}), Value::Null), Some(vec![])),
            (statement(&["a:B"], json!({"!GetAtt": "Table.StreamArn"}), Value::Null), Some(vec![])),
        ] {
            let allowed = allowed(&statement).ok();
            assert_eq!(allowed, wanted.map(|wanted| wanted.into_iter().map(str::to_owned).collect()), "{statement:?}");
        }
    }

    #[test]
    fn permission_to_update_every_item_includes_tokens() {
        let roles = |allowed: &str| Roles {
            allowed: Arc::new([("f".to_owned(), BTreeSet::from([allowed.to_owned()]))].into()),
            permit: None,
        };
        for (allowed, needed, permits) in [
            ("dynamodb:UpdateItem", "dynamodb:UpdateItem RATE#*", true),
            ("dynamodb:UpdateItem RATE#*", "dynamodb:UpdateItem RATE#*", true),
            ("dynamodb:UpdateItem RATE#*", "dynamodb:UpdateItem", false),
            ("dynamodb:Query", "dynamodb:Query index/Due", false),
        ] {
            assert_eq!(roles(allowed).permits("f", needed), permits, "{allowed} {needed}");
            assert!(!roles(allowed).permits("g", needed));
        }
    }
}
