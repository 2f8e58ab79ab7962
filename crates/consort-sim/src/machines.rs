//! Machines as their description files tell them.
