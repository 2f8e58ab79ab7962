//! Prints the library's warnings on standard error, as lines that begin with `warning:`. Each is
//! printed once, because a command may launch many similar jobs.

use std::{
    collections::HashSet,
    fmt, io,
    sync::{Mutex, PoisonError},
};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

#[derive(Default)]
struct WarningFormat {
    printed: Mutex<HashSet<String>>,
}

impl<S, N> FormatEvent<S, N> for WarningFormat
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
        let mut text = String::from(if is_warning { "warning: " } else { "error: " });
        context.format_fields(Writer::new(&mut text), event)?;
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.insert(text.clone()) {
            writer.write_str(&super::for_stderr(&text))?;
        }
        Ok(())
    }
}

/// Enables the printing of warnings.
pub fn show() {
    tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_ansi(false)
        // Otherwise it would report on standard error that standard error is closed, and panic.
        .log_internal_errors(false)
        .with_writer(io::stderr)
        .event_format(WarningFormat::default())
        .init();
}
