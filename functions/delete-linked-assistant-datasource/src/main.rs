//! Runs `delete-linked-assistant-datasource` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<delete_linked_assistant_datasource::DeleteLinkedAssistantDatasource>())
}
