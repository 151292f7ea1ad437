//! Data sources, their files, and their links to assistants.

pub mod files;

use crate::request::tenant::Tenant;
use crate::table::keys::Key;
use crate::table::stored::{Single, Stored};
use crate::values::id::{AssistantId, DatasourceFileId, DatasourceId, Id as _, OrgId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::choice! {
    /// The kind of content.
    pub enum DatasourceType {
        Pdf = "pdf",
        Doc = "doc",
        Http = "http",
        Tool = "tool",
        TextBlob = "text_blob",
        Image = "image",
        TextImage = "text_image",
    }
}

crate::choice! {
    /// The state of the import of its content.
    pub enum DatasourceStatus {
        Empty = "empty",
        Initialized = "initialized",
        InProcess = "in_process",
        ReadyForUse = "ready_for_use",
        Failed = "failed",
    }
}

crate::record! {
    /// A data source.
    pub struct Datasource(DatasourceId): listed("DATASOURCE") {
        /// What people read.
        input name: Option<String> = None,
        /// What is in it.
        input description: Option<String> = None,
        /// The kind of its content.
        input ds_type: DatasourceType,
        /// The state of the import of its content.
        input ds_status: DatasourceStatus = DatasourceStatus::Empty,
        /// Free-form.
        input attributes: JsonObject = JsonObject::default(),
        /// The organisation.
        org org_id: OrgId,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

crate::record! {
    /// A file of a data source.
    pub struct DatasourceFile(DatasourceFileId): listed("DATASOURCE_FILE" within DatasourceId => Datasource) {
        /// The data source.
        parent datasource_id: DatasourceId,
        /// File name.
        input name: Option<String> = None,
        /// What is in it.
        input description: Option<String> = None,
        /// The kind of its content.
        input ds_type: DatasourceType = DatasourceType::Doc,
        /// Bytes.
        fixed size_bytes: i64,
        /// Free-form.
        input attributes: JsonObject = JsonObject::default(),
        /// The organisation.
        org org_id: OrgId,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

crate::object! {
    /// The link between a data source and an assistant.
    pub struct DatasourceLink {
        /// The data source.
        pub datasource_id: DatasourceId,
        /// The assistant.
        pub assistant_id: AssistantId,
    }
}

// The links of a data source share a partition. The key of a link is its whole content.
impl Stored for DatasourceLink {
    type Id = (DatasourceId, AssistantId);
    const PARAMETER: &'static str = AssistantId::PARAMETER;

    fn key(tenant: &Tenant, (datasource, assistant): Self::Id) -> Key {
        Key::of(tenant, format_args!("DATASOURCE_LINK#{datasource}"), assistant)
    }
}

impl Single for DatasourceLink {}
