//! Every function, as its binary runs it. `cargo generate` writes this file.

// The packages, and not the prelude's modules of the same names.
use ::{analytics, audit, campaign, contact, conversation, delivery, event, operator, usage};
use shared::mcp::Server;
use shared::prelude::*;
use shared::request::pipeline::{Description, Handler};
use shared::request::route::Route;
use shared::request::signed::SignedOperation;
use shared::routes;
use shared::runtime::document::Published;
use shared::runtime::operator::Task;
use shared::runtime::schedule::Scheduled;
use shared::runtime::stream::Consumer;

/// The operations, in the order of the route table.
#[rustfmt::skip]
pub const OPERATIONS: &[Described] = &[
    Described::of::<assistant::CreateAssistant>(&routes::CREATE_ASSISTANT),
    Described::of::<billing_plan::CreateAgencyBillingPlan>(&routes::CREATE_AGENCY_BILLING_PLAN),
    Described::of::<Create<Agency>>(&routes::CREATE_AGENCY),
    Described::of::<campaign::RunCampaign>(&routes::RUN_CAMPAIGN),
    Described::of::<user::GetAgentList>(&routes::GET_AGENT_LIST),
    Described::of::<link::ReadLinkTagEntityList>(&routes::READ_LINK_TAG_ENTITY_LIST),
    Described::of::<agency::SetupPaymentWebhook>(&routes::SETUP_PAYMENT_WEBHOOK),
    Described::of::<datasource::DeleteLinkedAssistantDatasource>(&routes::DELETE_LINKED_ASSISTANT_DATASOURCE),
    Described::of::<Delete<DatasourceFile>>(&routes::DELETE_DATASOURCE_FILE),
    Described::of::<campaign_contact::DeleteCampaignContact>(&routes::DELETE_CAMPAIGN_CONTACT),
    Described::of::<Delete<Intent>>(&routes::DELETE_INTENT),
    Described::of::<Delete<Form>>(&routes::DELETE_FORM),
    Described::of::<Delete<Tag>>(&routes::DELETE_TAG),
    Described::of::<webhook::CreateWebhook>(&routes::CREATE_WEBHOOK),
    Described::of::<Read<Webhook>>(&routes::READ_WEBHOOK),
    Described::of::<List<Webhook>>(&routes::LIST_WEBHOOKS),
    Described::of::<webhook::UpdateWebhook>(&routes::UPDATE_WEBHOOK),
    Described::of::<Delete<Webhook>>(&routes::DELETE_WEBHOOK),
    Described::of::<webhook::RotateWebhookSecret>(&routes::ROTATE_WEBHOOK_SECRET),
    Described::of::<webhook::SendTestEvent>(&routes::SEND_TEST_EVENT),
    Described::of::<webhook::RecoverWebhook>(&routes::RECOVER_WEBHOOK),
    Described::of::<delivery::ListDeliveries>(&routes::LIST_DELIVERIES),
    Described::of::<delivery::ReadDeliveryStats>(&routes::READ_DELIVERY_STATS),
    Described::of::<delivery::Redeliver>(&routes::REDELIVER),
    Described::of::<conversation::OpenConversation>(&routes::OPEN_CONVERSATION),
    Described::of::<conversation::AddMessage>(&routes::ADD_MESSAGE),
    Described::of::<Update<Conversation>>(&routes::UPDATE_CONVERSATION),
    Described::of::<conversation::CloseConversation>(&routes::CLOSE_CONVERSATION),
    Described::of::<conversation::ReadConversation>(&routes::READ_CONVERSATION),
    Described::of::<conversation::ListConversations>(&routes::LIST_CONVERSATIONS),
    Described::of::<campaign::ReadCampaign>(&routes::READ_CAMPAIGN),
    Described::of::<campaign_contact::ListCampaignContacts>(&routes::LIST_CAMPAIGN_CONTACTS),
    Described::of::<contact::UpsertContact>(&routes::UPSERT_CONTACT),
    Described::of::<contact::ImportContacts>(&routes::IMPORT_CONTACTS),
    Described::of::<Update<Contact>>(&routes::UPDATE_CONTACT),
    Described::of::<Delete<Contact>>(&routes::DELETE_CONTACT),
    Described::of::<Create<User>>(&routes::CREATE_USER),
    Described::of::<Update<User>>(&routes::UPDATE_USER),
    Described::of::<Delete<User>>(&routes::DELETE_USER),
    Described::of::<campaign::CancelCampaign>(&routes::CANCEL_CAMPAIGN),
    Described::of::<campaign::PauseCampaign>(&routes::PAUSE_CAMPAIGN),
    Described::of::<campaign::ResumeCampaign>(&routes::RESUME_CAMPAIGN),
    Described::of::<campaign::RetryCampaign>(&routes::RETRY_CAMPAIGN),
    Described::of::<Create<Tag>>(&routes::CREATE_TAG),
    Described::of::<List<Tag>>(&routes::LIST_TAGS),
    Described::of::<Read<Tag>>(&routes::READ_TAG),
    Described::of::<Update<Tag>>(&routes::UPDATE_TAG),
    Described::of::<Create<Intent>>(&routes::CREATE_INTENT),
    Described::of::<List<Intent>>(&routes::LIST_INTENTS),
    Described::of::<Read<Intent>>(&routes::READ_INTENT),
    Described::of::<Update<Intent>>(&routes::UPDATE_INTENT),
    Described::of::<Create<Form>>(&routes::CREATE_FORM),
    Described::of::<List<Form>>(&routes::LIST_FORMS),
    Described::of::<Read<Form>>(&routes::READ_FORM),
    Described::of::<Update<Form>>(&routes::UPDATE_FORM),
    Described::of::<Create<Datasource>>(&routes::CREATE_DATASOURCE),
    Described::of::<List<Datasource>>(&routes::LIST_DATASOURCES),
    Described::of::<Read<Datasource>>(&routes::READ_DATASOURCE),
    Described::of::<Update<Datasource>>(&routes::UPDATE_DATASOURCE),
    Described::of::<Delete<Datasource>>(&routes::DELETE_DATASOURCE),
    Described::of::<widget::CreateWidget>(&routes::CREATE_WIDGET),
    Described::of::<List<Widget>>(&routes::LIST_WIDGETS),
    Described::of::<Read<Widget>>(&routes::READ_WIDGET),
    Described::of::<widget::UpdateWidget>(&routes::UPDATE_WIDGET),
    Described::of::<Delete<Widget>>(&routes::DELETE_WIDGET),
    Described::of::<widget::RotateWidgetSecret>(&routes::ROTATE_WIDGET_SECRET),
    Described::of::<List<Assistant>>(&routes::LIST_ASSISTANTS),
    Described::of::<Read<Assistant>>(&routes::READ_ASSISTANT),
    Described::of::<Update<Assistant>>(&routes::UPDATE_ASSISTANT),
    Described::of::<assistant::DeleteAssistant>(&routes::DELETE_ASSISTANT),
    Described::of::<assistant::LinkAssistantDatasource>(&routes::LINK_ASSISTANT_DATASOURCE),
    Described::of::<assistant::ListAssistantDatasources>(&routes::LIST_ASSISTANT_DATASOURCES),
    Described::of::<assistant::LinkAssistantIntent>(&routes::LINK_ASSISTANT_INTENT),
    Described::of::<assistant::UnlinkAssistantIntent>(&routes::UNLINK_ASSISTANT_INTENT),
    Described::of::<assistant::ListAssistantIntents>(&routes::LIST_ASSISTANT_INTENTS),
    Described::of::<assistant::ListLlmModels>(&routes::LIST_LLM_MODELS),
    Described::of::<List<Agency>>(&routes::LIST_AGENCIES),
    Described::of::<Read<Agency>>(&routes::READ_AGENCY),
    Described::of::<Update<Agency>>(&routes::UPDATE_AGENCY),
    Described::of::<Delete<Agency>>(&routes::DELETE_AGENCY),
    Described::of::<agency::CheckPaymentWebhook>(&routes::CHECK_PAYMENT_WEBHOOK),
    Described::of::<List<BillingPlan>>(&routes::LIST_AGENCY_BILLING_PLANS),
    Described::of::<Read<BillingPlan>>(&routes::READ_AGENCY_BILLING_PLAN),
    Described::of::<billing_plan::UpdateAgencyBillingPlan>(&routes::UPDATE_AGENCY_BILLING_PLAN),
    Described::of::<Delete<BillingPlan>>(&routes::DELETE_AGENCY_BILLING_PLAN),
    Described::of::<Read<User>>(&routes::READ_USER),
    Described::of::<List<Contact>>(&routes::LIST_CONTACTS),
    Described::of::<Read<Contact>>(&routes::READ_CONTACT),
    Described::of::<link::CreateLinkTagEntity>(&routes::CREATE_LINK_TAG_ENTITY),
    Described::of::<Delete<Link>>(&routes::DELETE_LINK_TAG_ENTITY),
    Described::of::<campaign_contact::ReportCampaignContactOutcome>(&routes::REPORT_CAMPAIGN_CONTACT_OUTCOME),
    Described::of::<conversation::ReportConversationOutcome>(&routes::REPORT_CONVERSATION_OUTCOME),
    Described::of::<conversation::ReadConversationTranscript>(&routes::READ_CONVERSATION_TRANSCRIPT),
    Described::of::<conversation::ListContactConversations>(&routes::LIST_CONTACT_CONVERSATIONS),
    Described::of::<campaign::DeleteCampaign>(&routes::DELETE_CAMPAIGN),
    Described::of::<conversation::DeleteConversation>(&routes::DELETE_CONVERSATION),
    Described::of::<campaign::ListCampaigns>(&routes::LIST_CAMPAIGNS),
    Described::of::<datasource_file::CreateDatasourceFile>(&routes::CREATE_DATASOURCE_FILE),
    Described::of::<datasource_file::AddDatasourceTextBlob>(&routes::ADD_DATASOURCE_TEXT_BLOB),
    Described::of::<List<DatasourceFile>>(&routes::LIST_DATASOURCE_FILES),
    Described::of::<datasource_file::ReadDatasourceFile>(&routes::READ_DATASOURCE_FILE),
    Described::of::<conversation::SendMessage>(&routes::SEND_MESSAGE),
    Described::of::<conversation::ReceiveMessage>(&routes::RECEIVE_MESSAGE),
    Described::of::<campaign::MessageContacts>(&routes::MESSAGE_CONTACTS),
    Described::of::<conversation::StartCall>(&routes::START_CALL),
    Described::of::<campaign::CallContacts>(&routes::CALL_CONTACTS),
    Described::of::<campaign::CreateCampaign>(&routes::CREATE_CAMPAIGN),
    Described::of::<campaign::AddCampaignContacts>(&routes::ADD_CAMPAIGN_CONTACTS),
    Described::of::<campaign::UpdateCampaign>(&routes::UPDATE_CAMPAIGN),
    Described::of::<key::CreateKey>(&routes::CREATE_KEY),
    Described::of::<key::ListKeys>(&routes::LIST_KEYS),
    Described::of::<key::UpdateKey>(&routes::UPDATE_KEY),
    Described::of::<key::RevokeKey>(&routes::REVOKE_KEY),
    Described::of::<key::RotateKey>(&routes::ROTATE_KEY),
    Described::of::<audit::ListAudit>(&routes::LIST_AUDIT),
    Described::of::<user::ReadOwnUser>(&routes::READ_OWN_USER),
    Described::of::<event::ListEvents>(&routes::LIST_EVENTS),
    Described::of::<event::ReadEvent>(&routes::READ_EVENT),
    Described::of::<event::ListEventTypes>(&routes::LIST_EVENT_TYPES),
    Described::of::<usage::ReadUsage>(&routes::READ_USAGE),
    Described::of::<usage::ReportUsage>(&routes::REPORT_USAGE),
    Described::of::<analytics::ReadAnalytics>(&routes::READ_ANALYTICS),
    Described::of::<captured_form::CreateCapturedForm>(&routes::CREATE_CAPTURED_FORM),
    Described::of::<captured_form::ListConversationCapturedForms>(&routes::LIST_CONVERSATION_CAPTURED_FORMS),
    Described::of::<captured_form::ListCapturedForms>(&routes::LIST_CAPTURED_FORMS),
    Described::of::<Read<CapturedForm>>(&routes::READ_CAPTURED_FORM),
    Described::of::<captured_form::UpdateCapturedForm>(&routes::UPDATE_CAPTURED_FORM),
    Described::of::<captured_intent::CreateCapturedIntent>(&routes::CREATE_CAPTURED_INTENT),
    Described::of::<List<CapturedIntent>>(&routes::LIST_CAPTURED_INTENTS),
    Described::of::<Read<CapturedIntent>>(&routes::READ_CAPTURED_INTENT),
];

/// What the servers of others call.
#[rustfmt::skip]
pub const SIGNED: &[Described] = &[
    Described::signed::<agency::ReceivePaymentEvent>(&routes::RECEIVE_PAYMENT_EVENT),
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
    Task::of::<operator::GetOrganisationUse>(),
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

/// An operation with its schemas, which no binary has.
#[derive(Debug)]
pub struct Described {
    /// The handler, as the binary runs it.
    pub handler: Handler,
    describe: fn() -> Description,
}

impl Described {
    const fn of<O: Operation>(route: &'static Route) -> Self {
        Self { handler: Handler::of::<O>(route), describe: Description::of::<O> }
    }

    const fn signed<O: SignedOperation>(route: &'static Route) -> Self {
        Self { handler: Handler::signed::<O>(route), describe: Description::of_signed::<O> }
    }
}

/// The schemas of the operation `name`.
///
/// # Panics
/// Where there is no such operation.
pub fn describe(name: &str) -> Description {
    let found = OPERATIONS.iter().chain(SIGNED).find(|operation| operation.handler.route.name == name);
    found.map_or_else(|| panic!("no operation is called {name}"), |operation| (operation.describe)())
}
