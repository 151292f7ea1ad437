//! The query of the list of conversations. Its filters are those of the fields of a conversation, and the intent that
//! was recognised in it.

use super::Conversation;
use crate::input::schema::{Value, extended};
use crate::input::{Input, Issues, Source};
use crate::table::filters::Term;
use crate::table::page::ListQuery;
use crate::values::id::IntentId;

/// The query for a page of conversations.
#[derive(Debug)]
pub struct ConversationQuery(pub ListQuery<Conversation>);

/// The name of the filter by intents, in the query and in the names of its sets.
const INTENT: &str = "intent_id";

/// The term of the conversations in which an intent was recognised.
pub(crate) fn with_intent(intent: IntentId) -> Option<Term> {
    Term::of(INTENT, &intent).map(Term::sparse)
}

impl Input for ConversationQuery {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let (list, intents) = (ListQuery::read(source, issues), Term::read::<IntentId>(INTENT, source, issues));
        let marks = intents?.into_iter().map(Term::sparse).collect();
        list.map(|list| Self(list.marked(marks)))
    }

    fn schema() -> Value {
        let doc = "Only conversations in which this intent was captured.";
        extended(ListQuery::<Conversation>::schema(), vec![Term::member::<IntentId>(INTENT, doc)])
    }
}
