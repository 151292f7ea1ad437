//! Every function, as its binary runs it. `cargo generate` writes this file.

use shared::mcp::Server;
use shared::request::pipeline::{Description, Handler};
use shared::routes;
use shared::runtime::document::Published;
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
    Handler::of::<contact::UpsertContact>(&routes::UPSERT_CONTACT),
    Handler::of::<contact::ImportContacts>(&routes::IMPORT_CONTACTS),
    Handler::of::<contact::UpdateContact>(&routes::UPDATE_CONTACT),
    Handler::of::<contact::DeleteContact>(&routes::DELETE_CONTACT),
    Handler::of::<user::CreateUser>(&routes::CREATE_USER),
    Handler::of::<user::UpdateUser>(&routes::UPDATE_USER),
    Handler::of::<user::DeleteUser>(&routes::DELETE_USER),
    Handler::of::<campaign::CancelCampaign>(&routes::CANCEL_CAMPAIGN),
    Handler::of::<campaign::PauseCampaign>(&routes::PAUSE_CAMPAIGN),
    Handler::of::<campaign::ResumeCampaign>(&routes::RESUME_CAMPAIGN),
    Handler::of::<campaign::RetryCampaign>(&routes::RETRY_CAMPAIGN),
    Handler::of::<tag::CreateTag>(&routes::CREATE_TAG),
    Handler::of::<tag::ListTags>(&routes::LIST_TAGS),
    Handler::of::<tag::ReadTag>(&routes::READ_TAG),
    Handler::of::<tag::UpdateTag>(&routes::UPDATE_TAG),
    Handler::of::<intent::CreateIntent>(&routes::CREATE_INTENT),
    Handler::of::<intent::ListIntents>(&routes::LIST_INTENTS),
    Handler::of::<intent::ReadIntent>(&routes::READ_INTENT),
    Handler::of::<intent::UpdateIntent>(&routes::UPDATE_INTENT),
    Handler::of::<form::CreateForm>(&routes::CREATE_FORM),
    Handler::of::<form::ListForms>(&routes::LIST_FORMS),
    Handler::of::<form::ReadForm>(&routes::READ_FORM),
    Handler::of::<form::UpdateForm>(&routes::UPDATE_FORM),
    Handler::of::<datasource::CreateDatasource>(&routes::CREATE_DATASOURCE),
    Handler::of::<datasource::ListDatasources>(&routes::LIST_DATASOURCES),
    Handler::of::<datasource::ReadDatasource>(&routes::READ_DATASOURCE),
    Handler::of::<datasource::UpdateDatasource>(&routes::UPDATE_DATASOURCE),
    Handler::of::<datasource::DeleteDatasource>(&routes::DELETE_DATASOURCE),
    Handler::of::<widget::CreateWidget>(&routes::CREATE_WIDGET),
    Handler::of::<widget::ListWidgets>(&routes::LIST_WIDGETS),
    Handler::of::<widget::ReadWidget>(&routes::READ_WIDGET),
    Handler::of::<widget::UpdateWidget>(&routes::UPDATE_WIDGET),
    Handler::of::<widget::DeleteWidget>(&routes::DELETE_WIDGET),
    Handler::of::<assistant::ListAssistants>(&routes::LIST_ASSISTANTS),
    Handler::of::<assistant::ReadAssistant>(&routes::READ_ASSISTANT),
    Handler::of::<assistant::UpdateAssistant>(&routes::UPDATE_ASSISTANT),
    Handler::of::<assistant::DeleteAssistant>(&routes::DELETE_ASSISTANT),
    Handler::of::<assistant::LinkAssistantDatasource>(&routes::LINK_ASSISTANT_DATASOURCE),
    Handler::of::<assistant::ListAssistantDatasources>(&routes::LIST_ASSISTANT_DATASOURCES),
    Handler::of::<assistant::LinkAssistantIntent>(&routes::LINK_ASSISTANT_INTENT),
    Handler::of::<assistant::UnlinkAssistantIntent>(&routes::UNLINK_ASSISTANT_INTENT),
    Handler::of::<assistant::ListAssistantIntents>(&routes::LIST_ASSISTANT_INTENTS),
    Handler::of::<agency::ListAgencies>(&routes::LIST_AGENCIES),
    Handler::of::<agency::ReadAgency>(&routes::READ_AGENCY),
    Handler::of::<agency::UpdateAgency>(&routes::UPDATE_AGENCY),
    Handler::of::<agency::DeleteAgency>(&routes::DELETE_AGENCY),
    Handler::of::<agency::CheckPaymentWebhook>(&routes::CHECK_PAYMENT_WEBHOOK),
    Handler::of::<billing_plan::ListAgencyBillingPlans>(&routes::LIST_AGENCY_BILLING_PLANS),
    Handler::of::<billing_plan::ReadAgencyBillingPlan>(&routes::READ_AGENCY_BILLING_PLAN),
    Handler::of::<billing_plan::UpdateAgencyBillingPlan>(&routes::UPDATE_AGENCY_BILLING_PLAN),
    Handler::of::<billing_plan::DeleteAgencyBillingPlan>(&routes::DELETE_AGENCY_BILLING_PLAN),
    Handler::of::<user::ReadUser>(&routes::READ_USER),
    Handler::of::<contact::ListContacts>(&routes::LIST_CONTACTS),
    Handler::of::<contact::ReadContact>(&routes::READ_CONTACT),
    Handler::of::<link::CreateLinkTagEntity>(&routes::CREATE_LINK_TAG_ENTITY),
    Handler::of::<link::DeleteLinkTagEntity>(&routes::DELETE_LINK_TAG_ENTITY),
    Handler::of::<conversation::ReadConversationTranscript>(&routes::READ_CONVERSATION_TRANSCRIPT),
    Handler::of::<conversation::ListContactConversations>(&routes::LIST_CONTACT_CONVERSATIONS),
    Handler::of::<campaign::DeleteCampaign>(&routes::DELETE_CAMPAIGN),
    Handler::of::<conversation::DeleteConversation>(&routes::DELETE_CONVERSATION),
    Handler::of::<campaign::ListCampaigns>(&routes::LIST_CAMPAIGNS),
    Handler::of::<datasource_file::CreateDatasourceFile>(&routes::CREATE_DATASOURCE_FILE),
    Handler::of::<datasource_file::AddDatasourceTextBlob>(&routes::ADD_DATASOURCE_TEXT_BLOB),
    Handler::of::<datasource_file::ListDatasourceFiles>(&routes::LIST_DATASOURCE_FILES),
    Handler::of::<datasource_file::ReadDatasourceFile>(&routes::READ_DATASOURCE_FILE),
    Handler::of::<conversation::SendMessage>(&routes::SEND_MESSAGE),
    Handler::of::<campaign::MessageContacts>(&routes::MESSAGE_CONTACTS),
    Handler::of::<conversation::StartCall>(&routes::START_CALL),
    Handler::of::<campaign::CallContacts>(&routes::CALL_CONTACTS),
    Handler::of::<campaign::CreateCampaign>(&routes::CREATE_CAMPAIGN),
    Handler::of::<campaign::AddCampaignContacts>(&routes::ADD_CAMPAIGN_CONTACTS),
    Handler::of::<campaign::UpdateCampaign>(&routes::UPDATE_CAMPAIGN),
];

