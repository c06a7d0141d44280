//! The patterns against a real server: what they save, what they survive, and what concurrent writers do to them.

mod before_after;
mod crash;
mod pieces;
mod place;
mod races;
