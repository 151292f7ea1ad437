//! Data sources, their files, and their links to assistants.

use crate::values::id::{AssistantId, DatasourceFileId, DatasourceId, OrgId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::choice! {
    /// What a data source is made of.
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
    /// How far its contents have been taken in.
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
    pub struct Datasource {
        /// Identifier.
        pub id: DatasourceId,
        /// What people read.
        pub name: Option<String>,
        /// What is in it.
        pub description: Option<String>,
        /// What it is made of.
        pub ds_type: DatasourceType,
        /// How far its contents have been taken in.
        pub ds_status: DatasourceStatus,
        /// Free-form.
        pub attributes: JsonObject,
        /// The organisation.
        pub org_id: OrgId,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}

crate::record! {
    /// A file of a data source.
    pub struct DatasourceFile {
        /// Identifier.
        pub id: DatasourceFileId,
        /// The data source.
        pub datasource_id: DatasourceId,
        /// File name.
        pub name: Option<String>,
        /// What is in it.
        pub description: Option<String>,
        /// What it is made of.
        pub ds_type: DatasourceType,
        /// Bytes.
        pub size_bytes: i64,
        /// Free-form.
        pub attributes: JsonObject,
        /// The organisation.
        pub org_id: OrgId,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}

crate::record! {
    /// The link between a data source and an assistant.
    pub struct DatasourceLink {
        /// The data source.
        pub datasource_id: DatasourceId,
        /// The assistant.
        pub assistant_id: AssistantId,
    }
}
