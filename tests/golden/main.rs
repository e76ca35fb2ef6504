//! Every file of golden vectors, run in full.

mod gson_config_data;
mod handle_parse;