/// What the servers of others call.
#[rustfmt::skip]
pub const SIGNED: &[Handler] = &[
    Handler::signed::<agency::ReceivePaymentEvent>(&routes::RECEIVE_PAYMENT_EVENT),
];

/// What anybody may read.
#[rustfmt::skip]
pub const DOCUMENTS: &[Published] = &[
    Published::of::<document::ReadOpenapi>(&routes::READ_OPENAPI),
    Published::of::<document::ReadDocs>(&routes::READ_DOCS),
];

/// What serves the operations to agents.
#[rustfmt::skip]
pub const SERVERS: &[Server] = &[
    Server::of::<mcp::Mcp>(&routes::MCP),
];

/// The tasks of operators.
#[rustfmt::skip]
pub const TASKS: &[Task] = &[
    Task::of::<operator::IssueApiKey>(),
    Task::of::<operator::ListApiKeys>(),
    Task::of::<operator::RevokeApiKey>(),
    Task::of::<operator::UpdateApiKey>(),
    Task::of::<background::Redrive>(),
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
    Scheduled::of::<background::RemovePaymentWebhooks>(),
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
    ("upsert-contact", Description::of::<contact::UpsertContact>),
    ("import-contacts", Description::of::<contact::ImportContacts>),
    ("update-contact", Description::of::<contact::UpdateContact>),
    ("delete-contact", Description::of::<contact::DeleteContact>),
    ("create-user", Description::of::<user::CreateUser>),
    ("update-user", Description::of::<user::UpdateUser>),
    ("delete-user", Description::of::<user::DeleteUser>),
    ("cancel-campaign", Description::of::<campaign::CancelCampaign>),
    ("pause-campaign", Description::of::<campaign::PauseCampaign>),
    ("resume-campaign", Description::of::<campaign::ResumeCampaign>),
    ("retry-campaign", Description::of::<campaign::RetryCampaign>),
    ("create-tag", Description::of::<tag::CreateTag>),
    ("list-tags", Description::of::<tag::ListTags>),
    ("read-tag", Description::of::<tag::ReadTag>),
    ("update-tag", Description::of::<tag::UpdateTag>),
    ("create-intent", Description::of::<intent::CreateIntent>),
    ("list-intents", Description::of::<intent::ListIntents>),
    ("read-intent", Description::of::<intent::ReadIntent>),
    ("update-intent", Description::of::<intent::UpdateIntent>),
    ("create-form", Description::of::<form::CreateForm>),
    ("list-forms", Description::of::<form::ListForms>),
    ("read-form", Description::of::<form::ReadForm>),
    ("update-form", Description::of::<form::UpdateForm>),
    ("create-datasource", Description::of::<datasource::CreateDatasource>),
    ("list-datasources", Description::of::<datasource::ListDatasources>),
    ("read-datasource", Description::of::<datasource::ReadDatasource>),
    ("update-datasource", Description::of::<datasource::UpdateDatasource>),
    ("delete-datasource", Description::of::<datasource::DeleteDatasource>),
    ("create-widget", Description::of::<widget::CreateWidget>),
    ("list-widgets", Description::of::<widget::ListWidgets>),
    ("read-widget", Description::of::<widget::ReadWidget>),
    ("update-widget", Description::of::<widget::UpdateWidget>),
    ("delete-widget", Description::of::<widget::DeleteWidget>),
    ("list-assistants", Description::of::<assistant::ListAssistants>),
    ("read-assistant", Description::of::<assistant::ReadAssistant>),
    ("update-assistant", Description::of::<assistant::UpdateAssistant>),
    ("delete-assistant", Description::of::<assistant::DeleteAssistant>),
    ("link-assistant-datasource", Description::of::<assistant::LinkAssistantDatasource>),
    ("list-assistant-datasources", Description::of::<assistant::ListAssistantDatasources>),
    ("link-assistant-intent", Description::of::<assistant::LinkAssistantIntent>),
    ("unlink-assistant-intent", Description::of::<assistant::UnlinkAssistantIntent>),
    ("list-assistant-intents", Description::of::<assistant::ListAssistantIntents>),
    ("list-agencies", Description::of::<agency::ListAgencies>),
    ("read-agency", Description::of::<agency::ReadAgency>),
    ("update-agency", Description::of::<agency::UpdateAgency>),
    ("delete-agency", Description::of::<agency::DeleteAgency>),
    ("check-payment-webhook", Description::of::<agency::CheckPaymentWebhook>),
    ("list-agency-billing-plans", Description::of::<billing_plan::ListAgencyBillingPlans>),
    ("read-agency-billing-plan", Description::of::<billing_plan::ReadAgencyBillingPlan>),
    ("update-agency-billing-plan", Description::of::<billing_plan::UpdateAgencyBillingPlan>),
    ("delete-agency-billing-plan", Description::of::<billing_plan::DeleteAgencyBillingPlan>),
    ("read-user", Description::of::<user::ReadUser>),
    ("list-contacts", Description::of::<contact::ListContacts>),
    ("read-contact", Description::of::<contact::ReadContact>),
    ("create-link-tag-entity", Description::of::<link::CreateLinkTagEntity>),
    ("delete-link-tag-entity", Description::of::<link::DeleteLinkTagEntity>),
    ("read-conversation-transcript", Description::of::<conversation::ReadConversationTranscript>),
    ("list-contact-conversations", Description::of::<conversation::ListContactConversations>),
    ("delete-campaign", Description::of::<campaign::DeleteCampaign>),
    ("delete-conversation", Description::of::<conversation::DeleteConversation>),
    ("list-campaigns", Description::of::<campaign::ListCampaigns>),
    ("create-datasource-file", Description::of::<datasource_file::CreateDatasourceFile>),
    ("add-datasource-text-blob", Description::of::<datasource_file::AddDatasourceTextBlob>),
    ("list-datasource-files", Description::of::<datasource_file::ListDatasourceFiles>),
    ("read-datasource-file", Description::of::<datasource_file::ReadDatasourceFile>),
    ("send-message", Description::of::<conversation::SendMessage>),
    ("message-contacts", Description::of::<campaign::MessageContacts>),
    ("start-call", Description::of::<conversation::StartCall>),
    ("call-contacts", Description::of::<campaign::CallContacts>),
    ("create-campaign", Description::of::<campaign::CreateCampaign>),
    ("add-campaign-contacts", Description::of::<campaign::AddCampaignContacts>),
    ("update-campaign", Description::of::<campaign::UpdateCampaign>),
    ("receive-payment-event", Description::of_signed::<agency::ReceivePaymentEvent>),
];

/// The schemas of the operation `name`.
///
/// # Panics
/// Where there is no such operation.
pub fn describe(name: &str) -> Description {
    let found = DESCRIPTIONS.iter().find(|(operation, _)| *operation == name);
    found.map_or_else(|| panic!("no operation is called {name}"), |(_, describe)| describe())
}
