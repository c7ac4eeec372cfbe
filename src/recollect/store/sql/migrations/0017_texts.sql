-- What versions say, by its hash: each text once a tenant, whatever documents and versions have it. A version keeps what is
-- its own of it: which text, and how it was read (headings, pages). What no version has any more goes with the last one that
-- had it (routines/texts.sql).
CREATE TABLE texts (
    tenant_id int   NOT NULL REFERENCES tenants,
    text_hash bytea NOT NULL, -- SHA-256 of the content
    content   text  NOT NULL,
    PRIMARY KEY (tenant_id, text_hash)
);

-- The table is made anew rather than changed: a column that is dropped keeps its bytes. By what the texts are, not by what
-- their versions say that they are: of a damaged copy and a sound one, both are kept.
ALTER TABLE document_contents RENAME TO former_contents;
ALTER TABLE former_contents RENAME CONSTRAINT document_contents_pkey TO former_contents_pkey;

CREATE TABLE document_contents (
    tenant_id  int    NOT NULL,
    version_id bigint NOT NULL,
    text_hash  bytea  NOT NULL,
    headings   jsonb  NOT NULL DEFAULT '[]', -- [level, title, start, end]
    pages      jsonb  NOT NULL DEFAULT '[]'  -- [number, start, end]
);
INSERT INTO document_contents (tenant_id, version_id, text_hash, headings, pages)
SELECT tenant_id, version_id, sha256(convert_to(content, 'UTF8')), headings, pages FROM former_contents;

INSERT INTO texts (tenant_id, text_hash, content)
SELECT f.tenant_id, n.text_hash, f.content
FROM (SELECT tenant_id, text_hash, min(version_id) AS version_id FROM document_contents GROUP BY tenant_id, text_hash) n
JOIN former_contents f ON f.tenant_id = n.tenant_id AND f.version_id = n.version_id;

DROP TABLE former_contents;
ALTER TABLE document_contents ADD PRIMARY KEY (tenant_id, version_id),
    ADD FOREIGN KEY (tenant_id, version_id) REFERENCES document_versions ON DELETE CASCADE,
    ADD FOREIGN KEY (tenant_id, text_hash) REFERENCES texts;
CREATE INDEX document_contents_by_text ON document_contents (tenant_id, text_hash);
