//! What waits in the tree while tasks keep waking. `pending`
