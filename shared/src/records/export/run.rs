//! Makes the files of exports, part by part, and removes them after a week.
//!
//! An export is read up to a bounded number of rows, or until there is enough for a part. The part is uploaded, and then
//! stored together with the place at which reading goes on, on condition that the export has not changed. So a process that
//! crashes in between, or a second one, changes nothing: the next one reads the same rows again, and uploads them under
//! another number. Only parts that are stored are in the file.

use futures_util::stream::{self, StreamExt as _};

use super::source;
use super::{Export, ExportProgress, ExportStatus, KEPT};
use crate::bucket::multipart::LEAST_PART;
use crate::records::due::Due;
use crate::request::error::{Error, Result};
use crate::request::event::EventContext;
use crate::table::item::from_item;
use crate::table::keys::Key;
use crate::table::{Table, TableError};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Seconds for which a tick works. The next one begins after sixty.
const BUDGET: i64 = 40;
/// Seconds after which a lease expires: longer than a turn of each export of a tick.
const LEASE: i64 = 120;
/// The exports of a tick, which take turns, and how many of them have their turn at the same time. Each holds a part.
const TOGETHER: (usize, usize) = (6, 2);
/// The most pieces that an export reads in a turn.
const PIECES: usize = 20;
/// The bytes of a part. A row has at most 360 KB, and a piece some megabytes.
const PART: usize = LEAST_PART + LEAST_PART / 5;
/// The most parts: all of them are in the item of the export.
const MOST_PARTS: usize = 4_000;
/// The rows of a piece: the first one, the fewest, and the most.
const ROWS: (usize, usize, usize) = (100, 16, 1_000);
/// The bytes of rows that a piece should have.
const PIECE: usize = 1024 * 1024;
/// Leases without any progress, after which an upload that has ended without an object counts as lost. Until then S3 may
/// still join the parts, as it was asked to by a request whose answer came too late.
const JOINING: u32 = 3;
/// Leases without any progress, after which an export is given up.
const MOST_TRIES: u32 = 10;

/// Goes on with the exports that are due, for the time of a tick. They take turns.
///
/// # Errors
/// The first error of an export; the others go on all the same.
pub async fn run_exports(cx: &EventContext<'_>) -> Result<()> {
    let deadline = cx.service.clock.now().plus_seconds(BUDGET);
    let (mut running, mut result): (Vec<LeasedExport>, _) = (Vec::new(), Ok(()));
    loop {
        result = result.and(join_due(cx, &mut running).await);
        if running.is_empty() {
            return result;
        }
        let turns: Vec<_> = running.drain(..).map(|one| one.turn(cx)).collect();
        let mut turns = stream::iter(turns).buffered(TOGETHER.1);
        while let Some(turn) = turns.next().await {
            match turn {
                Ok(more) => running.extend(more),
                // Its lease expires, and the next one tries again.
                Err(error) => result = result.and(Err(error)),
            }
        }
        if deadline < cx.service.clock.now() {
            break;
        }
    }
    for one in running {
        result = result.and(one.pause(cx).await);
    }
    result
}

/// Takes a lease on exports that are due, as long as there is room.
async fn join_due(cx: &EventContext<'_>, running: &mut Vec<LeasedExport>) -> Result<()> {
    let room = TOGETHER.0.saturating_sub(running.len());
    if room == 0 {
        return Ok(());
    }
    let due = cx.service.store.due(Due::Export, cx.service.clock.now(), 100).await?;
    let mut result = Ok(());
    for key in due {
        if running.len() >= TOGETHER.0 {
            break;
        }
        match LeasedExport::begin(cx, &key).await {
            Ok(found) => running.extend(found),
            Err(error) => result = result.and(Err(error)),
        }
    }
    result
}

/// An export on which this process has a lease.
struct LeasedExport {
    table: Table,
    /// The export as it is stored.
    export: Export,
    /// What has been made, with what is read and not stored yet.
    made: ExportProgress,
    /// The bytes of rows that are in no part yet.
    bytes: Vec<u8>,
    /// The rows of the next piece.
    most: usize,
}

