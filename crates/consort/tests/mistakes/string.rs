//! A text as a value.
//~ error[E0277]: `String` cannot be passed by value
//~ at: String::from("config.toml")
//~ label: neither plain data, nor `bool`, `char`, an option or a tuple of such
//~ note: and a text as its bytes

use consort::{Rank, Result, Team};

pub fn share(team: &Team, mut name: Vec<u8>) -> Result<()> {
    #[cfg(not(right))]
    team.broadcast(String::from("config.toml"), Rank(0))?;
    #[cfg(right)]
    team.in_place(&mut name).broadcast(Rank(0))?;
    Ok(())
}
