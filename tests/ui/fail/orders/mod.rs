//! The file of the module in `on_the_module_of_a_file.rs`.
