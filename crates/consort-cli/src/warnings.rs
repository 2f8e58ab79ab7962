//! The library's warnings, on standard error as lines that begin with `warning:`.

use std::{fmt, io};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let is_warning = *event.metadata().level() == Level::WARN;
        writer.write_str(if is_warning { "warning: " } else { "error: " })?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Shows them from now on.
pub(crate) fn show() {
    tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_ansi(false)
        .with_writer(io::stderr)
        .event_format(Plain)
        .init();
}
