-- How a collection's embedding model is made again (provider, model, dimensions, …): with it, collections of several models
-- are searched and written whatever is configured now. NULL: unknown, and embedding_model is all there is to go by.
ALTER TABLE collections
    ADD COLUMN embedding_spec jsonb CHECK (jsonb_typeof(embedding_spec) = 'object');