impl LeasedExport {
    /// Takes a lease on the export at `key`; `None` if nothing is left to make. An ended one is removed.
    async fn begin(cx: &EventContext<'_>, key: &Key) -> Result<Option<Self>> {
        let Some(tenant) = Tenant::of_partition_key(&key.pk) else { return Ok(None) };
        let (table, now) = (cx.table(tenant), cx.service.clock.now());
        let Some(item) = table.store.get(key).await? else { return Ok(None) };
        let export: Export = from_item(item)?;
        // The index may be a moment old.
        if export.due_at.is_none_or(|due| now < due) {
            return Ok(None);
        }
        if !export.is_running() {
            return remove(cx, &table, &export).await.map(|()| None);
        }
        if export.progress.tries >= MOST_TRIES {
            return give_up(cx, &table, &export, "it failed again and again").await.map(|()| None);
        }
        let progress = ExportProgress {
            tries: export.progress.tries + 1,
            number: export.progress.number + 1,
            ..export.progress.clone()
        };
        let due_at = Some(now.plus_seconds(LEASE));
        let Some(export) = table.replace(export.id, &export, Export { progress, due_at, ..export.clone() }).await?
        else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        if let Some(rest) = export.progress.rest {
            match cx.service.bucket.read(&export.object(&table.tenant).beside(rest)).await? {
                Some(rest) => bytes = rest,
                None => return begin_again(cx, &table, &export).await.map(|()| None),
            }
        }
        Ok(Some(Self { made: export.progress.clone(), table, export, bytes, most: ROWS.0 }))
    }

    /// Reads rows, and stores a part if there is enough for one. Returns itself if there is more to do.
    async fn turn(mut self, cx: &EventContext<'_>) -> Result<Option<Self>> {
        for _ in 0..PIECES {
            if self.is_read() || self.bytes.len() >= PART {
                break;
            }
            self.read().await?;
        }
        if self.bytes.len() < PART && !self.is_read() {
            return Ok(Some(self));
        }
        if !self.bytes.is_empty() && !self.store_part(cx).await? {
            return Ok(None);
        }
        if !self.is_read() {
            return Ok(Some(self));
        }
        self.complete(cx).await.map(|()| None)
    }

    /// Whether all records are read.
    fn is_read(&self) -> bool {
        self.made.record >= self.export.records.0.len()
    }

    /// Reads the next piece.
    async fn read(&mut self) -> Result<()> {
        let Some(record) = self.export.records.0.get(self.made.record).copied() else { return Ok(()) };
        let (format, columns) = (self.export.format, source::columns(record));
        let before = self.bytes.len();
        if !self.made.has_begun {
            self.bytes.extend_from_slice(format.head(&columns).as_bytes());
        }
        let filters = self.export.filters_of(record);
        let at = self.made.place.unwrap_or_default();
        let found = source::read(record, &self.table, &filters, at, self.most).await?;
        let (rows, start) = (found.lines.len(), self.bytes.len());
        for line in found.lines {
            format.add(&mut self.bytes, record, &columns, &line)?;
        }
        // Where filters leave nothing, more rows are read the next time.
        let fitting = (PIECE * rows).checked_div(self.bytes.len() - start).unwrap_or(self.most * 2);
        self.most = fitting.clamp(ROWS.1, ROWS.2);
        self.made.has_begun = true;
        self.made.rows += rows as u64;
        self.made.bytes += (self.bytes.len() - before) as u64;
        (self.made.record, self.made.place) = match found.next {
            Some(next) => (self.made.record, Some(next)),
            None => (self.made.record + 1, None),
        };
        Ok(())
    }

    /// Uploads a part of all bytes, and stores it; false if another process has the export by now.
    async fn store_part(&mut self, cx: &EventContext<'_>) -> Result<bool> {
        let (bucket, key) = (&cx.service.bucket, self.export.object(&self.table.tenant));
        if self.made.parts.len() >= MOST_PARTS {
            return give_up(cx, &self.table, &self.export, "it is too large; use filters").await.map(|()| false);
        }
        let upload = match self.made.upload.take() {
            Some(upload) => upload,
            // If this process crashes before it is stored, a rule of the bucket ends it.
            None => bucket.begin_upload(&key, self.export.format.content_type()).await?,
        };
        let bytes = std::mem::take(&mut self.bytes);
        let Some(part) = bucket.upload_part(&key, &upload, self.made.number, bytes).await? else {
            return begin_again(cx, &self.table, &self.export).await.map(|()| false);
        };
        self.made.upload = Some(upload);
        self.made.parts.push(part);
        self.made.number += 1;
        self.made.rest = None;
        let due_at = cx.service.clock.now().plus_seconds(LEASE);
        self.store(due_at, cx.service.clock.now()).await
    }

