//! The roles of the functions, as IAM enforces them: the database and the bucket refuse calls that the role of the
//! calling function does not allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use embedded_dynamodb::permissions::of_call;
use serde_json::{Value, json};
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
    /// By function: `dynamodb:GetItem` on the table, `dynamodb:Query index/Due` on one of its indexes,
    /// `dynamodb:PutItem ORG#*` on the items whose partition key begins so, `s3:PutObject` on the objects of the bucket
    /// of files, `s3:PutObject FailedRecordsBucket` on the objects of the other one, and so on.
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
        // Lambda puts what a function on the stream, or one that is notified of objects, gave up into a bucket, with the
        // permissions of that function. The function itself makes no such call.
        let is_lambda_s = |function: &str, permission: &Permission| {
            let of = |source: &EventSource| source.function == function && source.destination.is_some();
            let is_notified = template.notified_of_objects.iter().any(|notified| notified == function);
            permission.resource.contains(FAILED_RECORDS_BUCKET) && (is_notified || template.sources.iter().any(of))
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
        let allowed = self.allowed.get(function).is_some_and(|allowed| allowed.contains(permission));
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

/// The writes of single items. Each needs a permission for the beginning of the item's partition key. A check of a
/// transaction is one of them: it has a key, and tells whether its condition holds.
pub const WRITES: [&str; 5] = [
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
];

/// The patterns of the partition keys that a statement allows; empty if its condition is of another form.
fn patterns(condition: &str) -> Vec<String> {
    let condition: Value = serde_json::from_str(condition).unwrap_or_default();
    let patterns = &condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
    let only_them = json!({"ForAllValues:StringLike": {"dynamodb:LeadingKeys": patterns}});
    let patterns = patterns.as_array().filter(|_| condition == only_them);
    patterns.into_iter().flatten().filter_map(|pattern| pattern.as_str().map(str::to_owned)).collect()
}

/// The permissions of a statement on the table with its indexes and on the bucket with its objects; empty for any other
/// statement.
fn allowed(permission: &Permission) -> Result<Vec<String>, Trouble> {
    let not_understood = || Trouble(format!("a role's statement on {} is not understood", permission.resource));
    let all = |end: &str| permission.actions.iter().map(|action| format!("{action}{end}")).collect::<Vec<_>>();
    let resource: Value = serde_json::from_str(&permission.resource).unwrap_or_default();
    let name = resource["!GetAtt"].as_str().or(resource["!Sub"].as_str()).unwrap_or_default();
    let patterns = patterns(&permission.condition);
    let lists = permission.actions.iter().all(|action| action == LIST_BUCKET);
    match (name, permission.condition.as_str()) {
        ("Table.Arn" | "${FilesBucket.Arn}/*", "null") => Ok(all("")),
        ("${FailedRecordsBucket.Arn}/*", "null") => Ok(all(&of_failed_records())),
        ("FailedRecordsBucket.Arn", "null") if lists => Ok(all(&of_failed_records())),
        ("Table.Arn", _) if !patterns.is_empty() => {
            Ok(patterns.iter().flat_map(|pattern| all(&format!(" {pattern}"))).collect())
        }
        ("FilesBucket.Arn", "null") if lists => Ok(all("")),
        ("SecretsKey.Arn", condition) if !context(condition).is_empty() => {
            Ok(all(&format!(" {}", context(condition).join(" "))))
        }
        (name, "null") => match name.strip_prefix("${Table.Arn}/index/") {
            Some(index) if index.chars().all(char::is_alphanumeric) => Ok(all(&format!(" index/{index}"))),
            Some(_) => Err(not_understood()),
            None if ["${Table.Arn}/stream/*", "Table.StreamArn"].contains(&name) => Ok(Vec::new()),
            None if ["Table", "FilesBucket", FAILED_RECORDS_BUCKET, "SecretsKey"]
                .iter()
                .any(|of| name.contains(of)) =>
            {
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
    match method {
        _ if uri.contains("?list-type=") => "ListObjectsV2",
        "DELETE" if uri.contains("?uploadId=") => "AbortMultipartUpload",
        // The begin and the end of an upload in parts, and each part, need the same permission as a whole object.
        method => object_action(method),
    }
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
        if let Some(action) = target.strip_prefix("TrentService.") {
            return [of_key(action, request.body().bytes())].into();
        }
        return of_call(target.rsplit('.').next().unwrap_or_default(), request.body().bytes());
    }
    // The path of an address begins with the name of the bucket.
    let is_kept = request.uri().contains(&format!("/{FAILED_RECORDS_NAME}/"));
    let of = if is_kept { of_failed_records() } else { String::new() };
    let needed = of_object(bucket_action(request.method(), request.uri()));
    needed.into_iter().map(|permission| permission + &of).collect()
}

/// The permission for a call of KMS: the action, and the names in its encryption context.
fn of_key(action: &str, body: Option<&[u8]>) -> String {
    let body: Value = body.and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
    let names = body["EncryptionContext"].as_object().into_iter().flat_map(|context| context.keys());
    names.fold(format!("kms:{action}"), |permission, name| permission + " " + name)
}

/// The names of the encryption context that a statement allows; empty if its condition is of another form.
fn context(condition: &str) -> Vec<String> {
    let condition: Value = serde_json::from_str(condition).unwrap_or_default();
    let names = &condition["ForAllValues:StringEquals"]["kms:EncryptionContextKeys"];
    let only_them = json!({"ForAllValues:StringEquals": {"kms:EncryptionContextKeys": names}});
    let names = names.as_array().filter(|_| condition == only_them);
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::BUCKET_NAME;

    #[test]
    fn a_call_of_kms_needs_the_permission_for_its_context() {
        let needed =
            |context: Value| of_key("Decrypt", Some(json!({"EncryptionContext": context}).to_string().as_bytes()));
        assert_eq!(needed(json!({"organisation": "1"})), "kms:Decrypt organisation");
        assert_eq!(needed(json!({"other": "1"})), "kms:Decrypt other");
        assert_eq!(needed(Value::Null), "kms:Decrypt");
        let statement = |condition: Value| {
            let resource = json!({"!GetAtt": "SecretsKey.Arn"}).to_string();
            let actions = ["kms:Decrypt".to_owned()].into();
            allowed(&Permission { actions, resource, condition: condition.to_string() })
        };
        let names = json!({"ForAllValues:StringEquals": {"kms:EncryptionContextKeys": ["organisation"]}});
        assert_eq!(statement(names).unwrap(), ["kms:Decrypt organisation"]);
        for other in [Value::Null, json!({"StringEquals": {"kms:EncryptionContextKeys": ["organisation"]}})] {
            assert!(statement(other).is_err());
        }
    }

    #[test]
    fn a_call_needs_the_permissions_that_iam_checks() {
        let key = |pk: &str| json!({"pk": {"S": pk}, "sk": {"S": "1"}});
        let put = |pk: &str| json!({"Item": {"pk": {"S": pk}, "count": {"N": "1"}, "tags": {"L": []}}});
        let on = |pk: &str| json!({"Key": key(pk), "ConditionExpression": "attribute_exists(pk)"});
        let transaction = json!({"TransactItems": [
            {"Put": put("ORG#1#TAG")}, {"ConditionCheck": on("ORG#1")}, {"Update": on("KEY#1")}, {"Delete": on("ORG#1")},
        ]});
        let batch = json!({"RequestItems": {"t": [
            {"PutRequest": put("ORG#1")}, {"DeleteRequest": {"Key": key("ORG#2")}}, {"PutRequest": put("KEY#1")},
        ]}});
        for (action, body, wanted) in [
            ("BatchGetItem", json!({"RequestItems": {"t": {"Keys": [key("ORG#1")]}}}), vec!["dynamodb:BatchGetItem"]),
            ("GetItem", on("KEY#1"), vec!["dynamodb:GetItem"]),
            ("Query", json!({"KeyConditionExpression": "pk = :pk"}), vec!["dynamodb:Query"]),
            ("Query", json!({"IndexName": "Due"}), vec!["dynamodb:Query index/Due"]),
            ("UpdateItem", on("ORG#1#LIST#TAG"), vec!["dynamodb:UpdateItem ORG#*"]),
            ("UpdateItem", on("RATE#1"), vec!["dynamodb:UpdateItem RATE#*"]),
            ("DeleteItem", on("PAYMENT_WEBHOOK#1"), vec!["dynamodb:DeleteItem PAYMENT_WEBHOOK#*"]),
            ("PutItem", put("ORG#1"), vec!["dynamodb:PutItem ORG#*"]),
            ("PutItem", put("KEY#1"), vec!["dynamodb:PutItem KEY#*"]),
            ("PutItem", put("WARM_UP"), vec!["dynamodb:PutItem WARM_UP"]),
            ("BatchWriteItem", batch, vec!["dynamodb:BatchWriteItem KEY#*", "dynamodb:BatchWriteItem ORG#*"]),
            (
                "TransactWriteItems",
                transaction,
                vec![
                    "dynamodb:ConditionCheckItem ORG#*",
                    "dynamodb:DeleteItem ORG#*",
                    "dynamodb:PutItem ORG#*",
                    "dynamodb:UpdateItem KEY#*",
                ],
            ),
            ("TransactGetItems", json!({"TransactItems": [{"Get": on("ORG#1")}]}), vec!["dynamodb:GetItem"]),
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
        for (method, wanted) in
            [("POST", "s3:PutObject"), ("PUT", "s3:PutObject"), ("DELETE", "s3:AbortMultipartUpload")]
        {
            assert_eq!(of_object(bucket_action(method, "http://s3/bucket/key?uploadId=1")), [wanted], "{method}");
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
        let of_keys = |patterns: &[&str]| json!({"ForAllValues:StringLike": {"dynamodb:LeadingKeys": patterns}});
        let mut and_more = of_keys(&["RATE#*"]);
        and_more["StringLike"] = json!({"x": "y"});
        let table = || json!({"!GetAtt": "Table.Arn"});
        for (statement, wanted) in [
            (statement(&["a:B", "a:C"], table(), Value::Null), Some(vec!["a:B", "a:C"])),
            (statement(&["a:B"], table(), of_keys(&["RATE#*"])), Some(vec!["a:B RATE#*"])),
            (
                statement(&["a:B", "a:C"], table(), of_keys(&["KEY#*", "ORG#*"])),
                Some(vec!["a:B KEY#*", "a:C KEY#*", "a:B ORG#*", "a:C ORG#*"]),
            ),
            (statement(&["a:B"], table(), of_keys(&[])), None),
            (statement(&["a:B"], table(), and_more), None),
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
    fn a_write_needs_the_permission_for_its_partition_key() {
        let roles = |allowed: &str| Roles {
            allowed: Arc::new([("f".to_owned(), BTreeSet::from([allowed.to_owned()]))].into()),
            permit: None,
        };
        for (allowed, needed, permits) in [
            ("dynamodb:PutItem ORG#*", "dynamodb:PutItem ORG#*", true),
            ("dynamodb:PutItem ORG#*", "dynamodb:PutItem KEY#*", false),
            ("dynamodb:PutItem", "dynamodb:PutItem ORG#*", false),
            ("dynamodb:UpdateItem RATE#*", "dynamodb:UpdateItem ORG#*", false),
            ("dynamodb:Query", "dynamodb:Query index/Due", false),
        ] {
            assert_eq!(roles(allowed).permits("f", needed), permits, "{allowed} {needed}");
            assert!(!roles(allowed).permits("g", needed));
        }
    }
}
