//! Recorded calls: DynamoDB calls as the SDK's own inputs, calls of the payment provider as a form.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::delete_item::builders::DeleteItemInputBuilder;
use aws_sdk_dynamodb::operation::get_item::builders::GetItemInputBuilder;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemInputBuilder;
use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsInputBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, DeleteRequest, KeysAndAttributes, Put, PutRequest, ReturnConsumedCapacity,
    ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lambda_http::Error;
use serde::Deserialize;
use serde_json::{Map, Value};

type Item = HashMap<String, AttributeValue>;

/// A call as the recorder saw it.
#[derive(Deserialize)]
pub struct Recorded {
    target: String,
    body: Value,
}

/// The same call, ready to be sent any number of times.
pub enum Call {
    BatchGet(BatchGetItemInputBuilder),
    BatchWrite(BatchWriteItemInputBuilder),
    Delete(DeleteItemInputBuilder),
    Get(GetItemInputBuilder),
    Post(Form),
    Put(PutItemInputBuilder),
    Query(QueryInputBuilder),
    Transact(TransactWriteItemsInputBuilder),
    Update(UpdateItemInputBuilder),
}

/// A form, and its address.
#[derive(Deserialize)]
pub struct Form {
    url: String,
    body: String,
    authorization: String,
}

impl Call {
    /// Sends a copy of the call.
    pub async fn send(&self, client: &Client, http: &reqwest::Client) -> Result<(), Error> {
        match self {
            Self::Post(Form { url, body, authorization }) => {
                let request = http.post(url).header("authorization", authorization);
                let request = request.header("content-type", "application/x-www-form-urlencoded");
                let answer = request.body(body.clone()).send().await?.error_for_status()?;
                drop(answer.json::<Value>().await?);
            }
            Self::BatchGet(call) => drop(call.clone().send_with(client).await?),
            Self::BatchWrite(call) => drop(call.clone().send_with(client).await?),
            Self::Delete(call) => drop(call.clone().send_with(client).await?),
            Self::Get(call) => drop(call.clone().send_with(client).await?),
            Self::Put(call) => drop(call.clone().send_with(client).await?),
            Self::Query(call) => drop(call.clone().send_with(client).await?),
            Self::Transact(call) => drop(call.clone().send_with(client).await?),
            Self::Update(call) => drop(call.clone().send_with(client).await?),
        }
        Ok(())
    }

