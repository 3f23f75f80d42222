//! Tests of the account and of the judge.

mod drawn;
mod judged;
mod packets;
mod plain;
mod verdicts;
