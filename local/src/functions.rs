//! Every function, as its binary runs it. `UPDATE=1 cargo test` writes this file.

use shared::request::pipeline::{Description, Handler};
use shared::routes;
use shared::runtime::operator::Task;
use shared::runtime::schedule::Scheduled;
use shared::runtime::stream::Consumer;

/// The operations, in the order of the route table.
#[rustfmt::skip]
pub const OPERATIONS: &[Handler] = &[
    Handler::of::<assistant::CreateAssistant>(&routes::CREATE_ASSISTANT),
    Handler::of::<billing_plan::CreateAgencyBillingPlan>(&routes::CREATE_AGENCY_BILLING_PLAN),
    Handler::of::<agency::CreateAgency>(&routes::CREATE_AGENCY),
    Handler::of::<campaign::RunCampaign>(&routes::RUN_CAMPAIGN),
    Handler::of::<user::GetAgentList>(&routes::GET_AGENT_LIST),
    Handler::of::<link::ReadLinkTagEntityList>(&routes::READ_LINK_TAG_ENTITY_LIST),
    Handler::of::<agency::SetupPaymentWebhook>(&routes::SETUP_PAYMENT_WEBHOOK),
    Handler::of::<datasource::DeleteLinkedAssistantDatasource>(&routes::DELETE_LINKED_ASSISTANT_DATASOURCE),
    Handler::of::<datasource_file::DeleteDatasourceFile>(&routes::DELETE_DATASOURCE_FILE),
    Handler::of::<campaign_contact::DeleteCampaignContact>(&routes::DELETE_CAMPAIGN_CONTACT),
    Handler::of::<intent::DeleteIntent>(&routes::DELETE_INTENT),
    Handler::of::<form::DeleteForm>(&routes::DELETE_FORM),
    Handler::of::<tag::DeleteTag>(&routes::DELETE_TAG),
    Handler::of::<webhook::CreateWebhook>(&routes::CREATE_WEBHOOK),
    Handler::of::<webhook::ReadWebhook>(&routes::READ_WEBHOOK),
    Handler::of::<webhook::ListWebhooks>(&routes::LIST_WEBHOOKS),
    Handler::of::<webhook::UpdateWebhook>(&routes::UPDATE_WEBHOOK),
    Handler::of::<webhook::DeleteWebhook>(&routes::DELETE_WEBHOOK),
    Handler::of::<webhook::RotateWebhookSecret>(&routes::ROTATE_WEBHOOK_SECRET),
    Handler::of::<webhook::SendTestEvent>(&routes::SEND_TEST_EVENT),
    Handler::of::<delivery::ListDeliveries>(&routes::LIST_DELIVERIES),
    Handler::of::<delivery::Redeliver>(&routes::REDELIVER),
    Handler::of::<conversation::OpenConversation>(&routes::OPEN_CONVERSATION),
    Handler::of::<conversation::AddMessage>(&routes::ADD_MESSAGE),
    Handler::of::<conversation::CloseConversation>(&routes::CLOSE_CONVERSATION),
    Handler::of::<conversation::ReadConversation>(&routes::READ_CONVERSATION),
    Handler::of::<conversation::ListConversations>(&routes::LIST_CONVERSATIONS),
    Handler::of::<campaign::ReadCampaign>(&routes::READ_CAMPAIGN),
    Handler::of::<campaign_contact::ListCampaignContacts>(&routes::LIST_CAMPAIGN_CONTACTS),
    Handler::of::<campaign::CancelCampaign>(&routes::CANCEL_CAMPAIGN),
    Handler::of::<datasource_file::CreateDatasourceFile>(&routes::CREATE_DATASOURCE_FILE),
    Handler::of::<datasource_file::AddDatasourceTextBlob>(&routes::ADD_DATASOURCE_TEXT_BLOB),
    Handler::of::<datasource_file::ListDatasourceFiles>(&routes::LIST_DATASOURCE_FILES),
    Handler::of::<datasource_file::ReadDatasourceFile>(&routes::READ_DATASOURCE_FILE),
];

