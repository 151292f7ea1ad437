//! Every function, as its binary runs it. `UPDATE=1 cargo test` writes this file.

use shared::operation::Endpoint;
use shared::operator::Task;
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
    Consumer::of::<tag_deleted::TagDeleted>(),
];
