//! Where records go: the audit log, the human lines. Each a pure render and a thin writer.
