-- Token vectors for late interaction, packed to 4 KB a chunk at most (recollect.retrieval.rerank.packing).
-- Beside chunks rather than in it: only the candidates of a search that reranks by them are ever read.

ALTER TABLE collections ADD COLUMN token_vectors boolean NOT NULL DEFAULT false;

CREATE TABLE chunk_token_vectors (
    tenant_id int    NOT NULL,
    chunk_id  bigint NOT NULL,
    packed    bytea  NOT NULL,
    PRIMARY KEY (tenant_id, chunk_id),
    FOREIGN KEY (tenant_id, chunk_id) REFERENCES chunks ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);

-- Bits like these do not compress, so no time is spent on trying.
ALTER TABLE chunk_token_vectors ALTER COLUMN packed SET STORAGE EXTERNAL;
