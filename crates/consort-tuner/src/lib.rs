//! Search, wisdom and choice among the algorithms of a collective, by name and parameter.
