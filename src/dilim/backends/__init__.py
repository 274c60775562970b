"""Back ends: each turns recipes and graphs into results; none imports another."""
