"""The notebook: magics, the cell that waits, the view and its static record, approvals, completion."""
