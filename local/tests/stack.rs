//! The tests of the whole service, in one process. Each test has its own stack and database, and all run in parallel.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

/// The tests spend a quarter of their time on allocations. This allocator takes half as long as that of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod addresses;
mod alarms;
mod aliases;
mod analytics;
mod attempts;
mod audit;
mod campaigns;
mod canary;
mod captured;
mod cascades;
mod command;
mod compatibility;
mod console;
mod console_records;
mod contract;
mod cost;
mod custom_fields;
mod customer_keys;
mod dates;
mod delete_many;
mod deletes;
mod demo;
mod document;
mod documents;
mod event_log;
mod events;
mod examples;
mod executions;
mod exercises;
mod exports;
mod fairness;
mod fault_run;
mod faults;
mod filters;
mod gateway;
mod guard;
mod guides;
mod harness;
mod http_client;
mod idempotency;
mod idle;
mod inbox;
mod isolation;
mod journey;
mod keys;
mod limits;
mod lists;
mod log_levels;
mod matrix;
mod mcp;
mod nulls;
mod openapi;
mod operations;
mod outbox;
mod pages;
mod partitions;
mod permissions;
mod quotas;
mod redrive;
mod replay;
mod reservations;
mod rooms;
mod runtime;
mod samples;
mod scopes;
mod sealing;
mod states;
mod storage;
mod stored;
mod stream;
mod subscriptions;
mod supply;
mod suppressed;
mod table;
mod template;
mod tour;
mod transactions;
mod turns;
mod unique;
mod updates;
mod uploads;
mod usage;
mod verify;
mod waiting;

/// What the tests share. None of these modules has a test.
mod support {
    pub mod agents;
    pub mod calling;
    pub mod certificate;
    pub mod chart;
    pub mod commands;
    pub mod console;
    pub mod crashes;
    pub mod customers;
    pub mod deliveries;
    pub mod demo_set;
    pub mod documented;
    pub mod fixture;
    pub mod forms;
    pub mod gateway;
    pub mod generated;
    pub mod keyed;
    pub mod log;
    pub mod owners;
    pub mod permits;
    pub mod process;
    pub mod records;
    pub mod sealed;
    pub mod sender;
    pub mod sending;
    pub mod sweep;
    pub mod template;
}

// The tests of single operations, by record. `cargo generate` writes this list.
mod agency {
    mod check_payment_webhook;
    mod create_agency;
    mod receive_payment_event;
    mod setup_payment_webhook;
    mod update_agency;
}
mod assistant {
    mod create_assistant;
    mod link_assistant_datasource;
    mod list_llm_models;
    mod unlink_assistant_intent;
}
mod billing_plan {
    mod create_agency_billing_plan;
    mod update_agency_billing_plan;
}
mod campaign {
    mod add_campaign_contacts;
    mod call_contacts;
    mod cancel_campaign;
    mod create_campaign;
    mod delete_campaign;
    mod list_campaigns;
    mod message_contacts;
    mod pause_campaign;
    mod read_campaign;
    mod retry_campaign;
    mod run_campaign;
    mod update_campaign;
}
mod campaign_contact {
    mod delete_campaign_contact;
    mod list_campaign_contacts;
    mod report_campaign_contact_outcome;
}
mod conversation {
    mod add_message;
    mod close_conversation;
    mod list_contact_conversations;
    mod list_conversations;
    mod open_conversation;
    mod read_conversation;
    mod read_conversation_transcript;
    mod receive_message;
    mod report_conversation_outcome;
    mod send_message;
    mod start_call;
    mod update_conversation;
}
mod datasource {
    mod create_datasource;
    mod delete_linked_assistant_datasource;
}
mod datasource_file {
    mod add_datasource_text_blob;
    mod create_datasource_file;
    mod delete_datasource_file;
    mod read_datasource_file;
}
mod delivery {
    mod list_deliveries;
    mod read_delivery_stats;
    mod redeliver;
}
mod link {
    mod create_link_tag_entity;
}
mod suppression {
    mod create_suppression;
    mod import_suppressions;
}
mod webhook {
    mod create_webhook;
    mod delete_webhook;
    mod recover_webhook;
    mod rotate_webhook_secret;
    mod send_test_event;
    mod update_webhook;
}
mod widget {
    mod create_widget;
    mod rotate_widget_secret;
    mod update_widget;
}
// The end of that list.
