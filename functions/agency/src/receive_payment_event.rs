//! `POST /api/v1/agency/webhook/payment/{agency_id}`: receives an event of the payment provider. The provider calls it; the event is signed with the secret of the agency's webhook.

use shared::payments::receive;
use shared::payments::{event, signature};
use shared::prelude::signed::*;

pub struct ReceivePaymentEvent;

impl SignedOperation for ReceivePaymentEvent {
    type Path = AgencyId;
    type Sender = Agency;
    type Reply = Updated<PaymentEventReceipt>;

    const SIGNATURE: &'static str = signature::HEADER;

    fn body() -> Value {
        event::schema()
    }

    async fn sender(store: &Store, id: Option<AgencyId>) -> Result<Option<(Tenant, Agency)>, TableError> {
        store.agency_with_webhook(id.unwrap_or(AgencyId(Uuid::nil()))).await
    }

    fn is_signed(agency: Option<&Agency>, message: &SignedMessage<'_>) -> bool {
        signature::is_signed(agency.and_then(|agency| agency.payment_webhook.as_ref()), message)
    }

    async fn handle(cx: &Context<'_>, agency: Agency, body: &[u8]) -> Result<Self::Reply> {
        let outcome = receive::receive(&cx.table, &agency, body, (cx.new_id(), cx.now())).await?;
        Ok(Updated(PaymentEventReceipt { outcome }))
    }
}