    /// The call in `recorded`.
    pub fn read(recorded: &Recorded) -> Result<Self, Error> {
        let body = Members(&recorded.body);
        Ok(match recorded.target.as_str() {
            "POST" => Self::Post(Form::deserialize(&recorded.body)?),
            "BatchGetItem" => Self::BatchGet(
                BatchGetItemInputBuilder::default()
                    .set_request_items(Some(body.each("RequestItems", keys_and_attributes)?))
                    .set_return_consumed_capacity(body.capacity()),
            ),
            "BatchWriteItem" => Self::BatchWrite(
                BatchWriteItemInputBuilder::default()
                    .set_request_items(Some(body.each("RequestItems", |writes| all(writes, write_request))?))
                    .set_return_consumed_capacity(body.capacity()),
            ),
            "DeleteItem" => Self::Delete(
                DeleteItemInputBuilder::default()
                    .set_table_name(body.text("TableName"))
                    .set_key(body.item("Key")?)
                    .set_condition_expression(body.text("ConditionExpression"))
                    .set_expression_attribute_names(body.names())
                    .set_expression_attribute_values(body.values()?)
                    .set_return_values(body.returned())
                    .set_return_values_on_condition_check_failure(body.returned_item())
                    .set_return_consumed_capacity(body.capacity()),
            ),
            "GetItem" => Self::Get(
                GetItemInputBuilder::default()
                    .set_table_name(body.text("TableName"))
                    .set_key(body.item("Key")?)
                    .set_consistent_read(body.flag("ConsistentRead"))
                    .set_projection_expression(body.text("ProjectionExpression"))
                    .set_expression_attribute_names(body.names())
                    .set_return_consumed_capacity(body.capacity()),
            ),
            "PutItem" => Self::Put(
                PutItemInputBuilder::default()
                    .set_table_name(body.text("TableName"))
                    .set_item(body.item("Item")?)
                    .set_condition_expression(body.text("ConditionExpression"))
                    .set_expression_attribute_names(body.names())
                    .set_expression_attribute_values(body.values()?)
                    .set_return_values(body.returned())
                    .set_return_values_on_condition_check_failure(body.returned_item())
                    .set_return_consumed_capacity(body.capacity()),
            ),
            "Query" => Self::Query(
                QueryInputBuilder::default()
                    .set_table_name(body.text("TableName"))
                    .set_index_name(body.text("IndexName"))
                    .set_consistent_read(body.flag("ConsistentRead"))
                    .set_scan_index_forward(body.flag("ScanIndexForward"))
                    .set_limit(body.0["Limit"].as_i64().map(i32::try_from).transpose()?)
                    .set_key_condition_expression(body.text("KeyConditionExpression"))
                    .set_filter_expression(body.text("FilterExpression"))
                    .set_projection_expression(body.text("ProjectionExpression"))
                    .set_exclusive_start_key(body.item("ExclusiveStartKey")?)
                    .set_expression_attribute_names(body.names())
                    .set_expression_attribute_values(body.values()?)
                    .set_return_consumed_capacity(body.capacity()),
            ),
            "TransactWriteItems" => Self::Transact(
                TransactWriteItemsInputBuilder::default()
                    .set_transact_items(Some(all(&recorded.body["TransactItems"], action)?))
                    .set_return_consumed_capacity(body.capacity()),
            ),
            "UpdateItem" => Self::Update(
                UpdateItemInputBuilder::default()
                    .set_table_name(body.text("TableName"))
                    .set_key(body.item("Key")?)
                    .set_update_expression(body.text("UpdateExpression"))
                    .set_condition_expression(body.text("ConditionExpression"))
                    .set_expression_attribute_names(body.names())
                    .set_expression_attribute_values(body.values()?)
                    .set_return_values(body.returned())
                    .set_return_values_on_condition_check_failure(body.returned_item())
                    .set_return_consumed_capacity(body.capacity()),
            ),
            other => return Err(format!("{other} is not known").into()),
        })
    }
}

/// The members of a recorded object; a missing member leaves its input unset.
struct Members<'a>(&'a Value);

impl Members<'_> {
    fn text(&self, name: &str) -> Option<String> {
        self.0[name].as_str().map(str::to_owned)
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.0[name].as_bool()
    }

    fn item(&self, name: &str) -> Result<Option<Item>, Error> {
        self.0[name].as_object().map(item).transpose()
    }

    fn names(&self) -> Option<HashMap<String, String>> {
        let names = self.0["ExpressionAttributeNames"].as_object()?.iter();
        Some(names.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect())
    }

    fn values(&self) -> Result<Option<Item>, Error> {
        self.item("ExpressionAttributeValues")
    }

    fn returned(&self) -> Option<ReturnValue> {
        self.0["ReturnValues"].as_str().map(ReturnValue::from)
    }

    fn returned_item(&self) -> Option<ReturnValuesOnConditionCheckFailure> {
        self.0["ReturnValuesOnConditionCheckFailure"].as_str().map(ReturnValuesOnConditionCheckFailure::from)
    }

    fn capacity(&self) -> Option<ReturnConsumedCapacity> {
        self.0["ReturnConsumedCapacity"].as_str().map(ReturnConsumedCapacity::from)
    }

    fn each<T>(&self, name: &str, of: impl Fn(&Value) -> Result<T, Error>) -> Result<HashMap<String, T>, Error> {
        let tables = self.0[name].as_object().into_iter().flatten();
        tables.map(|(table, value)| Ok((table.clone(), of(value)?))).collect()
    }
}

fn all<T>(list: &Value, of: impl Fn(&Value) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    list.as_array().into_iter().flatten().map(of).collect()
}

fn keys_and_attributes(value: &Value) -> Result<KeysAndAttributes, Error> {
    let body = Members(value);
    let keys = all(&value["Keys"], |key| item(key.as_object().ok_or("a key is no object")?))?;
    let request = KeysAndAttributes::builder().set_keys(Some(keys)).set_consistent_read(body.flag("ConsistentRead"));
    let request = request.set_projection_expression(body.text("ProjectionExpression"));
    Ok(request.set_expression_attribute_names(body.names()).build()?)
}

