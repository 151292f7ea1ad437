//! The catalogue of language models, which `models.json` has: to add a model, add a line to that file.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::input::schema::{Schema, titled};
use crate::input::{Issues, Location, Parse, Raw, one_of};
use crate::values::time::Day;

crate::choice! {
    /// Whether the provider offers a model.
    pub enum LlmModelStatus {
        /// It is offered.
        Active = "active",
        /// It is offered until a day that the provider has named.
        Retiring = "retiring",
        /// It is offered no more: its provider refuses requests to it.
        Retired = "retired",
    }
}

crate::object! {
    /// A language model of the catalogue.
    pub struct CatalogueModel {
        /// Name, as `llm_model` of an assistant has it.
        pub name: String,
        /// Who offers the model.
        pub provider: String,
        /// Whether the provider offers it: an assistant keeps its model, and has a warning if the model is not `active`.
        pub status: LlmModelStatus,
        /// Day on which the provider stops to offer it, or stopped; null if the provider has named none.
        pub retires_on: Option<Day>,
        /// Name of the model that the provider, or whoever runs this service, recommends in its place; null for none.
        pub replaced_by: Option<String>,
    }
}

crate::object! {
    /// The catalogue of language models.
    pub struct LlmModelList {
        /// The models, in the order of the catalogue. The first one is the default of a new assistant.
        pub items: Vec<CatalogueModel>,
        /// How many there are.
        pub total: u64,
    }
}

/// The models of the file. A test reads the file, so a deployed one has models.
static CATALOGUE: LazyLock<Vec<CatalogueModel>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../../models.json")).unwrap_or_default());

/// The names of the models, in the order of the file.
fn names() -> Vec<&'static str> {
    CATALOGUE.iter().map(|model| model.name.as_str()).collect()
}

impl LlmModelList {
    /// The whole catalogue.
    pub fn all() -> Self {
        Self { items: CATALOGUE.clone(), total: CATALOGUE.len() as u64 }
    }
}

impl CatalogueModel {
    /// What whoever uses the model should know; `None` if it is active.
    fn warning(&self) -> Option<String> {
        let Self { name, status, retires_on, replaced_by, .. } = self;
        let says = match status {
            LlmModelStatus::Active => return None,
            LlmModelStatus::Retiring => "The provider will retire the model",
            LlmModelStatus::Retired => "The provider has retired the model",
        };
        let day = retires_on.map(|day| format!(" on {day}")).unwrap_or_default();
        let instead = replaced_by.as_ref().map(|other| format!("; '{other}' replaces it")).unwrap_or_default();
        Some(format!("{says} '{name}'{day}{instead}"))
    }
}

/// The name of a language model. The catalogue had it when it was set.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct LlmModel(String);

impl LlmModel {
    /// What whoever uses the model should know; `None` if it is active.
    pub fn warning(&self) -> Option<String> {
        match CATALOGUE.iter().find(|model| model.name == self.0) {
            Some(model) => model.warning(),
            None => Some(format!("The catalogue has no model '{}'", self.0)),
        }
    }
}

impl Default for LlmModel {
    /// The first model of the catalogue.
    fn default() -> Self {
        Self(names().first().copied().unwrap_or_default().to_owned())
    }
}

impl Parse for LlmModel {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let names = names();
        one_of(raw, at, issues, &names, |word| names.contains(&word).then(|| Self(word.to_owned())))
    }
}

impl Schema for LlmModel {
    fn schema() -> Value {
        let schema = json!({"type": "string", "enum": names()});
        titled(schema, "LlmModel", "The language models of the catalogue, which `GET /api/v1/llm_model` lists.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the specification: each is always taken.
    const SPECIFIED: [&str; 12] = [
        "gpt-4-0125-preview",
        "gpt-3.5-turbo-0125",
        "gpt-3.5-turbo-1106",
        "gpt-3.5-turbo",
        "gpt-4-1106-preview",
        "gpt-4o-2024-05-13",
        "gpt-4o-mini",
        "llama-3.1-70b-versatile",
        "gpt-4o-realtime-preview",
        "gpt-4o-mini-realtime-preview",
        "deepseek-r1-distill-llama-70b",
        "o3-mini",
    ];

    #[test]
    fn the_file_has_the_specified_models_and_each_name_once() {
        let models: Vec<CatalogueModel> = serde_json::from_str(include_str!("../../../../models.json")).unwrap();
        assert_eq!(models, *CATALOGUE);
        let names = names();
        for name in SPECIFIED {
            assert_eq!(names.iter().filter(|listed| **listed == name).count(), 1, "{name}");
        }
        for (at, CatalogueModel { name, provider, status, retires_on, replaced_by }) in models.iter().enumerate() {
            assert!(!name.is_empty() && !provider.is_empty() && !names[..at].contains(&name.as_str()), "{name}");
            assert!(*status != LlmModelStatus::Active || retires_on.is_none(), "{name} is active, and has a last day");
            assert!(*status != LlmModelStatus::Retiring || retires_on.is_some(), "{name} has no last day");
            let Some(other) = replaced_by else { continue };
            let other = models.iter().find(|model| model.name == *other).unwrap_or_else(|| panic!("no {other}"));
            assert!(other.name != *name && other.status != LlmModelStatus::Retired, "{name}: {}", other.name);
        }
    }

    #[test]
    fn a_model_that_is_not_active_has_a_warning() {
        let model = |json: Value| serde_json::from_value::<CatalogueModel>(json).unwrap().warning();
        let of = |status: &str| {
            model(
                json!({"name": "a", "provider": "p", "status": status, "retires_on": "2027-01-31", "replaced_by": "b"}),
            )
        };
        assert_eq!(of("active"), None);
        let retiring = "The provider will retire the model 'a' on 2027-01-31; 'b' replaces it";
        assert_eq!(of("retiring").as_deref(), Some(retiring));
        let bare = json!({"name": "a", "provider": "p", "status": "retired", "retires_on": null, "replaced_by": null});
        assert_eq!(model(bare).as_deref(), Some("The provider has retired the model 'a'"));
        let unlisted = LlmModel("z".to_owned()).warning();
        assert_eq!(unlisted.as_deref(), Some("The catalogue has no model 'z'"));
    }
}
