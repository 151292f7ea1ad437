//! Told by the bucket of files: notes when the bytes of a file have arrived. An operator can invoke it for an upload that was missed.

use shared::prelude::operator::*;
use shared::records::datasource::uploads::{NewObject, NotedUpload, note};
use shared::request::event::EventContext;

pub struct NoteUpload;

impl OperatorTask for NoteUpload {
    const NAME: &'static str = "note-upload";
    type Input = NewObject;
    type Output = NotedUpload;

    async fn run(cx: &OperatorContext<'_>, input: NewObject) -> Result<NotedUpload> {
        note(&EventContext { service: cx.service }, &input).await
    }
}
