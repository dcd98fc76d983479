//! What a model can do in a folder.
