"""The papers' applications as flow models, one file each."""
