//! Pages of long lists: the cost of finding a page compared with the cost of reading its rows, for any number of rows.

use std::collections::BTreeMap;

use dynoxide::Database;
use local::database::TABLE_NAME;
use local::demo::Demo;
use serde_json::{Value, json};
use shared::records::tag::Link;
use shared::table::keys::{Key, list_block, list_head, list_row, list_section};
use shared::table::meter::Cost;
use shared::table::store::BATCH_WRITE_LIMIT;
use shared::table::stored::Listed as _;
use shared::values::id::with_ordinal;
use shared::values::tenant::Tenant;
use uuid::Uuid;

use crate::Result;
use crate::bench::Bench;
use crate::figures::{Figures, Must, Row, Series, Unit};
use crate::process::Process;

const SECTION: &str = "Any page of a list";
/// The name of its chart.
pub const CHART: &str = "lists";
/// The measured function, and the list that it reads.
const FUNCTION: &str = "read-link-tag-entity-list";
/// Rows of a page.
const PAGE: u32 = 50;
/// The lengths of the lists.
const LENGTHS: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// The longest list that is written row by row and paged through with an offset.
const PAGED_THROUGH: u32 = 100_000;
/// Ordinals that share an item with the set of their holes.
const BLOCK: usize = 1024;
/// Blocks whose counts of holes share an item.
const BLOCKS: u32 = 32;
/// The seed that selects the removed rows, so that every run has the same ones.
const SEED: u64 = 7;

/// The list of the demo set's first organisation, emptied. It contains only the index and the rows of the pages that
/// are read: nothing reads the others.
struct List<'a> {
    database: &'a Database,
    tenant: Tenant,
    name: String,
    /// A row, as the template of others.
    row: Value,
}

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    for (name, tenth, calls, units) in [("untouched", false, 2.0, 3.0), ("a tenth deleted", true, 3.0, 10.0)] {
        let mut points = Vec::new();
        for rows in LENGTHS {
            let worst = worst_page(bench, rows, tenth).await?;
            let subject = format!("{} rows, {name}", crate::figures::thousands(rows.into()));
            let row = Row::new(SECTION, format!("{subject}: sequential calls"), worst.depth.into(), Unit::Calls);
            figures.rows.push(row.must(Must::AtMost(calls)));
            let subject = format!("{subject}: read units in addition to those of the page's rows");
            let row = Row::new(SECTION, subject, worst.read_units, Unit::CapacityUnits);
            figures.rows.push(row.must(Must::AtMost(units)));
            points.push((f64::from(rows), worst.read_units));
        }
        figures.series.push(Series { chart: CHART.into(), name: format!("ours, {name}"), points });
    }
    let points = offset_paging(bench).await?;
    figures.series.push(Series { chart: CHART.into(), name: "an offset and a count, last page".into(), points });
    Ok(())
}

/// The most that the first, the middle and the last page cost beyond reading their rows.
async fn worst_page(bench: &Bench, rows: u32, tenth: bool) -> Result<Cost> {
    let stack = bench.stack().await?;
    let list = List::emptied(bench, &stack.database)?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let gone: Vec<bool> = (0..rows).map(|_| tenth && random.u32(..10) == 0).collect();
    let left: Vec<u32> = (0..).zip(&gone).filter(|(_, gone)| !**gone).map(|(place, _)| place).collect();
    let pages: Vec<&[u32]> = left.chunks(PAGE as usize).collect();
    let (centre, end) = (pages.len() / 2, pages.len() - 1);
    let present = [0, centre, end].into_iter().flat_map(|page| pages[page].iter().copied());
    list.put_rows(present)?;
    list.put_index(&gone)?;

    let mut worst = Cost::default();
    let mut process = bench.program(FUNCTION, &stack).start().await?;
    // The first call also looks the key up.
    turn_to(&mut process, bench, 1).await?;
    for page in [0, centre, end] {
        let (answer, cost) = turn_to(&mut process, bench, page + 1).await?;
        let items = answer["items"].as_array().map_or(0, Vec::len);
        if items != pages[page].len() || answer["total"] != left.len() {
            return Err(format!("page {} of {rows} rows: {items} of {}", page + 1, answer["total"]).into());
        }
        let (first, final_one) = (pages[page][0], pages[page][items - 1]);
        worst.depth = worst.depth.max(cost.depth);
        worst.read_units = worst.read_units.max(cost.read_units - list.units(first, final_one)?);
    }
    stack.stop().await;
    Ok(worst)
}

/// The answer's `data` and the cost of a page, counted from 1.
async fn turn_to(process: &mut Process, bench: &Bench, page: usize) -> Result<(Value, Cost)> {
    let mut event: Value = serde_json::from_str(&bench.event(FUNCTION)?)?;
    for (name, value) in [("page", page.to_string()), ("size", PAGE.to_string())] {
        event["multiValueQueryStringParameters"][name] = json!([value]);
        event["queryStringParameters"][name] = json!(value);
    }
    let answer = process.invoke(&event.to_string()).await?;
    let response: Value = serde_json::from_str(&answer.body)?;
    let body: Value = serde_json::from_str(response["body"].as_str().unwrap_or_default())?;
    Ok((body["data"].clone(), answer.cost.ok_or("the call logged no cost")?))
}

