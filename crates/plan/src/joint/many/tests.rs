//! Many sets beside the same sets planned one by one.
