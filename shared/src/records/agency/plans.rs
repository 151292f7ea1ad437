//! Makes and changes billing plans. At most one plan of an agency is the default: a new default takes the mark from the
//! former one in the same transaction, which also moves the agency's pointer to its default plan.

use crate::input::Patch;
use crate::operations::new::require_room;
use crate::operations::{Create, update};
use crate::records::agency::{Agency, BillingPlan};
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::table::declaration::Declared;
use crate::table::error::Cancelled;
use crate::table::expression::Condition;
use crate::table::item::{target_id, text};
use crate::table::keys::{self, Key};
use crate::table::stored::{Listed as _, Stored as _};
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::version::Versioned as _;
use crate::table::{Table, TableError};
use crate::values::id::{AgencyId, BillingPlanId};
use crate::values::tenant::Tenant;

/// The most plans from which a new default takes the mark, and that are searched for them. Several have it only where
/// they got it before there was a pointer.
const FORMER: (usize, usize) = (50, 1000);

/// The pointer to the default plan of an agency.
pub(super) fn default_plan(tenant: &Tenant, agency: AgencyId) -> Key {
    Key::of(tenant, format_args!("DEFAULT_PLAN#{agency}"), "DEFAULT_PLAN")
}

/// What was the default of an agency until now.
struct Former {
    /// The pointer, and the condition that it is as it was read.
    pointer: Key,
    unchanged: Condition,
    /// The plans with the mark.
    plans: Vec<BillingPlan>,
}

impl Former {
    async fn read(table: &Table, agency: AgencyId) -> Result<Self, TableError> {
        let pointer = default_plan(&table.tenant, agency);
        let (unchanged, mut plans) = if let Some(item) = table.store.get(&pointer).await? {
            let id = target_id(&item)?;
            let plan = table.find::<BillingPlan>((agency, BillingPlanId(id))).await?;
            (Condition::of("id = :id", [(":id", text(id))]), plan.into_iter().collect())
        } else {
            let rows = keys::list_row(&table.tenant, &BillingPlan::list(agency), 0);
            let found = table.store.query_records(&rows.pk, (&rows.sk, None), Some(FORMER.1)).await?;
            (Condition::absent(), found.records)
        };
        plans.retain(|plan: &BillingPlan| plan.default_plan);
        plans.truncate(FORMER.0);
        Ok(Self { pointer, unchanged, plans })
    }

    /// Gives the mark to the plan `id`, and takes it from all others. The caller writes the plan itself.
    fn move_to(&self, id: BillingPlanId, transaction: &mut Transaction<'_, Unmet>) -> Result<(), TableError> {
        let mut pointer = self.pointer.attributes();
        pointer.insert("id".to_owned(), text(id));
        transaction.write(Write::put(pointer).when(self.unchanged.clone()));
        for was in self.plans.iter().filter(|plan| plan.id != id) {
            let is = BillingPlan { default_plan: false, ..was.clone() };
            transaction.replace((was.agency_id, was.id), was, is, None)?;
        }
        Ok(())
    }
}

impl BillingPlan {
    /// The pointer to it, if it is the default of its agency.
    pub(super) fn pointer(&self, tenant: &Tenant) -> Vec<Key> {
        self.default_plan.then(|| default_plan(tenant, self.agency_id)).into_iter().collect()
    }
}

/// Creates a plan of `agency`.
///
/// # Errors
/// [`Error::NotFound`](crate::request::error::Error::NotFound) where there is no such agency.
pub async fn create_plan(cx: &Context<'_>, agency: AgencyId, new: BillingPlan) -> Result<BillingPlan> {
    if !new.default_plan {
        return Create::insert(cx, agency, new).await;
    }
    let (row, mut round) = (cx.new_row(agency), cx.table.store.backoff());
    let make =
        |(_, id): (AgencyId, BillingPlanId)| new.clone().begun(id.into(), cx.tenant.org(), agency.into(), cx.now());
    loop {
        let former = Former::read(&cx.table, agency).await?;
        match cx.table.insert_with(row, None, make, |transaction, plan| former.move_to(plan.id, transaction)).await {
            Err(Cancelled::Condition(Unmet::Changed, _)) => round.again("the default plan").await?,
            inserted => return inserted.map_err(TableError::from).on_missing(Agency::PARAMETER),
        }
    }
}

/// Changes the plan `id` by `changes`.
///
/// # Errors
/// [`Error::NotFound`](crate::request::error::Error::NotFound) where there is no such plan.
pub async fn update_plan(
    cx: &Context<'_>,
    id: (AgencyId, BillingPlanId),
    changes: &<BillingPlan as Declared>::Changes,
) -> Result<BillingPlan> {
    if changes.default_plan != Patch::Set(true) {
        return update(cx, id, changes, |_| {}, |_, _| None).await;
    }
    let (by, mut round) = (cx.new_id(), cx.table.store.backoff());
    loop {
        let was: BillingPlan = cx.table.get(id).await.on_missing(BillingPlan::PARAMETER)?;
        if was.version().is_by(by) {
            return Ok(was);
        }
        let mut is = was.clone();
        is.apply(changes);
        require_room(&is)?;
        let former = Former::read(&cx.table, id.0).await?;
        let mut transaction = Transaction::of_request(&cx.table);
        former.move_to(id.1, &mut transaction)?;
        let is = transaction.replace(id, &was, is, Some(by))?;
        match transaction.commit().await {
            Ok(()) => return Ok(is),
            Err(Cancelled::Condition(..)) => round.again("the default plan").await?,
            Err(cancelled) => return Err(TableError::from(cancelled).into()),
        }
    }
}