/// The units for finding and reading the last page with an offset: all rows up to it are read, and all are counted.
async fn offset_paging(bench: &Bench) -> Result<Vec<(f64, f64)>> {
    let stack = bench.stack().await?;
    let list = List::emptied(bench, &stack.database)?;
    list.put_rows(0..PAGED_THROUGH)?;
    let paged = LENGTHS.into_iter().filter(|rows| *rows <= PAGED_THROUGH);
    let points = paged.map(|rows| {
        let reading = list.units(0, rows - 1)?;
        let page = list.units(rows - PAGE, rows - 1)?;
        // Counting costs as much as reading: DynamoDB bills the same for both.
        Ok((f64::from(rows), reading + reading - page))
    });
    let points = points.collect::<Result<_>>()?;
    stack.stop().await;
    Ok(points)
}

impl<'a> List<'a> {
    fn emptied(bench: &Bench, database: &'a Database) -> Result<Self> {
        let demo = Demo::read(&bench.root.join("local/demo.yaml"))?;
        let organisation = demo.organisations.first().ok_or("the demo set is empty")?;
        #[expect(clippy::disallowed_methods, reason = "the benchmark writes the list itself")]
        let tenant = Tenant::operator(organisation.org_id);
        let mut list = Self { database, tenant, name: Link::list(()), row: Value::Null };
        let rows = list.query(&list.query_of(0, u32::MAX))?;
        for row in rows["Items"].as_array().into_iter().flatten() {
            let request = json!({"TableName": TABLE_NAME, "Key": {"pk": row["pk"], "sk": row["sk"]}});
            database.delete_item(serde_json::from_value(request)?)?;
        }
        list.row = rows["Items"][0].clone();
        Ok(list)
    }

    /// Puts rows with these ordinals.
    fn put_rows(&self, ordinals: impl IntoIterator<Item = u32>) -> Result<()> {
        let id: Uuid = self.row["id"]["S"].as_str().unwrap_or_default().parse()?;
        let rows = ordinals.into_iter().map(|ordinal| {
            let mut row = self.row.clone();
            row["sk"]["S"] = json!(list_row(&self.tenant, &self.name, ordinal.into()).sk);
            row["id"]["S"] = json!(with_ordinal(id, ordinal.into()));
            row
        });
        self.put(&rows.collect::<Vec<_>>())
    }

    /// Puts the head, and the items that record which of the first `gone.len()` ordinals have no row any more.
    fn put_index(&self, gone: &[bool]) -> Result<()> {
        let item = |key: Key| json!({"pk": {"S": key.pk}, "sk": {"S": key.sk}});
        let mut head = item(list_head(&self.tenant, &self.name));
        head["next_ordinal"] = json!({"N": gone.len().to_string()});
        let mut items = vec![head];
        let mut sections: BTreeMap<u32, Value> = BTreeMap::new();
        for (block, gone) in (0..).zip(gone.chunks(BLOCK)) {
            let holes: Vec<String> =
                (0..).zip(gone).filter(|(_, gone)| **gone).map(|(offset, _): (u32, _)| offset.to_string()).collect();
            if holes.is_empty() {
                continue;
            }
            let (section, place) = (block / BLOCKS, block % BLOCKS);
            let counts =
                sections.entry(section).or_insert_with(|| item(list_section(&self.tenant, &self.name, section.into())));
            counts[format!("b{place}")] = json!({"N": holes.len().to_string()});
            let mut set = item(list_block(&self.tenant, &self.name, block.into()));
            set["holes"] = json!({"NS": holes});
            items.push(set);
        }
        items.extend(sections.into_values());
        self.put(&items)
    }

    fn put(&self, items: &[Value]) -> Result<()> {
        for batch in items.chunks(BATCH_WRITE_LIMIT) {
            let puts: Vec<Value> = batch.iter().map(|item| json!({"PutRequest": {"Item": item}})).collect();
            self.database.batch_write_item(serde_json::from_value(json!({"RequestItems": {TABLE_NAME: puts}}))?)?;
        }
        Ok(())
    }

    /// Read units of a query of the rows from ordinal `first` to `last`, for all of its pages together.
    fn units(&self, first: u32, last: u32) -> Result<f64> {
        let mut request = self.query_of(first, last);
        let mut units = 0.0;
        loop {
            let answer = self.query(&request)?;
            units += answer["ConsumedCapacity"]["CapacityUnits"].as_f64().ok_or("the query tells no units")?;
            if answer["LastEvaluatedKey"].is_null() {
                return Ok(units);
            }
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"].clone();
        }
    }

    fn query_of(&self, first: u32, last: u32) -> Value {
        let [first, last] = [first, last].map(|ordinal| list_row(&self.tenant, &self.name, ordinal.into()));
        json!({
            "TableName": TABLE_NAME,
            "ConsistentRead": true,
            "ReturnConsumedCapacity": "TOTAL",
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": {":pk": {"S": first.pk}, ":first": {"S": first.sk}, ":last": {"S": last.sk}},
        })
    }

    fn query(&self, request: &Value) -> Result<Value> {
        Ok(serde_json::to_value(self.database.query(serde_json::from_value(request.clone())?)?)?)
    }
}
