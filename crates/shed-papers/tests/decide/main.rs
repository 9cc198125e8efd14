//! Properties of `decide` under Shed+ and the policies of the core: for any cluster, for any bytes, and for impossible
//! facts.

mod corrupt;
mod fuzz;
mod order_of_facts;
mod properties;
mod shares;
