"""A second look at the best candidates of a search, by measures too costly for all of them."""
