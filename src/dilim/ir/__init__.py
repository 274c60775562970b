"""Programs as data: types, nodes and graphs. No arithmetic, no back end."""
