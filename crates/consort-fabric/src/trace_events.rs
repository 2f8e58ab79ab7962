//! Traces in the format that Chrome and Perfetto read: JSON with one event in a line.
//!
//! Source: Google, "Trace Event Format", 2016: complete events (`X`) and metadata (`M`), with times
//! in microseconds.

use std::fmt;

/// The text before the first event.
pub const TRACE_BEGIN: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
/// The text between two events.
pub const TRACE_SEPARATOR: &str = ",\n";
/// The text after the last event.
pub const TRACE_END: &str = "\n]}\n";

/// Something that took time. Its `Display` is the event.
#[derive(Clone, Copy, Debug)]
pub struct TraceEvent<'e> {
    /// The name that a viewer shows.
    pub name: &'e str,
    /// The number of the process.
    pub process: u64,
    /// The number of the thread in the process; a viewer has a row for each thread.
    pub thread: u32,
    /// When it began, in picoseconds.
    pub begun_ps: u64,
    /// How long it took, in picoseconds.
    pub took_ps: u64,
    /// Further facts, by name.
    pub arguments: &'e [(&'e str, TraceValue<'e>)],
}

/// The value of an argument of an event.
#[derive(Clone, Copy, Debug)]
pub enum TraceValue<'e> {
    /// A number.
    Number(u64),
    /// A text.
    Text(&'e str),
}

/// The name of a thread. Its `Display` is an event.
#[derive(Clone, Copy, Debug)]
pub struct TraceThread<'e> {
    /// The number of the process.
    pub process: u64,
    /// The number of the thread in the process.
    pub thread: u32,
    /// The name.
    pub name: &'e str,
}

/// A text as a JSON string.
struct Quoted<'e>(&'e str);

/// Picoseconds as a number of microseconds.
struct Micros(u64);

impl fmt::Display for TraceEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, process, thread, begun_ps, took_ps, arguments } = *self;
        write!(f, "{{\"name\":{},\"ph\":\"X\",\"pid\":{process}", Quoted(name))?;
        let (begun, took) = (Micros(begun_ps), Micros(took_ps));
        write!(f, ",\"tid\":{thread},\"ts\":{begun},\"dur\":{took},\"args\":{{")?;
        for (index, (key, value)) in arguments.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}:{value}", Quoted(key))?;
        }
        f.write_str("}}")
    }
}

impl fmt::Display for TraceValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{}", Quoted(text)),
        }
    }
}

impl fmt::Display for TraceThread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, thread, name } = *self;
        write!(f, "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{process},\"tid\":{thread}")?;
        write!(f, ",\"args\":{{\"name\":{}}}}}", Quoted(name))
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(f, "\\{letter}")?,
                control if control.is_ascii_control() => write!(f, "\\u{:04x}", control as u32)?,
                plain => write!(f, "{plain}")?,
            }
        }
        f.write_str("\"")
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_json() {
        let arguments = [("bytes", TraceValue::Number(8)), ("at", TraceValue::Text("a\\b"))];
        let event = TraceEvent {
            name: "say \"it\"\n",
            process: 1,
            thread: 2,
            begun_ps: 3_000_004,
            took_ps: 5,
            arguments: &arguments,
        };
        assert_eq!(
            event.to_string(),
            r#"{"name":"say \"it\"\u000a","ph":"X","pid":1,"tid":2,"ts":3.000004,"dur":0.000005,"args":{"bytes":8,"at":"a\\b"}}"#
        );
        let thread = TraceThread { process: 0, thread: 7, name: "PE 7" };
        assert_eq!(
            thread.to_string(),
            r#"{"name":"thread_name","ph":"M","pid":0,"tid":7,"args":{"name":"PE 7"}}"#
        );
    }
}
