-- A vector space: the vectors that one model, at one dimension, made of a collection's chunks, under a number that is never
-- used again. A collection names the space that its searches use and its ingests write. Another one may stand beside it:
-- while it is filled before the collection changes to it, or while it is kept for the way back.
--
-- The spaces of collections that there are have their collections' numbers: no row and no index is written anew but the
-- primary key's. It begins with the chunk, because chunks take their vectors with them.
CREATE SEQUENCE space_ids AS int;

ALTER TABLE chunk_vectors RENAME COLUMN collection_id TO space_id;
ALTER TABLE chunk_vectors DROP CONSTRAINT chunk_vectors_pkey, ADD PRIMARY KEY (tenant_id, chunk_id, space_id);

ALTER TABLE collections ADD COLUMN space_id int,
    -- The model that it began with, once it has another: what the fingerprints of versions name. A document is no other
    -- version because another model embeds it.
    ADD COLUMN first_model text;
UPDATE collections SET space_id = collection_id;
SELECT setval('space_ids', max(collection_id)) FROM collections HAVING count(*) > 0;
ALTER TABLE collections ALTER COLUMN space_id SET DEFAULT nextval('space_ids'), ALTER COLUMN space_id SET NOT NULL,
    ADD UNIQUE (tenant_id, space_id);
ALTER SEQUENCE space_ids OWNED BY collections.space_id;

-- The spaces beside those that searches use. A chunk that has no vector there gets one before a collection changes to it.
CREATE TABLE vector_spaces (
    tenant_id           int         NOT NULL,
    collection_id       int         NOT NULL,
    space_id            int         NOT NULL DEFAULT nextval('space_ids'),
    status              text        NOT NULL CHECK (status IN ('filling', 'kept', 'dropping')),
    embedding_model     text        NOT NULL,
    embedding_dimension int         NOT NULL CHECK (embedding_dimension > 0),
    embedding_spec      jsonb       CHECK (jsonb_typeof(embedding_spec) = 'object'), -- how the model is made
    since               timestamptz NOT NULL DEFAULT clock_timestamp(), -- it is so
    PRIMARY KEY (tenant_id, space_id),
    UNIQUE (tenant_id, collection_id, status),
    FOREIGN KEY (tenant_id, collection_id) REFERENCES collections ON DELETE CASCADE
);
