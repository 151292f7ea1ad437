//! The route table: every operation that answers over HTTP, once.
//!
//! `local/tests/contract.rs` compares the template, the packages under `functions/`, `events/`, the README and the
//! documents under `docs/` with this table. So a line here is the only place that decides a method or a path.

use crate::request::route::{Access, Route, matched, parameter, segments};

const KIB: usize = 1024;

macro_rules! routes {
    ($(#[doc = $doc:literal])* $list:ident: $($constant:ident $record:literal $name:literal $method:ident $path:literal $access:ident $success:literal $kib:literal $(or $alias:literal)*;)*) => {
        $(
            #[doc = concat!("`", stringify!($method), " ", $path, "`")]
            pub const $constant: Route = Route {
                record: $record,
                name: $name,
                method: stringify!($method),
                path: $path,
                access: Access::$access,
                success: $success,
                body_limit: $kib * KIB,
                aliases: &[$($alias),*],
            };
        )*

        $(#[doc = $doc])*
        pub const $list: &[&Route] = &[$(&$constant),*];
    };
}

#[rustfmt::skip]
routes! {
    /// Every operation with a key: first the ones of the specification's summary, in its order, then the others. Behind
    /// `or` stands an alias: a further path of the same operation, which published clients call.
    ALL:
    // constant                         name                                method  path                                                        access success body limit (KiB)
    CREATE_ASSISTANT                    "assistant"         "create-assistant"                  POST   "/api/v1/assistant"                                          Write  201     1024;
    CREATE_AGENCY_BILLING_PLAN          "billing-plan"      "create-agency-billing-plan"        POST   "/api/v1/agency/billing/{agency_id}/billing_plan"            Write  201     1024;
    CREATE_AGENCY                       "agency"            "create-agency"                     POST   "/api/v1/agency"                                             Write  201     256;
    RUN_CAMPAIGN                        "campaign"          "run-campaign"                      POST   "/api/v1/campaign/run/{widget_id}"                           Write  200     1024;
    GET_AGENT_LIST                      "user"              "get-agent-list"                    GET    "/api/v1/user/get_agent_list/"                               Read   200     256;
    READ_LINK_TAG_ENTITY_LIST           "link"              "read-link-tag-entity-list"         GET    "/api/v1/link_tag_entity/list"                               Read   200     256;
    SETUP_PAYMENT_WEBHOOK               "agency"            "setup-payment-webhook"             GET    "/api/v1/agency/billing/{agency_id}/setup_payment_webhook"   Write  200     256;
    DELETE_LINKED_ASSISTANT_DATASOURCE  "datasource"        "delete-linked-assistant-datasource" DELETE "/api/v1/datasource/{datasource_id}/assistant/{assistant_id}" Write 200    256;
    DELETE_DATASOURCE_FILE              "datasource-file"   "delete-datasource-file"            DELETE "/api/v1/datasource/datasourcefile/{datasourcefile_id}"      Write  200     256;
    DELETE_CAMPAIGN_CONTACT             "campaign-contact"  "delete-campaign-contact"           DELETE "/api/v1/campaign_contact/{campaign_contact_id}"             Write  200     256;
    DELETE_INTENT                       "intent"            "delete-intent"                     DELETE "/api/v1/intent/{intent_id}"                                 Write  200     256;
    DELETE_FORM                         "form"              "delete-form"                       DELETE "/api/v1/form/{form_id}"                                     Write  200     256;
    DELETE_TAG                          "tag"               "delete-tag"                        DELETE "/api/v1/tag/{tag_id}"                                       Write  200     256;
    CREATE_WEBHOOK                      "webhook"           "create-webhook"                    POST   "/api/v1/outbound_webhook"                                                Write  201     256;
    READ_WEBHOOK                        "webhook"           "read-webhook"                      GET    "/api/v1/outbound_webhook/{webhook_id}"                                   Read   200     256;
    LIST_WEBHOOKS                       "webhook"           "list-webhooks"                     GET    "/api/v1/outbound_webhook/list"                                           Read   200     256;
    UPDATE_WEBHOOK                      "webhook"           "update-webhook"                    PUT    "/api/v1/outbound_webhook/{webhook_id}"                                   Write  200     256;
    DELETE_WEBHOOK                      "webhook"           "delete-webhook"                    DELETE "/api/v1/outbound_webhook/{webhook_id}"                                   Write  200     256;
    ROTATE_WEBHOOK_SECRET               "webhook"           "rotate-webhook-secret"             POST   "/api/v1/outbound_webhook/{webhook_id}/rotate_secret"                     Write  200     256;
    SEND_TEST_EVENT                     "webhook"           "send-test-event"                   POST   "/api/v1/outbound_webhook/{webhook_id}/test"                              Write  200     256;
    RECOVER_WEBHOOK                     "webhook"           "recover-webhook"                   POST   "/api/v1/outbound_webhook/{webhook_id}/recover"                           Write  200     256;
    LIST_DELIVERIES                     "delivery"          "list-deliveries"                   GET    "/api/v1/outbound_webhook/{webhook_id}/logs"                              Read   200     256;
    READ_DELIVERY_STATS                 "delivery"          "read-delivery-stats"               GET    "/api/v1/outbound_webhook/{webhook_id}/stats"                             Read   200     256;
    REDELIVER                           "delivery"          "redeliver"                         POST   "/api/v1/outbound_webhook/{webhook_id}/logs/{delivery_id}/redeliver"      Write  200     256;
    OPEN_CONVERSATION                   "conversation"      "open-conversation"                 POST   "/api/v1/conversation"                                                    Write  201     256;
    ADD_MESSAGE                         "conversation"      "add-message"                       POST   "/api/v1/conversation/{conversation_id}/message"                          Write  201     256;
    UPDATE_CONVERSATION                 "conversation"      "update-conversation"               PUT    "/api/v1/conversation/{conversation_id}"                                  Write  200     256;
    CLOSE_CONVERSATION                  "conversation"      "close-conversation"                POST   "/api/v1/conversation/{conversation_id}/close"                            Write  200     256;
    READ_CONVERSATION                   "conversation"      "read-conversation"                 GET    "/api/v1/conversation/{conversation_id}"                                  Read   200     256;
    LIST_CONVERSATIONS                  "conversation"      "list-conversations"                GET    "/api/v1/conversation"                                                    Read   200     256;
    READ_CAMPAIGN                       "campaign"          "read-campaign"                     GET    "/api/v1/campaign/get/{campaign_id}"                                      Read   200     256;
    LIST_CAMPAIGN_CONTACTS              "campaign-contact"  "list-campaign-contacts"            GET    "/api/v1/campaign/contact/list/{campaign_id}"                             Read   200     256;
    UPSERT_CONTACT                      "contact"           "upsert-contact"                    POST   "/api/v1/contact/upsert"                                                  Write  201     256 or "/api/v1/contact";
    IMPORT_CONTACTS                     "contact"           "import-contacts"                   POST   "/api/v1/contact/import"                                                  Write  200     4096;
    UPDATE_CONTACT                      "contact"           "update-contact"                    PUT    "/api/v1/contact/{contact_id}"                                            Write  200     256;
    DELETE_CONTACT                      "contact"           "delete-contact"                    DELETE "/api/v1/contact/{contact_id}"                                            Write  200     256;
    CREATE_USER                         "user"              "create-user"                       POST   "/api/v1/user"                                                            Write  201     256;
    UPDATE_USER                         "user"              "update-user"                       PUT    "/api/v1/user/{user_id}"                                                  Write  200     256;
    DELETE_USER                         "user"              "delete-user"                       DELETE "/api/v1/user/{user_id}"                                                  Write  200     256;
    CANCEL_CAMPAIGN                     "campaign"          "cancel-campaign"                   POST   "/api/v1/campaign/{campaign_id}/cancel"                                   Write  200     256;
    PAUSE_CAMPAIGN                      "campaign"          "pause-campaign"                    POST   "/api/v1/campaign/{campaign_id}/pause"                                    Write  200     256;
    RESUME_CAMPAIGN                     "campaign"          "resume-campaign"                   POST   "/api/v1/campaign/{campaign_id}/resume"                                   Write  200     256;
    RETRY_CAMPAIGN                      "campaign"          "retry-campaign"                    POST   "/api/v1/campaign/{campaign_id}/retry"                                    Write  200     256;
    CREATE_TAG                          "tag"               "create-tag"                        POST   "/api/v1/tag"                                                Write  201     1024;
    LIST_TAGS                           "tag"               "list-tags"                         GET    "/api/v1/tag/list"                                           Read   200     256;
    READ_TAG                            "tag"               "read-tag"                          GET    "/api/v1/tag/{tag_id}"                                       Read   200     256;
    UPDATE_TAG                          "tag"               "update-tag"                        PUT    "/api/v1/tag/{tag_id}"                                       Write  200     1024;
    CREATE_INTENT                       "intent"            "create-intent"                     POST   "/api/v1/intent"                                             Write  201     1024;
    LIST_INTENTS                        "intent"            "list-intents"                      GET    "/api/v1/intent/list"                                        Read   200     256;
    READ_INTENT                         "intent"            "read-intent"                       GET    "/api/v1/intent/{intent_id}"                                 Read   200     256;
    UPDATE_INTENT                       "intent"            "update-intent"                     PUT    "/api/v1/intent/{intent_id}"                                 Write  200     1024;
    CREATE_FORM                         "form"              "create-form"                       POST   "/api/v1/form"                                               Write  201     1024;
    LIST_FORMS                          "form"              "list-forms"                        GET    "/api/v1/form/list"                                          Read   200     256;
    READ_FORM                           "form"              "read-form"                         GET    "/api/v1/form/{form_id}"                                     Read   200     256;
    UPDATE_FORM                         "form"              "update-form"                       PUT    "/api/v1/form/{form_id}"                                     Write  200     1024;
    CREATE_DATASOURCE                   "datasource"        "create-datasource"                 POST   "/api/v1/datasource"                                         Write  201     1024;
    LIST_DATASOURCES                    "datasource"        "list-datasources"                  GET    "/api/v1/datasource"                                         Read   200     256 or "/api/v1/datasource/list";
    READ_DATASOURCE                     "datasource"        "read-datasource"                   GET    "/api/v1/datasource/{datasource_id}"                         Read   200     256;
    UPDATE_DATASOURCE                   "datasource"        "update-datasource"                 PUT    "/api/v1/datasource/{datasource_id}"                         Write  200     1024;
    DELETE_DATASOURCE                   "datasource"        "delete-datasource"                 DELETE "/api/v1/datasource/{datasource_id}"                         Write  200     256;
    CREATE_WIDGET                       "widget"            "create-widget"                     POST   "/api/v1/widget"                                             Write  201     1024;
    LIST_WIDGETS                        "widget"            "list-widgets"                      GET    "/api/v1/widget"                                             Read   200     256 or "/api/v1/widget/list" or "/api/v1/assistant/{assistant_id}/widgets";
    READ_WIDGET                         "widget"            "read-widget"                       GET    "/api/v1/widget/{widget_id}"                                 Read   200     256;
    UPDATE_WIDGET                       "widget"            "update-widget"                     PUT    "/api/v1/widget/{widget_id}"                                 Write  200     1024;
    DELETE_WIDGET                       "widget"            "delete-widget"                     DELETE "/api/v1/widget/{widget_id}"                                 Write  200     256;
    ROTATE_WIDGET_SECRET                "widget"            "rotate-widget-secret"              POST   "/api/v1/widget/{widget_id}/rotate_secret"                                  Write  200     256;
    LIST_ASSISTANTS                     "assistant"         "list-assistants"                   GET    "/api/v1/assistant"                                          Read   200     256 or "/api/v1/assistant/list";
    READ_ASSISTANT                      "assistant"         "read-assistant"                    GET    "/api/v1/assistant/{assistant_id}"                           Read   200     256;
    UPDATE_ASSISTANT                    "assistant"         "update-assistant"                  PUT    "/api/v1/assistant/{assistant_id}"                           Write  200     1024;
    DELETE_ASSISTANT                    "assistant"         "delete-assistant"                  DELETE "/api/v1/assistant/{assistant_id}"                           Write  200     256;
    LINK_ASSISTANT_DATASOURCE           "assistant"         "link-assistant-datasource"         POST   "/api/v1/assistant/{assistant_id}/data_source/{datasource_id}" Write  201     256;
    LIST_ASSISTANT_DATASOURCES          "assistant"         "list-assistant-datasources"        GET    "/api/v1/assistant/{assistant_id}/data_source"               Read   200     256 or "/api/v1/assistant/{assistant_id}/data_sources";
    LINK_ASSISTANT_INTENT               "assistant"         "link-assistant-intent"             POST   "/api/v1/assistant/{assistant_id}/intent/{intent_id}"        Write  201     256;
    UNLINK_ASSISTANT_INTENT             "assistant"         "unlink-assistant-intent"           DELETE "/api/v1/assistant/{assistant_id}/intent/{intent_id}"        Write  200     256;
    LIST_ASSISTANT_INTENTS              "assistant"         "list-assistant-intents"            GET    "/api/v1/assistant/{assistant_id}/intent"                    Read   200     256;
    LIST_LLM_MODELS                     "assistant"         "list-llm-models"                   GET    "/api/v1/llm_model"                                          Read   200     256;
    LIST_AGENCIES                       "agency"            "list-agencies"                     GET    "/api/v1/agency"                                             Read   200     256;
    READ_AGENCY                         "agency"            "read-agency"                       GET    "/api/v1/agency/{agency_id}"                                 Read   200     256;
    UPDATE_AGENCY                       "agency"            "update-agency"                     PUT    "/api/v1/agency/{agency_id}"                                 Write  200     256;
    DELETE_AGENCY                       "agency"            "delete-agency"                     DELETE "/api/v1/agency/{agency_id}"                                 Write  200     256;
    CHECK_PAYMENT_WEBHOOK               "agency"            "check-payment-webhook"             GET    "/api/v1/agency/billing/{agency_id}/check_payment_webhook"   Read   200     256;
    LIST_AGENCY_BILLING_PLANS           "billing-plan"      "list-agency-billing-plans"         GET    "/api/v1/agency/billing/{agency_id}/billing_plan/list"       Read   200     256;
    READ_AGENCY_BILLING_PLAN            "billing-plan"      "read-agency-billing-plan"          GET    "/api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}" Read   200     256;
    UPDATE_AGENCY_BILLING_PLAN          "billing-plan"      "update-agency-billing-plan"        PUT    "/api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}" Write  200     1024;
    DELETE_AGENCY_BILLING_PLAN          "billing-plan"      "delete-agency-billing-plan"        DELETE "/api/v1/agency/billing/{agency_id}/billing_plan/{billing_plan_id}" Write  200     256;
    READ_USER                           "user"              "read-user"                         GET    "/api/v1/user/{user_id}"                                     Read   200     256;
    LIST_CONTACTS                       "contact"           "list-contacts"                     GET    "/api/v1/contact"                                            Read   200     256 or "/api/v1/contact/list";
    READ_CONTACT                        "contact"           "read-contact"                      GET    "/api/v1/contact/{contact_id}"                               Read   200     256;
    CREATE_LINK_TAG_ENTITY              "link"              "create-link-tag-entity"            POST   "/api/v1/link_tag_entity"                                    Write  201     256;
    DELETE_LINK_TAG_ENTITY              "link"              "delete-link-tag-entity"            DELETE "/api/v1/link_tag_entity/{link_tag_entity_id}"               Write  200     256;
    REPORT_CAMPAIGN_CONTACT_OUTCOME     "campaign-contact"  "report-campaign-contact-outcome"   POST   "/api/v1/campaign_contact/{campaign_contact_id}/outcome"     Write  200     256;
    REPORT_CONVERSATION_OUTCOME         "conversation"      "report-conversation-outcome"       POST   "/api/v1/conversation/{conversation_id}/outcome"             Write  200     256;
    READ_CONVERSATION_TRANSCRIPT        "conversation"      "read-conversation-transcript"      GET    "/api/v1/conversation/{conversation_id}/transcript"          Read   200     256;
    LIST_CONTACT_CONVERSATIONS          "conversation"      "list-contact-conversations"        GET    "/api/v1/conversation/by-contact/{contact_id}"               Read   200     256;
    DELETE_CAMPAIGN                     "campaign"          "delete-campaign"                   DELETE "/api/v1/campaign/{campaign_id}"                             Write  200     256;
    DELETE_CONVERSATION                 "conversation"      "delete-conversation"               DELETE "/api/v1/conversation/{conversation_id}"                     Write  200     256;
    LIST_CAMPAIGNS                      "campaign"          "list-campaigns"                    GET    "/api/v1/campaign/list"                                      Read   200     256;
    CREATE_DATASOURCE_FILE              "datasource-file"   "create-datasource-file"            POST   "/api/v1/datasource/{datasource_id}/file"                                 Write  201     4160;
    ADD_DATASOURCE_TEXT_BLOB            "datasource-file"   "add-datasource-text-blob"          POST   "/api/v1/datasource/{datasource_id}/text_blob"                            Write  201     4096;
    LIST_DATASOURCE_FILES               "datasource-file"   "list-datasource-files"             GET    "/api/v1/datasource/{datasource_id}/data_source_files"                    Read   200     256;
    READ_DATASOURCE_FILE                "datasource-file"   "read-datasource-file"              GET    "/api/v1/datasource/datasourcefile/{datasourcefile_id}"                   Read   200     256;
    SEND_MESSAGE                        "conversation"      "send-message"                      POST   "/api/v1/messaging/{widget_id}"                              Write  200     256;
    RECEIVE_MESSAGE                     "conversation"      "receive-message"                   POST   "/api/v1/widget/{widget_id}/inbound"                         Write  200     256;
    MESSAGE_CONTACTS                    "campaign"          "message-contacts"                  POST   "/api/v1/messaging/{widget_id}/contacts"                     Write  200     1024;
    START_CALL                          "conversation"      "start-call"                        POST   "/api/v1/call/{widget_id}"                                   Write  200     256;
    CALL_CONTACTS                       "campaign"          "call-contacts"                     POST   "/api/v1/call/{widget_id}/contacts"                          Write  200     1024;
    CREATE_CAMPAIGN                     "campaign"          "create-campaign"                   POST   "/api/v1/campaign/create"                                    Write  201     1024;
    ADD_CAMPAIGN_CONTACTS               "campaign"          "add-campaign-contacts"             POST   "/api/v1/campaign/{campaign_id}/contact"                     Write  200     1024;
    UPDATE_CAMPAIGN                     "campaign"          "update-campaign"                   PUT    "/api/v1/campaign/update/{campaign_id}"                      Write  200     1024;
    CREATE_KEY                          "key"               "create-key"                        POST   "/api/v1/api_key"                                             Admin  201     256;
    LIST_KEYS                           "key"               "list-keys"                         GET    "/api/v1/api_key"                                             Admin  200     256;
    UPDATE_KEY                          "key"               "update-key"                        PUT    "/api/v1/api_key/{api_key_id}"                                Admin  200     256;
    REVOKE_KEY                          "key"               "revoke-key"                        DELETE "/api/v1/api_key/{api_key_id}"                                Admin  200     256;
    ROTATE_KEY                          "key"               "rotate-key"                        POST   "/api/v1/api_key/{api_key_id}/rotate"                         Admin  200     256;
    LIST_AUDIT                          "audit"             "list-audit"                        GET    "/api/v1/audit"                                              Admin  200     256;
    READ_OWN_USER                       "user"              "read-own-user"                     GET    "/api/v1/user"                                               Read   200     256;
    LIST_EVENTS                         "event"             "list-events"                       GET    "/api/v1/event"                                              Read   200     256;
    READ_EVENT                          "event"             "read-event"                        GET    "/api/v1/event/{event_id}"                                   Read   200     256;
    LIST_EVENT_TYPES                    "event"             "list-event-types"                  GET    "/api/v1/event_type"                                         Read   200     256;
    READ_USAGE                          "usage"             "read-usage"                        GET    "/api/v1/usage"                                              Read   200     256;
    REPORT_USAGE                        "usage"             "report-usage"                      POST   "/api/v1/usage"                                              Write  201     256;
    READ_ANALYTICS                      "analytics"         "read-analytics"                    GET    "/api/v1/analytics"                                          Read   200     256;
    CREATE_CAPTURED_FORM                "captured-form"     "create-captured-form"              POST   "/api/v1/conversation/{conversation_id}/captured_form"       Write  201     256;
    LIST_CONVERSATION_CAPTURED_FORMS    "captured-form"     "list-conversation-captured-forms"  GET    "/api/v1/conversation/{conversation_id}/captured_form"       Read   200     256;
    LIST_CAPTURED_FORMS                 "captured-form"     "list-captured-forms"               GET    "/api/v1/capturedform/{form_id}"                             Read   200     256;
    READ_CAPTURED_FORM                  "captured-form"     "read-captured-form"                GET    "/api/v1/captured_form/{captured_form_id}"                   Read   200     256;
    UPDATE_CAPTURED_FORM                "captured-form"     "update-captured-form"              PUT    "/api/v1/captured_form/{captured_form_id}"                   Write  200     256;
    CREATE_CAPTURED_INTENT              "captured-intent"   "create-captured-intent"            POST   "/api/v1/conversation/{conversation_id}/captured_intent"     Write  201     256;
    LIST_CAPTURED_INTENTS               "captured-intent"   "list-captured-intents"             GET    "/api/v1/capturedintent"                                     Read   200     256;
    READ_CAPTURED_INTENT                "captured-intent"   "read-captured-intent"              GET    "/api/v1/captured_intent/{captured_intent_id}"               Read   200     256;
}

#[rustfmt::skip]
routes! {
    /// The operations that other companies' servers call. They sign their requests and have no key.
    SIGNED:
    RECEIVE_PAYMENT_EVENT               "agency"            "receive-payment-event"             POST   "/api/v1/agency/webhook/payment/{agency_id}"                 Signed 200     256;
}

#[rustfmt::skip]
routes! {
    /// The documents, which anybody may read: their functions touch nothing.
    DOCUMENTS:
    READ_OPENAPI                        "document"          "read-openapi"                      GET    "/api/v1/openapi.json"                                       Public 200     256;
    READ_DOCS                           "document"          "read-docs"                         GET    "/api/v1/docs"                                               Public 200     256;
}

/// The name of the API, for readers of its documents and of its tools.
pub const TITLE: &str = "Conversational Assistant Management API";

/// The server of tools, which a deployment may leave out. The gateway passes every method; a method other than POST is
/// answered with 405.
pub const MCP: Route = Route {
    record: "mcp",
    name: "mcp",
    method: ANY,
    path: "/api/v1/mcp",
    access: Access::Read,
    success: 200,
    // The largest body of an operation, and the JSON around it.
    body_limit: (4160 + 64) * KIB,
    aliases: &[],
};

/// The method of a route that accepts every method.
pub const ANY: &str = "ANY";

/// Every route: operations with a key, signed operations, documents, and the server of tools.
pub fn every() -> impl Iterator<Item = &'static Route> {
    ALL.iter().chain(SIGNED).chain(DOCUMENTS).copied().chain([&MCP])
}

/// Every route with each of its paths: its own, and its aliases.
pub fn every_path() -> impl Iterator<Item = (&'static Route, &'static str)> {
    every().flat_map(|route| route.paths().map(move |path| (route, path)))
}

/// The route of `method` and `path`, and its path that matches. If two match, the one with a word in the place of the
/// other's first parameter counts, as in API Gateway.
pub fn find_path(method: &str, path: &str) -> Option<(&'static Route, &'static str)> {
    let answers =
        |(route, own): &(&Route, &'static str)| [method, ANY].contains(&route.method) && matched(own, path).is_some();
    let parameters =
        |(_, own): &(&Route, &str)| segments(own).map(|segment| parameter(segment).is_some()).collect::<Vec<_>>();
    every_path().filter(answers).min_by_key(parameters)
}

/// The route of `method` and `path`.
pub fn find(method: &str, path: &str) -> Option<&'static Route> {
    find_path(method, path).map(|(route, _)| route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_matches_only_its_two_slash_forms() {
        for (route, path) in every_path() {
            let bare = path.trim_end_matches('/');
            assert!(route.match_path(bare).is_some(), "{bare}");
            assert!(route.match_path(&format!("{bare}/")).is_some(), "{bare}/");
            assert!(route.match_path(&format!("{bare}//")).is_none(), "{bare}//");
            assert!(route.match_path(&format!("{bare}/more")).is_none());
            assert_eq!(find_path(route.method, path), Some((route, path)));
            assert_eq!(find("PATCH", path), (route.method == ANY).then_some(route));
        }
    }

    /// A parameter of an alias alone is passed on in the query: the operation has to know it there, and nowhere else.
    #[test]
    fn an_alias_has_every_parameter_of_its_route() {
        for route in every() {
            for alias in route.aliases {
                let of_alias: Vec<_> = segments(alias).filter_map(parameter).collect();
                assert!(route.parameters().all(|own| of_alias.contains(&own)), "{alias}");
            }
        }
    }

    #[test]
    fn a_parameter_is_never_empty() {
        assert_eq!(DELETE_TAG.match_path("/api/v1/tag/"), None);
        assert_eq!(DELETE_TAG.match_path("/api/v1/tag/x"), Some(vec![("tag_id", "x")]));
    }
}
