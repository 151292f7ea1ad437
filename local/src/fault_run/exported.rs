//! The exports of a fault run: files that are made while others write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shared::records::export::ExportStatus;
use shared::routes;
use shared::values::id::ExportId;
use tokio::time::sleep;
use uuid::Uuid;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::fault_run::captured;
use crate::fault_run::check::Check;
use crate::fault_run::world::{World, member};

/// An export, with what must be in its file.
pub struct MadeExport {
    organisation: usize,
    id: ExportId,
    /// The rows that were there before it was made, and were there to its end, by their records.
    wanted: BTreeMap<&'static str, Vec<Uuid>>,
    /// The lines of its file; `None` if it was not completed.
    file: Option<Vec<Value>>,
}

/// Makes exports at a steady rate for the time `during`.
///
/// # Errors
/// [`Trouble`] where one is refused.
pub async fn export(world: &Arc<World>, exports: usize, during: Duration) -> Result<(), Trouble> {
    for number in 0..exports {
        for organisation in 0..world.organisations.len() {
            let begun = MadeExport::begin(world, organisation, number).await?;
            world.exports.lock().await.push(begun);
        }
        sleep(during / u32::try_from(exports).unwrap_or(u32::MAX)).await;
        look(world).await?;
    }
    Ok(())
}

/// Reads the files of the exports that are completed by now.
///
/// # Errors
/// [`Trouble`] where one cannot be read.
pub async fn look(world: &World) -> Result<(), Trouble> {
    for export in world.exports.lock().await.iter_mut().filter(|export| export.file.is_none()) {
        export.read(world).await?;
    }
    Ok(())
}

impl MadeExport {
    async fn begin(world: &World, organisation: usize, number: usize) -> Result<Self, Trouble> {
        // Every other one has the open conversations only.
        let only_open = number % 2 == 1;
        let (plan, of_webhook) = (&world.plan, |webhook: usize| world.plan.webhooks[webhook].organisation);
        let conversations = plan.conversations.iter().zip(&world.conversations);
        let own = conversations.filter(|(planned, _)| of_webhook(planned.webhook) == organisation);
        let there = own.filter(|(planned, _)| !(only_open && planned.closes)).map(|(_, id)| id.0);
        let channels = plan.campaigns.iter().zip(&world.channels);
        let invited = channels.filter(|(run, _)| of_webhook(run.webhook) == organisation);
        let captures = captured::of_organisation(world, organisation);
        let wanted = BTreeMap::from([
            ("conversation", there.collect()),
            ("contact", invited.flat_map(|(_, channel)| channel.contacts.iter().map(|id| id.0)).collect()),
            ("captured_form", captures.iter().map(|capture| capture.form.0).collect()),
            ("captured_intent", captures.iter().map(|capture| capture.intent.0).collect()),
            ("message", Vec::new()),
            ("campaign_contact", Vec::new()),
        ]);
        let filters = if only_open { json!({"conversation": {"status": "open"}}) } else { json!({}) };
        let body = json!({"records": wanted.keys().collect::<Vec<_>>(), "filters": filters});
        let export = world.ask(organisation, ApiRequest::of(&routes::CREATE_EXPORT).body(&body)).await?.data()?;
        Ok(Self { organisation, id: member(&export, "id")?, wanted, file: None })
    }

    /// Reads its file, if it is completed.
    async fn read(&mut self, world: &World) -> Result<(), Trouble> {
        let read = ApiRequest::of(&routes::READ_EXPORT).parameter("export_id", self.id);
        let answered = world.ask(self.organisation, read).await?;
        if answered.body["data"]["status"] != ExportStatus::Completed.as_str() {
            return Ok(());
        }
        let objects = world.stack.objects.objects()?;
        let file = objects.iter().find(|(key, _)| key.ends_with(&self.id.to_string()));
        let lines = file.map_or(&[][..], |(_, bytes)| bytes).split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty()).map(serde_json::from_slice).collect::<Result<_, _>>();
        self.file = Some(lines.map_err(|error| Trouble(format!("the file of {}: {error}", self.id)))?);
        Ok(())
    }

    fn see(&self, all: &mut Check) {
        let id = self.id;
        let Some(file) = &self.file else {
            all.see(false, || format!("{id} was not completed"));
            return;
        };
        let mut found: BTreeMap<(&str, Uuid), usize> = BTreeMap::new();
        for row in file {
            let record = row["record"].as_str().unwrap_or_default();
            let row = row["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_default();
            *found.entry((record, row)).or_default() += 1;
        }
        for ((record, row), times) in &found {
            let is_known = self.wanted.contains_key(record) && !row.is_nil();
            all.see(is_known && *times == 1, || format!("{id}: {record} {row} {times} times"));
        }
        for (record, rows) in &self.wanted {
            for row in rows {
                all.see(found.contains_key(&(record, *row)), || format!("{id} has no {record} {row}"));
            }
        }
    }
}

/// Whether `run-exports` stored rows in the object with this key. It does so at the end of a tick, if the rows are too
/// few for a part of the multipart upload, and the next tick reads them from there. The service does not delete the
/// object: the bucket's lifecycle rule for `exports/` does.
fn is_beside_export(key: &str) -> bool {
    let number = key.rsplit_once('.').filter(|_| key.starts_with("exports/")).map(|(_, number)| number);
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Checks that each file has each row once that was there all the time, and that files and exports are gone after a week.
///
/// # Errors
/// [`Trouble`] where the list of exports or the bucket cannot be read.
pub async fn files(world: &World) -> Result<Vec<Check>, Trouble> {
    let mut all = Check::that("an export during the writes has each row once that was there all the time");
    world.exports.lock().await.iter().for_each(|export| export.see(&mut all));
    let mut gone = Check::that("exports and their files are removed after a week");
    for organisation in 0..world.organisations.len() {
        let answered = world.ask(organisation, &routes::LIST_EXPORTS).await?;
        gone.see(answered.body["data"]["total"] == 0, || answered.body.to_string());
    }
    for (key, _) in world.stack.objects.objects()? {
        gone.see(is_beside_export(&key), || key.clone());
    }
    Ok(vec![all, gone])
}
