//! Every file of golden vectors, run in full.