    /// Stores what has been made; false if another process has the export by now.
    async fn store(&mut self, due_at: Timestamp, now: Timestamp) -> Result<bool> {
        self.made.tries = 0;
        let mut is = Export { progress: self.made.clone(), due_at: Some(due_at), ..self.export.clone() };
        if is.status == ExportStatus::Queued {
            (is.status, is.updated_at) = (ExportStatus::InProgress, now);
        }
        let stored = self.table.replace(self.export.id, &self.export, is).await?;
        let is_stored = stored.is_some();
        self.export = stored.unwrap_or_else(|| self.export.clone());
        Ok(is_stored)
    }

    /// Makes the file of the parts, and completes the export. An earlier process may have made the file.
    async fn complete(self, cx: &EventContext<'_>) -> Result<()> {
        let (bucket, key, now) = (&cx.service.bucket, self.export.object(&self.table.tenant), cx.service.clock.now());
        if let Some(upload) = &self.made.upload {
            let is_made = bucket.complete_upload(&key, upload, &self.made.parts).await?
                || bucket.beginning(&key).await?.is_some();
            if !is_made && self.made.tries < JOINING {
                // Its lease expires, and the next one looks again.
                return Ok(());
            }
            if !is_made {
                return begin_again(cx, &self.table, &self.export).await;
            }
        }
        let ExportProgress { rows, bytes, .. } = self.made;
        let is = Export { status: ExportStatus::Completed, rows, bytes, ..ended(&self.export, now) };
        Ok(self.table.replace(self.export.id, &self.export, is).await.map(drop)?)
    }

    /// Leaves the export to the next tick: bytes that are too few for a part are stored beside the file.
    async fn pause(mut self, cx: &EventContext<'_>) -> Result<()> {
        let now = cx.service.clock.now();
        if self.bytes.is_empty() {
            self.made.rest = None;
        } else if self.made != self.export.progress {
            let number = self.made.number;
            let rest = self.export.object(&self.table.tenant).beside(number);
            cx.service.bucket.put(&rest, "application/octet-stream", std::mem::take(&mut self.bytes)).await?;
            (self.made.rest, self.made.number) = (Some(number), number + 1);
        }
        self.store(now, now).await.map(drop)
    }
}

/// `export` after it has ended `now`.
fn ended(export: &Export, now: Timestamp) -> Export {
    let expires_at = Some(now.plus_seconds(KEPT));
    Export {
        ended_at: Some(now),
        expires_at,
        updated_at: now,
        due_at: expires_at,
        progress: ExportProgress::default(),
        ..export.clone()
    }
}

/// Ends an export without a file.
async fn give_up(cx: &EventContext<'_>, table: &Table, export: &Export, reason: &str) -> Result<()> {
    if let Some(upload) = &export.progress.upload {
        cx.service.bucket.abort_upload(&export.object(&table.tenant), upload).await?;
    }
    let is = Export {
        status: ExportStatus::Failed,
        error: Some(reason.to_owned()),
        ..ended(export, cx.service.clock.now())
    };
    Ok(table.replace(export.id, export, is).await.map(drop)?)
}

/// Lets an export begin again: what it had in the bucket is gone, because it stood still for a day.
async fn begin_again(cx: &EventContext<'_>, table: &Table, export: &Export) -> Result<()> {
    let ExportProgress { number, tries, .. } = export.progress;
    let progress = ExportProgress { number, tries, ..ExportProgress::default() };
    let is = Export { progress, due_at: Some(cx.service.clock.now()), ..export.clone() };
    Ok(table.replace(export.id, export, is).await.map(drop)?)
}

/// Removes an export that has expired: first its file, so that a crash in between leaves the export to the next tick.
async fn remove(cx: &EventContext<'_>, table: &Table, export: &Export) -> Result<()> {
    cx.service.bucket.remove(&export.object(&table.tenant)).await?;
    match table.remove::<Export>(export.id).await {
        Ok(_) | Err(TableError::Missing) => Ok(()),
        Err(error) => Err(Error::from(error)),
    }
}
