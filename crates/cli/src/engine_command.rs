//! `lazulite engine schema`: prints what a server creates in a database, for those who create it themselves.

use engine_postgres::schema_sql;

/// The schema in the database that servers and commands use.
const SCHEMA: &str = "lazulite";

#[derive(PartialEq, Eq, Debug)]
pub enum EngineCommand {
    Schema,
}

pub fn run(command: &EngineCommand) -> Result<(), String> {
    match command {
        EngineCommand::Schema => {
            print!("{}", schema_sql(SCHEMA).map_err(|error| error.to_string())?);
            Ok(())
        }
    }
}