fn write_request(value: &Value) -> Result<WriteRequest, Error> {
    let request = WriteRequest::builder();
    Ok(if value["PutRequest"].is_object() {
        let put = PutRequest::builder().set_item(Members(&value["PutRequest"]).item("Item")?);
        request.put_request(put.build()?).build()
    } else {
        let delete = DeleteRequest::builder().set_key(Members(&value["DeleteRequest"]).item("Key")?);
        request.delete_request(delete.build()?).build()
    })
}

fn action(value: &Value) -> Result<TransactWriteItem, Error> {
    let (kind, body) = value.as_object().and_then(|action| action.iter().next()).ok_or("an empty action")?;
    let (body, action) = (Members(body), TransactWriteItem::builder());
    Ok(match kind.as_str() {
        "ConditionCheck" => action.condition_check(
            ConditionCheck::builder()
                .set_table_name(body.text("TableName"))
                .set_key(body.item("Key")?)
                .set_condition_expression(body.text("ConditionExpression"))
                .set_expression_attribute_names(body.names())
                .set_expression_attribute_values(body.values()?)
                .set_return_values_on_condition_check_failure(body.returned_item())
                .build()?,
        ),
        "Delete" => action.delete(
            Delete::builder()
                .set_table_name(body.text("TableName"))
                .set_key(body.item("Key")?)
                .set_condition_expression(body.text("ConditionExpression"))
                .set_expression_attribute_names(body.names())
                .set_expression_attribute_values(body.values()?)
                .set_return_values_on_condition_check_failure(body.returned_item())
                .build()?,
        ),
        "Put" => action.put(
            Put::builder()
                .set_table_name(body.text("TableName"))
                .set_item(body.item("Item")?)
                .set_condition_expression(body.text("ConditionExpression"))
                .set_expression_attribute_names(body.names())
                .set_expression_attribute_values(body.values()?)
                .set_return_values_on_condition_check_failure(body.returned_item())
                .build()?,
        ),
        "Update" => action.update(
            Update::builder()
                .set_table_name(body.text("TableName"))
                .set_key(body.item("Key")?)
                .set_update_expression(body.text("UpdateExpression"))
                .set_condition_expression(body.text("ConditionExpression"))
                .set_expression_attribute_names(body.names())
                .set_expression_attribute_values(body.values()?)
                .set_return_values_on_condition_check_failure(body.returned_item())
                .build()?,
        ),
        other => return Err(format!("{other} is no known action").into()),
    }
    .build())
}

fn item(members: &Map<String, Value>) -> Result<Item, Error> {
    members.iter().map(|(name, value)| Ok((name.clone(), attribute(value)?))).collect()
}

/// DynamoDB's JSON: an object whose only member is named after the type.
fn attribute(value: &Value) -> Result<AttributeValue, Error> {
    let (kind, value) = value.as_object().and_then(|typed| typed.iter().next()).ok_or("a value without a type")?;
    let string = |value: &Value| Ok::<_, Error>(value.as_str().ok_or("no text")?.to_owned());
    let blob = |value: &Value| Ok::<_, Error>(Blob::new(STANDARD.decode(value.as_str().ok_or("no text")?)?));
    Ok(match kind.as_str() {
        "S" => AttributeValue::S(string(value)?),
        "N" => AttributeValue::N(string(value)?),
        "B" => AttributeValue::B(blob(value)?),
        "SS" => AttributeValue::Ss(all(value, string)?),
        "NS" => AttributeValue::Ns(all(value, string)?),
        "BS" => AttributeValue::Bs(all(value, blob)?),
        "BOOL" => AttributeValue::Bool(value.as_bool().ok_or("no truth value")?),
        "NULL" => AttributeValue::Null(true),
        "L" => AttributeValue::L(all(value, attribute)?),
        "M" => AttributeValue::M(item(value.as_object().ok_or("no object")?)?),
        other => return Err(format!("{other} is no type").into()),
    })
}
