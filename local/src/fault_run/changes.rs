//! Counts what the changes of the table show: each thing that is counted or emits an event, as often as it happened.

use std::collections::BTreeMap;

use serde_json::Value;
use shared::records::event::EventKind;

use crate::Trouble;
use crate::fault_run::world::World;
use crate::stream::Stream;

/// How often things happened.
#[derive(Debug, Default)]
pub struct TableChanges {
    /// Deliveries that ended.
    pub deliveries: u64,
    /// Those of them that a connector accepted.
    pub sends: u64,
    /// For each contact of a campaign, the ends of its deliveries and the changes of its result.
    pub contacts: BTreeMap<String, usize>,
    /// For each campaign, how many times it was completed.
    pub completed: BTreeMap<String, usize>,
}

impl TableChanges {
    /// Reads all changes so far.
    ///
    /// # Errors
    /// [`Trouble`] where they cannot be read.
    pub fn read(world: &World) -> Result<Self, Trouble> {
        let mut seen = Self::default();
        Stream::each_change(&world.stack.database, |change| {
            seen.see(&change["dynamodb"]["OldImage"], &change["dynamodb"]["NewImage"]);
        })?;
        Ok(seen)
    }

    fn see(&mut self, was: &Value, is: &Value) {
        match text(is, "record") {
            "Delivery" if !has_ended(was) && has_ended(is) => {
                let is_for_connector = EventKind::OF_CONNECTORS.iter().any(|kind| kind.as_str() == text(is, "event"));
                self.deliveries += 1;
                self.sends += u64::from(is_for_connector && text(is, "state") == "delivered");
                if let Some(contact) = is["campaign_contact_id"]["S"].as_str() {
                    *self.contacts.entry(contact.to_owned()).or_default() += 1;
                }
            }
            "CampaignContact" if was.is_object() && was["result"]["M"] != is["result"]["M"] => {
                *self.contacts.entry(text(is, "id").to_owned()).or_default() += 1;
            }
            "Campaign" if text(was, "status") != "completed" && text(is, "status") == "completed" => {
                *self.completed.entry(text(is, "id").to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
}

fn text<'a>(image: &'a Value, name: &str) -> &'a str {
    image[name]["S"].as_str().unwrap_or_default()
}

fn has_ended(image: &Value) -> bool {
    ["delivered", "dead"].contains(&text(image, "state"))
}
