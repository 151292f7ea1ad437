//! The icons of the console: strokes on a square of 20 units, in the colour of the text around them.

use maud::{Markup, html};

/// An icon, as the commands of its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Icon(&'static str);

pub(super) const START: Icon = Icon("M3 9.5 10 3.5l7 6V16a1 1 0 0 1-1 1h-3.5v-4.5h-5V17H4a1 1 0 0 1-1-1z");
pub(super) const REQUESTS: Icon = Icon("M3 7h11m-3-3 3 3-3 3M17 13H6m3-3-3 3 3 3");
pub(super) const EVENTS: Icon = Icon("M11 2.5 4.5 11.5H10L9 17.5 15.5 8.5H10z");
pub(super) const DELIVERIES: Icon = Icon("M17 3 3 8.5l5.5 2.5L11.5 17zM17 3l-8.5 8");
pub(super) const RECORDS: Icon = Icon("M10 3 3 6.5l7 3.5 7-3.5zM3 10l7 3.5 7-3.5M3 13.5 10 17l7-3.5");
pub(super) const CONVERSATIONS: Icon =
    Icon("M4 4h12a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1H9l-4 3v-3H4a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1z");
pub(super) const CAMPAIGNS: Icon = Icon("M3 8h2.5L15 4v12l-9.5-4H3zM6 12l1 5h2l-1-4.2M17.5 8.5v3");
pub(super) const COUNTS: Icon = Icon("M4 17v-6M8 17V7M12 17v-4M16 17V3.5");
pub(super) const TABLE: Icon = Icon("M3 4.5h14v11H3zM3 8.5h14M8 8.5v7");
pub(super) const PAYMENTS: Icon = Icon("M3 5h14v10H3zM3 8.5h14M6 12.5h3");
pub(super) const TIME: Icon = Icon("M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM10 6.5V10l2.5 2");
pub(super) const API: Icon = Icon(
    "M7.5 4C5.5 4 6 6 6 7.5S5.5 10 4 10c1.5 0 2 1 2 2.5S5.5 16 7.5 16M12.5 4c2 0 1.5 2 1.5 3.5s.5 2.5 2 2.5c-1.5 0-2 1-2 2.5s.5 3.5-1.5 3.5",
);
pub(super) const INBOX: Icon = Icon("M3 11l2.5-7h9L17 11v5H3zM3 11h4l1 2h4l1-2h4");
pub(super) const MENU: Icon = Icon("M3 5.5h14M3 10h14M3 14.5h14");
pub(super) const CHECK: Icon = Icon("M4.5 10.5l4 4L16 6");

/// The icon itself. The text beside it says what it shows, so a screen reader leaves it out.
pub(super) fn icon(icon: Icon) -> Markup {
    html! { svg.icon viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" { path d=(icon.0) {} } }
}
