//! The schema `shed-family/1`.

mod allocation;
mod exact;
mod formulas;
mod strategies;

use crate::Check;

/// Every kind of the schema.
pub const CHECKS: [(&str, Check); 17] = [
    ("shed_thm1", formulas::uniform_pocd),
    ("shed_thm2", formulas::uniform_pocd),
    ("plus_thm1", formulas::uniform_pocd),
    ("plus_thm2", formulas::plus_thm2),
    ("beta", formulas::beta),
    ("observe", formulas::observe),
    ("resume_offset", formulas::resume_offset),
    ("theta", formulas::theta),
    ("alpha_fair", formulas::alpha_fair),
    ("silent", formulas::silent),
    ("mixed", formulas::mixed),
    ("dolly", strategies::dolly),
    ("chronos", strategies::chronos),
    ("srquant", strategies::srquant),
    ("laser", strategies::laser),
    ("alloc_task", allocation::alloc_task),
    ("alloc_job", allocation::alloc_job),
];
