//! What the search must find, and what must change nothing.