/// The tasks of operators.
#[rustfmt::skip]
pub const TASKS: &[Task] = &[
    Task::of::<operator::IssueApiKey>(),
    Task::of::<operator::ListApiKeys>(),
    Task::of::<operator::RevokeApiKey>(),
];

/// The functions on the table's stream.
#[rustfmt::skip]
pub const CONSUMERS: &[Consumer] = &[
    Consumer::of::<background::RecordChanged>(),
    Consumer::of::<background::SendDelivery>(),
];

/// The functions on a schedule alone.
#[rustfmt::skip]
pub const SCHEDULED: &[Scheduled] = &[
    Scheduled::of::<background::ReleaseDeliveries>(),
    Scheduled::of::<background::SendCampaigns>(),
];

type Describe = fn() -> Description;

/// The schemas of each operation.
#[rustfmt::skip]
const DESCRIPTIONS: &[(&str, Describe)] = &[
    ("create-assistant", Description::of::<assistant::CreateAssistant>),
    ("create-agency-billing-plan", Description::of::<billing_plan::CreateAgencyBillingPlan>),
    ("create-agency", Description::of::<agency::CreateAgency>),
    ("run-campaign", Description::of::<campaign::RunCampaign>),
    ("get-agent-list", Description::of::<user::GetAgentList>),
    ("read-link-tag-entity-list", Description::of::<link::ReadLinkTagEntityList>),
    ("setup-payment-webhook", Description::of::<agency::SetupPaymentWebhook>),
    ("delete-linked-assistant-datasource", Description::of::<datasource::DeleteLinkedAssistantDatasource>),
    ("delete-datasource-file", Description::of::<datasource_file::DeleteDatasourceFile>),
    ("delete-campaign-contact", Description::of::<campaign_contact::DeleteCampaignContact>),
    ("delete-intent", Description::of::<intent::DeleteIntent>),
    ("delete-form", Description::of::<form::DeleteForm>),
    ("delete-tag", Description::of::<tag::DeleteTag>),
    ("create-webhook", Description::of::<webhook::CreateWebhook>),
    ("read-webhook", Description::of::<webhook::ReadWebhook>),
    ("list-webhooks", Description::of::<webhook::ListWebhooks>),
    ("update-webhook", Description::of::<webhook::UpdateWebhook>),
    ("delete-webhook", Description::of::<webhook::DeleteWebhook>),
    ("rotate-webhook-secret", Description::of::<webhook::RotateWebhookSecret>),
    ("send-test-event", Description::of::<webhook::SendTestEvent>),
    ("list-deliveries", Description::of::<delivery::ListDeliveries>),
    ("redeliver", Description::of::<delivery::Redeliver>),
    ("open-conversation", Description::of::<conversation::OpenConversation>),
    ("add-message", Description::of::<conversation::AddMessage>),
    ("close-conversation", Description::of::<conversation::CloseConversation>),
    ("read-conversation", Description::of::<conversation::ReadConversation>),
    ("list-conversations", Description::of::<conversation::ListConversations>),
    ("read-campaign", Description::of::<campaign::ReadCampaign>),
    ("list-campaign-contacts", Description::of::<campaign_contact::ListCampaignContacts>),
    ("cancel-campaign", Description::of::<campaign::CancelCampaign>),
    ("create-datasource-file", Description::of::<datasource_file::CreateDatasourceFile>),
    ("add-datasource-text-blob", Description::of::<datasource_file::AddDatasourceTextBlob>),
    ("list-datasource-files", Description::of::<datasource_file::ListDatasourceFiles>),
    ("read-datasource-file", Description::of::<datasource_file::ReadDatasourceFile>),
];

/// The schemas of the operation `name`.
///
/// # Panics
/// Where there is no such operation.
pub fn describe(name: &str) -> Description {
    let found = DESCRIPTIONS.iter().find(|(operation, _)| *operation == name);
    found.map_or_else(|| panic!("no operation is called {name}"), |(_, describe)| describe())
}
