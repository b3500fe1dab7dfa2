//! The command line: one file a subcommand, arguments and thin glue.
