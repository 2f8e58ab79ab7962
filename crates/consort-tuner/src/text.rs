//! Queries in files: the keys that wisdom and recorded calls share.

use consort_fabric::Query;

use crate::toml::{Error, TextValue, TomlTable, Writer};

/// Writes the keys of a query.
pub(crate) fn write_query(query: &Query, file: &mut Writer) {
    let Query { collective, sync, pes, bytes, operator, symmetric } = query;
    file.string("collective", collective);
    file.string("sync", sync);
    file.plain("pes", pes);
    file.plain("bytes", bytes);
    file.string("operator", operator);
    file.plain("symmetric", symmetric);
}

/// Reads the keys of a query.
pub(crate) fn read_query(table: &TomlTable) -> Result<Query, Error> {
    let TextValue(collective) = table.get("collective")?;
    let TextValue(sync) = table.get("sync")?;
    let (pes, bytes) = (table.get("pes")?, table.get("bytes")?);
    let TextValue(operator) = table.get("operator")?;
    Ok(Query { collective, sync, pes, bytes, operator, symmetric: table.get("symmetric")? })
}
