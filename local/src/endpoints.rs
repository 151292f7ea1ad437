//! Every function, as its binary runs it. `UPDATE=1 cargo test` writes this file.

use shared::operation::Endpoint;
use shared::operator::Task;
use shared::schedule::Scheduled;
use shared::stream::Consumer;

/// The operations, in the order of the route table.
#[rustfmt::skip]
pub const ALL: &[Endpoint] = &[
    Endpoint::of::<create_assistant::CreateAssistant>(),
    Endpoint::of::<create_agency_billing_plan::CreateAgencyBillingPlan>(),
    Endpoint::of::<create_agency::CreateAgency>(),
    Endpoint::of::<run_campaign::RunCampaign>(),
    Endpoint::of::<get_agent_list::GetAgentList>(),
    Endpoint::of::<read_link_tag_entity_list::ReadLinkTagEntityList>(),
    Endpoint::of::<setup_payment_webhook::SetupPaymentWebhook>(),
    Endpoint::of::<delete_linked_assistant_datasource::DeleteLinkedAssistantDatasource>(),
    Endpoint::of::<delete_datasource_file::DeleteDatasourceFile>(),
    Endpoint::of::<delete_campaign_contact::DeleteCampaignContact>(),
    Endpoint::of::<delete_intent::DeleteIntent>(),
    Endpoint::of::<delete_form::DeleteForm>(),
    Endpoint::of::<delete_tag::DeleteTag>(),
    Endpoint::of::<create_webhook::CreateWebhook>(),
    Endpoint::of::<read_webhook::ReadWebhook>(),
    Endpoint::of::<list_webhooks::ListWebhooks>(),
    Endpoint::of::<update_webhook::UpdateWebhook>(),
    Endpoint::of::<delete_webhook::DeleteWebhook>(),
    Endpoint::of::<rotate_webhook_secret::RotateWebhookSecret>(),
    Endpoint::of::<send_test_event::SendTestEvent>(),
    Endpoint::of::<list_deliveries::ListDeliveries>(),
    Endpoint::of::<redeliver::Redeliver>(),
    Endpoint::of::<open_conversation::OpenConversation>(),
    Endpoint::of::<add_message::AddMessage>(),
    Endpoint::of::<close_conversation::CloseConversation>(),
    Endpoint::of::<read_conversation::ReadConversation>(),
    Endpoint::of::<list_conversations::ListConversations>(),
    Endpoint::of::<read_campaign::ReadCampaign>(),
    Endpoint::of::<list_campaign_contacts::ListCampaignContacts>(),
    Endpoint::of::<cancel_campaign::CancelCampaign>(),
];

/// The tasks of operators.
#[rustfmt::skip]
pub const TASKS: &[Task] = &[
    Task::of::<issue_api_key::IssueApiKey>(),
    Task::of::<list_api_keys::ListApiKeys>(),
    Task::of::<revoke_api_key::RevokeApiKey>(),
];

/// The functions on the table's stream.
#[rustfmt::skip]
pub const CONSUMERS: &[Consumer] = &[
    Consumer::of::<conversation_closed::ConversationClosed>(),
    Consumer::of::<send_delivery::SendDelivery>(),
    Consumer::of::<tag_deleted::TagDeleted>(),
];

/// The functions on a schedule alone.
#[rustfmt::skip]
pub const SCHEDULED: &[Scheduled] = &[
    Scheduled::of::<release_deliveries::ReleaseDeliveries>(),
    Scheduled::of::<send_campaigns::SendCampaigns>(),
];
