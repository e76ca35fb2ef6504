//! Every file of golden vectors, run in full.

mod backtracking;
mod node;
mod outcome;

mod admin_register;
mod ant_path;
mod ant_path_grid;
mod check_url;
mod gson_config_data;
mod handle_parse;
mod hash_balance;
mod hash_values;
mod match_mode;
mod operators;
mod random_balance_rules;
mod real_url;
mod register_dto;
mod round_robin;
mod shenyu_requests;
mod warmup_weight;
