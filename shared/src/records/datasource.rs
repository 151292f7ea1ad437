//! Data sources, their files, and their links to assistants.

mod content;
pub mod files;
pub mod uploads;

use crate::records::assistant::Assistant;
use crate::table::cascade::Links;
use crate::table::keys::Key;
use crate::table::quota::{Amounts, Quota};
use crate::table::version::Version;
use crate::values::id::{AssistantId, DatasourceFileId, DatasourceId, DatasourceLinkId, OrgId};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::text::{Description, Name};
use crate::values::time::Timestamp;
use uuid::Uuid;

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
        /// Name of the data source, for those who manage it.
        input name: Option<Name> = None,
        /// What the content is about.
        input description: Option<Description> = None,
        /// Type of the content.
        input(filter) ds_type: DatasourceType,
        /// State of the import. The program that imports the content sets it by `update-datasource`.
        later(filter) ds_status: DatasourceStatus = DatasourceStatus::Empty,
        /// Any JSON object of your own. The service stores it and does not read it.
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
    pub struct DatasourceFile(DatasourceFileId): listed("DATASOURCE_FILE" within DatasourceId => Datasource, counted DatasourceFile::uses_of_quotas) {
        /// The data source.
        parent datasource_id: DatasourceId,
        /// Name of the file.
        input name: Option<Name> = None,
        /// What the content is about.
        input description: Option<Description> = None,
        /// Type of the content.
        input ds_type: DatasourceType = DatasourceType::Doc,
        /// Size in bytes.
        fixed size_bytes: i64,
        /// When its bytes arrived in the bucket, in whole seconds. Null until the service has noted it, some seconds after the upload; always null in files whose bytes arrived before the service noted this.
        own uploaded_at: Option<Timestamp> = None,
        /// Any JSON object of your own. The service stores it and does not read it.
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
    /// The link between a data source and an assistant, once for each two.
    pub struct DatasourceLink(DatasourceLinkId): listed("DATASOURCE_LINK" of AssistantId => Assistant, pointers Self::pointer) {
        /// The data source.
        fixed datasource_id: DatasourceId => Datasource,
        /// The assistant.
        parent assistant_id: AssistantId,
        /// When it was made.
        created created_at: Timestamp,
    }
}

impl DatasourceFile {
    /// The bytes count as soon as their upload is allowed.
    fn uses_of_quotas(&self) -> Amounts {
        vec![(Quota::Files, 1), (Quota::FileBytes, self.size_bytes.max(0).unsigned_abs())]
    }
}

impl DatasourceLink {
    /// A new link, in the list of the assistant.
    pub fn new(
        id: DatasourceLinkId,
        datasource_id: DatasourceId,
        assistant_id: AssistantId,
        created_at: Timestamp,
    ) -> Self {
        Self { id, datasource_id, assistant_id, created_at, version: Version::default() }
    }

    fn pointer(&self, tenant: &Tenant) -> Vec<Key> {
        vec![Self::pointer_of(tenant, self.datasource_id.0, self.assistant_id)]
    }
}

impl Links<Datasource> for DatasourceLink {
    fn partition(datasource: Uuid) -> String {
        format!("DATASOURCE_LINK#{datasource}")
    }
}

crate::object! {
    /// A data source and the assistant that it is linked to.
    pub struct LinkedDatasource {
        /// The data source.
        pub datasource_id: DatasourceId,
        /// The assistant.
        pub assistant_id: AssistantId,
    }
}

impl From<DatasourceLink> for LinkedDatasource {
    fn from(link: DatasourceLink) -> Self {
        Self { datasource_id: link.datasource_id, assistant_id: link.assistant_id }
    }
}
